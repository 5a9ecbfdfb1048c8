"""Made from xnn.fbs by `python -m schema.generate`: do not edit."""
