"""Comparison of an op's reference with LiteRT's, and of the op's kernel with its reference: all bytes for integers, a
relative error for floats. What is compared is counted (tests/support/inventory.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema import Quantization, TensorType, ops
from tests.support import inventory, litert
from tests.support.engine import assert_kernel
from tests.support.litert import Operand


def run_reference(
    op: str,
    attributes: Any,
    inputs: Sequence[Operand | None],
    quantizations: Sequence[Quantization | None] = (None,),
) -> list[np.ndarray]:
    """Check, infer and run one op of the schema; what `infer` says must be what `reference` gives.

    quantizations: of the outputs.
    """
    kind = ops.get(op)
    kind.check(attributes)
    types = [None if o is None else o.type for o in inputs]
    values = [None if o is None else o.value for o in inputs]
    inferred = kind.infer(attributes, types, values)
    outputs = [TensorType(t.shape, t.dtype, q) for t, q in zip(inferred, quantizations, strict=True)]
    results = kind.reference(attributes, values, types, outputs)
    for result, expected in zip(results, outputs, strict=True):
        assert isinstance(result, np.ndarray)
        assert TensorType(result.shape, result.dtype) == TensorType(expected.shape, expected.dtype)
    _check_partial_inference(op, attributes, types, values, outputs)
    inventory.probe(op, attributes, types, outputs)
    return results


def _check_partial_inference(op: str, attributes: Any, types: Any, values: Any, outputs: list[TensorType]) -> None:
    """With dimensions, ranks or values unknown, `infer` must still agree with what it says when all is known."""
    kind = ops.get(op)
    blind = [None] * len(types)
    dims = [t and TensorType((None,) * len(t.shape), t.dtype, t.quantization) for t in types]
    batch = [t and TensorType((None, *t.shape[1:]) if t.shape else (), t.dtype, t.quantization) for t in types]
    ranks = [t and TensorType(None, t.dtype, t.quantization) for t in types]
    for given, known in ((types, blind), (dims, blind), (batch, values), (ranks, blind), (ranks, values)):
        for less, full in zip(kind.infer(attributes, given, known), outputs, strict=True):
            assert less.dtype == full.dtype
            if less.shape is not None:
                assert len(less.shape) == len(full.shape)
                assert all(a in (None, b) for a, b in zip(less.shape, full.shape, strict=True)), (less, full)


def assert_parity(
    op: str,
    attributes: Any,
    inputs: Sequence[Operand | None],
    output: Quantization | None = None,
    *,
    tolerance: float = 1e-6,
    within: np.ndarray | bool = True,
) -> np.ndarray:
    """Our reference against LiteRT's reference kernel; returns the result.

    Integers are equal to the bit. Floats differ by at most `tolerance` times the largest magnitude of the output.
    within: which elements LiteRT's kernel defines.
    """
    (ours,) = assert_all_parity(op, attributes, inputs, (output,), tolerance=tolerance, within=within)
    return ours


def assert_all_parity(
    op: str,
    attributes: Any,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Quantization | None],
    *,
    tolerance: float = 1e-6,
    within: np.ndarray | bool = True,
) -> list[np.ndarray]:
    """assert_parity for ops of several outputs, whose quantizations are given."""
    ours = run_reference(op, attributes, inputs, outputs)
    kinds = [TensorType(None, array.dtype, q) for array, q in zip(ours, outputs, strict=True)]
    for mine, theirs in zip(ours, litert.run(op, attributes, inputs, kinds), strict=True):
        assert_equal(mine, theirs if within is True else np.where(within, theirs, mine), tolerance)
    inventory.record(inventory.LITERT, op, [None if o is None else o.type for o in inputs], kinds)
    assert_kernel(op, attributes, inputs, outputs, ours, tolerance)
    return ours


def assert_agrees(
    op: str,
    attributes: Any,
    inputs: Sequence[Operand | None],
    expected: np.ndarray,
    output: Quantization | None = None,
    *,
    tolerance: float = 1e-6,
    steps: float = 0.5,
    within: np.ndarray | bool = True,
) -> np.ndarray:
    """Our reference, and the kernel, against numbers from elsewhere: of ops that LiteRT has no kernel for.

    Plain integers are equal. Floats differ by at most `tolerance` times the largest magnitude; quantized integers from
    the real number that is expected by as many steps of the output, 0.5 where they are the nearest to it.
    within: which elements are looked at.
    """
    (ours,) = run_reference(op, attributes, inputs, (output,))
    assert ours.shape == np.shape(expected)
    if output is None:
        assert_equal(np.where(within, ours, 0), np.where(within, expected, 0).astype(ours.dtype), tolerance)
    else:
        info = np.iinfo(ours.dtype)
        exact = np.asarray(expected, np.float64) / float(output.scale[0]) + int(output.zero_point[0])
        error = np.abs(ours - np.clip(exact, info.min, info.max))
        assert np.all(error <= steps + 1e-3, where=within), np.max(error, where=within, initial=0)
    kind = TensorType(None, ours.dtype, output)
    inventory.record(inventory.ELSEWHERE, op, [None if o is None else o.type for o in inputs], [kind])
    assert_kernel(op, attributes, inputs, (output,), [ours], tolerance)
    return ours


def assert_equal(ours: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> None:
    """Integers equal to the bit, floats close; dtype and shape the same."""
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    if ours.dtype.kind == "f":
        assert_close(ours, expected, tolerance)
    else:
        np.testing.assert_array_equal(ours, expected)


def assert_close(ours: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> None:
    """Floats equal within `tolerance` times the largest finite magnitude; infinities and NaN where expected."""
    expected = np.asarray(expected)
    assert ours.shape == expected.shape
    finite = np.isfinite(expected)
    largest = np.abs(expected[finite]).max(initial=np.finfo(np.float32).tiny)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * largest)
