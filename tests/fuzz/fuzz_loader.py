"""A coverage-guided fuzz target for the loader, with atheris (https://github.com/google/atheris).

    pip install atheris
    python -m tests.fuzz.fuzz_loader FOLDER -max_total_time=600 -max_len=8192 -rss_limit_mb=2048 -timeout=20

FOLDER keeps what reached new code, so that a later run goes on from there; it is first filled with sound models.
Anything but a model or a FormatError ends the run and writes the input that did it (`crash-...`).
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("the fuzz target needs atheris: pip install atheris")

with atheris.instrument_imports(include=["schema"]):
    import schema
    from schema import FormatError, container, ops, reader

    for name in ops.NAMES:  # modules that load when first asked for
        ops.get(name)

from tests.corpus import make, models


def try_to_read(data: bytes) -> None:
    """The bytes as a file, and as the metadata, in both forms, of a file whose checksums are right."""
    try:
        resealed = schema.reseal(data)
    except FormatError:
        resealed = data
    files = [resealed, container.pack({container.METADATA: data, container.WEIGHTS: data})]
    columns = container.deflated_columns(data)
    if columns is not None:
        files.append(container.pack({container.COLUMNS: columns, container.WEIGHTS: data}))
    for file in files:
        try:
            reader.read(file)
        except FormatError:
            continue


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else Path("fuzz-corpus")
    if not folder.is_dir():
        make.write(folder, models.files() | {name: data for name, (data, _) in make.broken().items()})
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    atheris.Setup([sys.argv[0], str(folder), *options], try_to_read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
