"""CLAMP: x clamped to [min, max]."""

from __future__ import annotations

from schema.ops.attributes import ClampAttributes
from schema.ops.base import require
from schema.ops.rectifier import Rectifier


class Clamp(Rectifier):
    name = "CLAMP"
    Attributes = ClampAttributes

    @classmethod
    def check(cls, attributes):
        low, high = attributes.min, attributes.max
        require(low <= high, f"clamp from {low} to {high} lets nothing through")

    @classmethod
    def bounds(cls, attributes):
        return attributes.min, attributes.max
