"""Files of one operator, for each that is read, in each dtype it has: the engine gives what LiteRT gives."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from converter.frontends.tflite.ops import READERS
from schema import TensorType, ops
from tests.converter.frontends.tflite.cases import CASES
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support import litert

OTHERWISE = frozenset(
    """SELECT ADD_N ZEROS_LIKE RELU_0_TO_1 DENSIFY EMBEDDING_LOOKUP L2_POOL_2D SVDF UNIDIRECTIONAL_SEQUENCE_RNN
    UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_LSTM NON_MAX_SUPPRESSION_V4
    NON_MAX_SUPPRESSION_V5 TFLite_Detection_PostProcess""".split()
)
"""Operators that the schema spells otherwise: test_spellings.py, test_stored_weights.py, test_recurrent.py,
test_detection.py."""
LOOSER = {"POW": 3e-6, "GELU": 3e-6, "ELU": 3e-6, "EXP": 3e-6}
"""Functions that two libraries compute differently in the last bits."""


def test_every_operator_has_a_case():
    assert set(CASES) | OTHERWISE == set(READERS)


@pytest.mark.parametrize(("op", "number"), [(op, n) for op, cases in sorted(CASES.items()) for n in range(len(cases))])
def test_operator(op, number):
    case = CASES[op][number]
    rng = np.random.default_rng(zlib.crc32(f"{op}{number}".encode()))
    operands = case.draw(rng)
    types = [None if o is None else o.type for o in operands]
    values = [None if o is None or not o.constant else o.value for o in operands]
    kinds = ops.get(op).infer(case.attributes, types, values)
    assert len(kinds) == case.many
    content = litert.write(op, case.attributes, operands, [TensorType(None, k.dtype, case.outputs) for k in kinds])
    resolver = "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if op in litert.NO_REFERENCE_KERNEL else "BUILTIN_REF"
    arrays = [o.value for o in operands if o is not None and not o.constant]
    assert_same(content, arrays, resolver=resolver, tolerance=LOOSER.get(op, 1e-6))
