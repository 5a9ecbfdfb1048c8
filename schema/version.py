"""The one place that holds the version of the distribution `xnn`."""

__version__ = "0.1.0"
