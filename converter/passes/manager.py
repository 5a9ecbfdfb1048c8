"""The order in which rewrites run, until none of them finds anything more, and the account of what they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from schema.errors import ConversionError
from schema.graph import Graph, nested
from schema.inference import annotate

Pass = Callable[[Graph], list[str]]

MAIN = """
fold_constants fold_branches fold_operands fold_shape_arithmetic remove_identity merge_common normalize_constants
simplify_powers fold_splats normalize_reductions matmul_to_fully_connected fuse_transpose_matmul grouped_to_depthwise
clamp leaky_relu elu hard_swish swish gelu softmax normalize_layer_norm recover_dilated_conv recover_upsampling
clean_reshapes clean_transposes fold_batch_norm fold_input_scale merge_affine fuse_pad fuse_activation
""".split()
"""Rewrites by module name. Activations are recognised before anything fuses parts of them away; BatchNorm folds before
activations fuse, since nothing folds into a node behind its activation."""

LAST = """affine_to_depthwise fuse_activation share_constants""".split()
"""Rewrites that would hide what the main ones look for."""

ROUNDS = 50
"""Far more than graphs need: a round more for each rewrite that enables one before it in the list."""


@dataclass
class Explanation:
    """What each pass found and changed: (pass, lines) in the order in which it happened. `str()` is what --explain
    prints.
    """

    changes: list[tuple[str, list[str]]] = field(default_factory=list)
    nodes_before: int = 0
    nodes_after: int = 0
    rounds: int = 0

    def of(self, name: str) -> list[str]:
        """All lines of one pass."""
        return [line for changed, lines in self.changes if changed == name for line in lines]

    def __str__(self) -> str:
        out = [f"{self.nodes_before} nodes became {self.nodes_after} in {self.rounds} rounds"]
        names = list(dict.fromkeys([*MAIN, *LAST]))
        for name in names:
            lines = list(dict.fromkeys(self.of(name)))
            if lines:
                out += [f"{name}: {len(lines)} found", *(f"  {line}" for line in lines)]
        idle = [name for name in names if not self.of(name)]
        if idle:
            out.append("nothing found: " + ", ".join(idle))
        return "\n".join(out)


def load(name: str) -> Pass:
    """The pass of that name."""
    return import_module(f"converter.passes.{name}").run


def optimize(graph: Graph, progress: Callable[[str], None] | None = None) -> Explanation:
    """Rewrite the graph in place until nothing changes, then the graphs that its nodes run, as graphs of their own.
    Inputs and outputs keep their names, order, shapes and dtypes.

    progress: called with the name of each pass before it runs.
    Raises ConversionError when rewrites do not come to an end, ShapeError when the graph does not fit together.
    """
    explanation = Explanation(nodes_before=_count(graph))
    _optimize(graph, explanation, progress)
    explanation.nodes_after = _count(graph)
    return explanation


def _optimize(graph: Graph, explanation: Explanation, progress: Callable[[str], None] | None) -> None:
    annotate(graph)
    remove_dead(graph)
    for names in (MAIN, LAST):
        _fixpoint(graph, names, explanation, progress)
    for node in graph.nodes:
        for inner in node.subgraphs.values():
            _optimize(inner, explanation, progress)


def _count(graph: Graph) -> int:
    return sum(len(inner.nodes) for inner in nested(graph))


def remove_dead(graph: Graph) -> None:
    """Remove nodes that no output needs."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(tensor for tensor in node.inputs if tensor is not None)
    graph.nodes = kept[::-1]


def _fixpoint(
    graph: Graph, names: Sequence[str], explanation: Explanation, progress: Callable[[str], None] | None
) -> None:
    for _ in range(ROUNDS):
        changed = False
        for name in names:
            if progress is not None:
                progress(name)
            lines = load(name)(graph)
            if lines:
                changed = True
                explanation.changes.append((name, lines))
                annotate(graph)
        explanation.rounds += 1
        if not changed:
            return
    still = explanation.changes[-1]
    raise ConversionError(f"rewriting did not end after {ROUNDS} rounds: {still[0]} still finds {still[1][0]!r}")
