"""Models of other frameworks to `.xnn` files: `converter.convert(model).save("m.xnn")`, or `python -m converter`."""

from converter.convert import Result, convert
from converter.report import Report

__all__ = ["Report", "Result", "convert"]
