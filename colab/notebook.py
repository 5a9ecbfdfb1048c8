"""Make notebooks from the scripts beside them: `python colab/notebook.py [--check] SCRIPT...`.

A line `# %%` begins a code cell and `# %% [markdown]` a text cell, whose comment signs are taken off. The result holds
no outputs and is the same for the same script, so that a diff of a notebook is a diff of its source.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

MARK = "# %%"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells(script: str) -> list[dict[str, Any]]:
    """The notebook cells (nbformat 4.5) of a script in the `# %%` form."""
    result: list[dict[str, Any]] = []
    for number, chunk in enumerate(f"\n{script}".split(f"\n{MARK}")[1:]):
        kind, _, body = chunk.partition("\n")
        lines = body.strip("\n").splitlines(keepends=True)
        cell: dict[str, Any] = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}}
        if kind.strip() == "[markdown]":
            cell["cell_type"] = "markdown"
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        else:
            cell |= {"execution_count": None, "outputs": []}
        result.append(cell | {"source": lines})
    return result


def notebook(script: str) -> str:
    """The text of the `.ipynb` file (nbformat 4.5) of a script."""
    content = {"cells": cells(script), "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make notebooks from scripts with # %% cells.")
    parser.add_argument("scripts", nargs="+", type=Path, metavar="SCRIPT", help="writes SCRIPT's .ipynb beside it")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a notebook is not up to date")
    options = parser.parse_args(arguments)
    stale = []
    for script in options.scripts:
        path, content = script.with_suffix(".ipynb"), notebook(script.read_text())
        if path.exists() and path.read_text() == content:
            continue
        if options.check:
            stale.append(path)
        else:
            path.write_text(content)
    for path in stale:
        print(f"{path} does not match its script: run `make notebooks`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
