"""The order in which rewrites run, until none of them finds anything more, and the account of what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from converter.candidates import Candidate
from converter.costs import graph_cost
from schema.costs import Cost
from schema.errors import ConversionError
from schema.graph import Graph, nested
from schema.inference import annotate

Pass = Callable[[Graph], list[str]]

MAIN = """
fold_constants fold_branches fold_operands fold_shape_arithmetic remove_identity merge_common normalize_constants
simplify_powers fold_splats normalize_reductions matmul_to_fully_connected fuse_transpose_matmul grouped_to_depthwise
clamp leaky_relu elu hard_swish swish gelu masked_softmax softmax normalize_layer_norm recover_dilated_conv
recover_upsampling clean_reshapes clean_transposes fold_batch_norm fold_input_scale merge_affine pool_before_pointwise
merge_linear merge_sum fuse_pad fuse_activation drop_unit_reductions merge_pools pool_before_activation
merge_parallel remove_dead_channels
""".split()
"""Rewrites by module name. Activations are recognised before anything fuses parts of them away; BatchNorm folds before
activations fuse, since nothing folds into a node behind its activation. What is left of activations then moves behind
poolings."""

LAST = """
affine_to_depthwise fuse_activation split_low_rank unsigned_zeros share_constants merge_common
""".split()
"""Rewrites that would hide what the main ones look for."""

OUT_OF_LOOPS = ["hoist_from_loops"]
"""Rewrites that take something out of the graphs that nodes run, once those are rewritten."""

ROUNDS = 50
"""Far more than graphs need: a round more for each rewrite that enables one before it in the list."""


@dataclass
class Explanation:
    """What each pass found and changed: (pass, lines) in the order in which it happened. `str()` is what --explain
    prints.

    before, after, savings (by pass): what the whole graph costs, where that was measured.
    """

    changes: list[tuple[str, list[str]]] = field(default_factory=list)
    nodes_before: int = 0
    nodes_after: int = 0
    rounds: int = 0
    before: Cost | None = None
    after: Cost | None = None
    savings: dict[str, Cost] = field(default_factory=dict)

    def add(self, name: str, lines: list[str], cost: Cost | None) -> None:
        """A pass has changed something. cost: of the whole graph now."""
        self.changes.append((name, lines))
        if cost is not None and self.after is not None:
            self.savings[name] = self.savings.get(name, Cost()) + (self.after - cost)
            self.after = cost

    def of(self, name: str) -> list[str]:
        """All lines of one pass."""
        return [line for changed, lines in self.changes if changed == name for line in lines]

    def __str__(self) -> str:
        out = [f"{self.nodes_before} nodes became {self.nodes_after} in {self.rounds} rounds"]
        names = list(dict.fromkeys([*MAIN, *LAST, *OUT_OF_LOOPS]))
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


def optimize(graph: Graph, progress: Callable[[str], None] | None = None, measure: bool = False) -> Explanation:
    """Rewrite the graph in place until nothing changes, then the graphs that its nodes run, as graphs of their own.
    Inputs and outputs keep their names, order, shapes and dtypes.

    progress: called with the name of each pass before it runs. measure: also tell what each pass saves.
    Raises ConversionError when rewrites do not come to an end, ShapeError when the graph does not fit together.
    """
    explanation = Explanation(nodes_before=_count(graph))
    remove_dead(graph)

    def cost() -> Cost | None:
        return graph_cost(graph) if measure else None

    explanation.before = explanation.after = cost()
    _optimize(graph, explanation, progress, cost)
    explanation.nodes_after = _count(graph)
    return explanation


def left_over(graph: Graph) -> Iterator[tuple[str, Candidate]]:
    """Where rewrites would be right but do not pay, by pass: of those that weigh what they save."""
    for name in dict.fromkeys([*MAIN, *LAST]):
        survey = getattr(import_module(f"converter.passes.{name}"), "survey", None)
        for inner in nested(graph) if survey is not None else ():
            for candidate in survey(inner):
                yield name, candidate


Measure = Callable[[], "Cost | None"]


def _optimize(graph: Graph, explanation: Explanation, progress: Callable[[str], None] | None, measure: Measure) -> None:
    annotate(graph)
    remove_dead(graph)
    for names in (MAIN, LAST):
        _fixpoint(graph, names, explanation, progress, measure)
    for node in graph.nodes:
        for inner in node.subgraphs.values():
            _optimize(inner, explanation, progress, measure)
    if any(node.subgraphs for node in graph.nodes):
        _fixpoint(graph, OUT_OF_LOOPS, explanation, progress, measure)


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
    graph: Graph,
    names: Sequence[str],
    explanation: Explanation,
    progress: Callable[[str], None] | None,
    measure: Measure,
) -> None:
    for _ in range(ROUNDS):
        changed = False
        for name in names:
            if progress is not None:
                progress(name)
            lines = load(name)(graph)
            if lines:
                changed = True
                annotate(graph)
                explanation.add(name, lines, measure())
        explanation.rounds += 1
        if not changed:
            return
    still = explanation.changes[-1]
    raise ConversionError(f"rewriting did not end after {ROUNDS} rounds: {still[0]} still finds {still[1][0]!r}")
