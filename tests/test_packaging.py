import re
import subprocess
import zipfile

import pytest

from schema.version import __version__

PACKAGES = ("schema", "runtime", "converter", "xnn_tf")


@pytest.fixture(scope="module")
def wheel(repository, tmp_path_factory) -> zipfile.ZipFile:
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = builders.WheelBuilder(str(repository)).build(directory=str(folder))
    return zipfile.ZipFile(path)


def test_wheel_holds_every_file_of_the_packages_and_no_other(repository, wheel):
    listed = subprocess.run(
        ["git", "ls-files", "--", *PACKAGES], cwd=repository, text=True, capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert set(listed.stdout.split()) <= packed
    assert {name.partition("/")[0] for name in packed} <= set(PACKAGES)
    assert "schema/xnn.fbs" in packed


def test_wheel_names_version_licence_and_base_requirements(wheel):
    metadata = wheel.read(f"xnn-{__version__}.dist-info/METADATA").decode()

    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    base = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, flags=re.MULTILINE)
    assert sorted(base) == ["absl-py", "flatbuffers", "numba", "numpy"]
