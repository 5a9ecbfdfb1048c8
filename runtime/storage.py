"""Where each computed tensor lives: views share their source's storage, and every storage has a life from first
write to last read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.memory_planner import Request
from schema.graph import Node, Tensor, TensorType

# Ops whose output is the first input's bytes under another shape.
VIEW_OPS = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")

# Ops whose kernels read each element before they write the same place, so that the output may take over an input's
# memory.
IN_PLACE_OPS = frozenset(
    """ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE ABS NEG EXP LOG SQRT RSQRT SQUARE RELU RELU6 RELU_N1_TO_1
    CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS QUANTIZE""".split()
)


@dataclass
class Life:
    """The steps, counted from 0 (the inputs are written), at which a storage is first written and last read."""

    first: int
    last: int
    size: int  # bytes
    in_place: list[Tensor] = field(default_factory=list)  # roots whose memory it may take over


class Storage:
    """The storages of a plan's steps: `root[tensor]` is the tensor whose bytes it shares, `lives[root]` their life."""

    def __init__(
        self,
        inputs: Sequence[Tensor],
        steps: Sequence[Node],
        outputs: Sequence[Tensor],
        types: dict[Tensor, TensorType],
    ):
        self.root: dict[Tensor, Tensor] = {}
        self.lives: dict[Tensor, Life] = {}
        for tensor in inputs:
            self._define(tensor, 0, types)
        for step, node in enumerate(steps, start=1):
            for tensor in node.inputs:
                if tensor in self.root:
                    self.lives[self.root[tensor]].last = step
            source = node.inputs[0] if node.inputs else None
            if node.op in VIEW_OPS and source in self.root:
                self.root[node.outputs[0]] = self.root[source]
                continue
            for tensor in node.outputs:
                self._define(tensor, step, types)
            if node.op in IN_PLACE_OPS:
                self._take_over(node, types)
        for tensor in outputs:
            if tensor in self.root:
                self.lives[self.root[tensor]].last = len(steps) + 1

    def _define(self, tensor: Tensor, step: int, types: dict[Tensor, TensorType]) -> None:
        kind = types[tensor]
        size = kind.dtype.itemsize
        for dim in kind.shape or ():
            size *= dim or 0
        self.root[tensor] = tensor
        self.lives[tensor] = Life(step, step, size)

    def _take_over(self, node: Node, types: dict[Tensor, TensorType]) -> None:
        output = node.outputs[0]
        roots = [self.root[t] for t in node.inputs if t in self.root and types[t].shape == types[output].shape]
        size = self.lives[output].size
        self.lives[output].in_place = [r for r in dict.fromkeys(roots) if self.lives[r].size == size]

    def requests(self) -> list[Request]:
        """For the memory planner, in the order of `lives`."""
        index = {root: i for i, root in enumerate(self.lives)}
        return [
            Request(life.size, life.first, life.last, tuple(index[r] for r in life.in_place))
            for life in self.lives.values()
        ]

    def is_view(self, node: Node) -> bool:
        """The node computes nothing: its output is its input's storage."""
        return self.root[node.outputs[0]] is not node.outputs[0]
