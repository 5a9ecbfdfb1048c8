"""From the model to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xnn_tf.compression.context import Context


@dataclass(frozen=True)
class Conversion:
    """One way to convert.

    Attributes:
        quantize: as of `converter.convert`.
        options: more of its arguments.
    """

    quantize: str = "none"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        more = "".join(f" {key}={value}" for key, value in self.options.items())
        return ("float32" if self.quantize == "none" else self.quantize) + more

    def run(self, context: Context) -> tuple[dict[str, Any], bytes]:
        """(what was found, the file): its bytes, and its score on the validation data."""
        xnn = context.convert(self.quantize, **self.options).bytes
        return {"conversion": self.name, "bytes": len(xnn), "score": context.score(xnn)}, xnn
