"""`python -m runtime`: run, measure and look into `.xnn` files."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from schema.command_line import guarded
from schema.version import __version__

COMMANDS = {
    "run": "run a model on .npy files",
    "bench": "measure a model's latency",
    "profile": "measure each node",
    "inspect": "list nodes, shapes, types and bytes",
    "verify": "check that a file is sound",
}
EXAMPLES = """examples:
  python -m runtime run model.xnn --input x.npy --output y.npy
  python -m runtime run model.xnn --input left=a.npy --input right=b.npy --output scores=s.npy --output boxes=b.npy
  python -m runtime bench model.xnn --threads 2 --json
  python -m runtime profile model.xnn
  python -m runtime inspect model.xnn
  python -m runtime verify model.xnn
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m runtime",
        description="Run, measure and look into .xnn files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"xnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.add_argument("model", metavar="MODEL.xnn")
        importlib.import_module(f"runtime.commands.{name}").add_arguments(command)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    command = importlib.import_module(f"runtime.commands.{options.command}")
    return guarded(lambda: command.run(options))


if __name__ == "__main__":
    sys.exit(main())
