"""Where each computed tensor lives: views share their source's storage, tensors that are only made to be concatenated
are written into the result, and every storage has a life from first write to last read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.memory_planner import Request
from schema.costs import VIEW_OPS
from schema.graph import Node, Tensor, TensorType

# Ops whose kernels read each element before they write the same place, so that the output may take over an input's
# memory.
IN_PLACE_OPS = frozenset(
    """ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE ABS NEG EXP LOG SQRT RSQRT SQUARE RELU RELU6 RELU_N1_TO_1
    CLAMP LEAKY_RELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS QUANTIZE""".split()
)


# Ops whose kernels can leave room between the rows (the last axis) that they write.
STRIDED_OPS = frozenset(["CONV_2D"])


@dataclass(frozen=True)
class Section:
    """A tensor that is columns of another: where its first row starts, and bytes from row to row."""

    whole: Tensor
    offset: int
    row_stride: int


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
        self.sections = _sections(steps, outputs, types)
        self._joined = {section.whole for section in self.sections.values()}
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
                section = self.sections.get(tensor)
                whole = tensor if section is None else section.whole
                if whole not in self.lives:
                    self._define(whole, step, types)
                self.root[tensor] = whole
                self.lives[whole].last = step
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

    def offset(self, tensor: Tensor) -> int:
        """Bytes from the start of its storage to a tensor."""
        section = self.sections.get(tensor)
        return 0 if section is None else section.offset

    def is_view(self, node: Node) -> bool:
        """The node computes nothing: its output is its input's storage, or was written by those who made its inputs."""
        output = node.outputs[0]
        return output in self._joined or (self.root[output] is not output and output not in self.sections)


def _sections(
    steps: Sequence[Node], outputs: Sequence[Tensor], types: dict[Tensor, TensorType]
) -> dict[Tensor, Section]:
    """The inputs of concatenations along the last axis that can be written where they belong."""
    makers = {tensor: node for node in steps for tensor in node.outputs}
    uses = Counter([t for node in steps for t in node.inputs] + list(outputs))
    found: dict[Tensor, Section] = {}
    for node in steps:
        whole = node.outputs[0]
        if node.op != "CONCATENATION" or whole in found:
            continue
        kind = types[whole]
        last = (kind.rank or 0) - 1
        if last < 1 or node.attributes.axis not in (-1, last):
            continue
        offset, row_stride, sections = 0, (kind.shape or ())[-1] * kind.dtype.itemsize, {}
        for tensor in node.inputs:
            maker = makers.get(tensor)
            if tensor is None or maker is None or maker.op not in STRIDED_OPS or uses[tensor] != 1:
                break
            if (types[tensor].dtype, types[tensor].quantization) != (kind.dtype, kind.quantization):
                break
            sections[tensor] = Section(whole, offset, row_stride)
            offset += (types[tensor].shape or ())[-1] * kind.dtype.itemsize
        else:
            found |= sections
    return found
