"""`python -m runtime verify`: exit code 0 for a sound file, 2 and the place of the fault otherwise."""

from __future__ import annotations

import argparse

import schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None beyond the file."""


def run(options: argparse.Namespace) -> None:
    schema.verify(options.model)
    print(f"{options.model}: sound")
