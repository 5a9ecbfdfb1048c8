"""Branches and loops: which of a node's graphs run on what. The graphs have plans of their own, made when first needed.

A loop looks up the plan for its operands' shapes before each iteration, so that they may change; between iterations
Python sees what interrupts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from schema import limits
from schema.graph import Node
from schema.ops.calls import check_carried, truth

Call = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""Runs one of the node's graphs."""


def run(node: Node, calls: Mapping[str, Call], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of an IF or WHILE node. calls: by the names of the attributes that hold the graphs."""
    if node.op == "IF":
        condition, *operands = arrays
        return calls["then_branch" if truth(condition) else "else_branch"](operands)
    carried = list(arrays)
    while truth(calls["condition"](carried)[0]):
        limits.count_iteration()
        carried = calls["body"](carried)
        check_carried(node.attributes.body, carried)
    return carried
