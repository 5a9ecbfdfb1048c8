"""Where the operands of UNIDIRECTIONAL_SEQUENCE_LSTM are, and which of them need each other."""

from __future__ import annotations

from collections.abc import Sequence

from schema.ops.base import require

GATES = ("input", "forget", "cell", "output")
INPUT, FORGET, CELL, OUTPUT = range(4)
WEIGHTS, RECURRENT, PEEPHOLES, BIASES, NORMS = 1, 5, 9, 12, 20
PROJECTION, PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
OPERANDS = 24
PEEPHOLE_OF = {INPUT: PEEPHOLES, FORGET: PEEPHOLES + 1, OUTPUT: PEEPHOLES + 2}


def complete(operands: Sequence) -> list:
    """All operands, None for those that are left out at the end."""
    return [*operands, *[None] * (OPERANDS - len(operands))]


def check_operands(given: list) -> None:
    """Raise ShapeError where an operand is left out that others need."""
    for first, what in ((WEIGHTS, "weights"), (RECURRENT, "recurrent weights"), (BIASES, "bias")):
        for index, name in enumerate(GATES[1:], 1):
            require(given[first + index] is not None, f"the {name} gate has no {what}")
        there = given[first] is not None
        require(there == (given[WEIGHTS] is not None), f"the input gate has {'' if there else 'no '}{what}")
    require(given[PROJECTION] is not None or given[PROJECTION_BIAS] is None, "a projection bias without weights")
    norms = [given[NORMS + i] is not None for i in range(4)]
    require(norms[1] == norms[2] == norms[3], "some gates are normalized, others not")
    require(norms[0] == (norms[1] and given[WEIGHTS] is not None), "some gates are normalized, others not")
