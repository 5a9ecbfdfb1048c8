"""g(f(x)) -> one node of a plan, for functions of single elements whose results nobody else reads: float32 ones with
all their operands (a number, one for each channel, tensors of the same shape), and int8 ones that are tables.

What is between them does not go to memory then. This changes no file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from runtime.kernels.table import LOWERINGS
from schema.graph import Node, Shape, Tensor
from schema.inference import Inference

BLOCK = 2048  # float32 elements: two blocks, and one of another operand, stay in the first cache

TABLES = ("QUANTIZE", "DEQUANTIZE")
"""Tables beside the activations."""


@dataclass(frozen=True)
class Stage:
    """chained: which input of the node the stage before has made; of the first, which one is read block by block. run:
    of the other input, after how many elements it repeats; 0 where there is none.
    """

    node: Node
    chained: int
    run: int


@dataclass(eq=False)
class Chain(Node):
    """Nodes, each of which reads what the one before makes. op, name and outputs are the last one's; inputs are all
    that is read from elsewhere, what the first one takes block by block first.
    """

    stages: list[Stage] = field(default_factory=list)


def chain(nodes: Sequence[Node], known: Inference, outputs: Iterable[Tensor | None]) -> list[Node]:
    """The nodes in their order, each chain in the place of its last one. outputs: tensors that are read later."""
    uses = Counter([t for node in nodes for t in node.inputs] + list(outputs))
    made: dict[Tensor, list[Stage]] = {}
    for node in nodes:
        if _kind(node, known) is None:
            continue
        for stage in _ways(node, known):
            tensor = node.inputs[stage.chained]
            before = made.get(tensor, []) if tensor is not None and uses[tensor] == 1 else []
            if before and _kind(before[0].node, known) == _kind(node, known) and period([*before, stage]) is not None:
                made[node.outputs[0]] = [*before, stage]
                break
        else:
            alone = [stage for stage in _ways(node, known) if period([stage]) is not None]
            if alone:
                made[node.outputs[0]] = alone[:1]
    inside = {stage.node for stages in made.values() for stage in stages[:-1]}
    return [_joined(node, made.get(node.outputs[0], [])) for node in nodes if node not in inside]


def period(stages: Sequence[Stage]) -> int | None:
    """Of how many elements every block must hold a multiple; None where that is more than a block, or none fits all."""
    runs = [stage.run for stage in stages if stage.run > 1]
    longest = max(runs, default=1)
    return longest if longest <= BLOCK and all(longest % run == 0 for run in runs) else None


def _kind(node: Node, known: Inference) -> str | None:
    """ "float" or "table", None for a node that is no function of single elements or has no such kernel."""
    types = [known.types[t] for t in node.inputs if t is not None]
    made = known.types[node.outputs[0]]
    if not types or 0 in (made.shape or ()):
        return None
    lowering = LOWERINGS.get(node.op)
    if lowering in ("activation", "elementwise") and all(kind.dtype == np.float32 for kind in (*types, made)):
        return "float"
    if lowering != "activation" and node.op not in TABLES:
        return None
    given = types[0].quantization
    single = types[0].dtype == np.int8 and given is not None and not given.per_channel
    return "table" if single and made.dtype in (np.int8, np.float32) else None


def _ways(node: Node, known: Inference) -> list[Stage]:
    """The node as a stage, for each input of its output's shape that is not known before the model runs."""
    shape = known.types[node.outputs[0]].shape
    found = []
    for index, tensor in enumerate(node.inputs):
        if tensor is None or known.types[tensor].shape != shape or known.is_known(tensor):
            continue
        others = [t for i, t in enumerate(node.inputs) if i != index and t is not None]
        runs = [_run(known.types[t].shape or (), shape or ()) for t in others]
        if None not in runs and len(runs) < 2:
            found.append(Stage(node, index, next((run for run in runs if run is not None), 0)))
    return found


def _run(shape: Shape, whole: Shape) -> int | None:
    """After how many elements an operand repeats: 1 for a single number, 0 for one as large as the whole."""
    if shape == whole:
        return 0
    sizes = list(shape)
    while sizes and sizes[0] == 1:
        del sizes[0]
    fits = tuple(sizes) == tuple(whole[len(whole) - len(sizes) :])
    return math.prod(size or 0 for size in sizes) if fits else None


def _joined(node: Node, stages: Sequence[Stage]) -> Node:
    if len(stages) < 2:
        return node
    first, *rest = stages
    inputs = [first.node.inputs[first.chained]]
    inputs += [t for i, t in enumerate(first.node.inputs) if i != first.chained]
    for stage in rest:
        inputs += [t for i, t in enumerate(stage.node.inputs) if i != stage.chained]
    return Chain(node.op, inputs, node.outputs, node.attributes, node.name, stages=list(stages))
