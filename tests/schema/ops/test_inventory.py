"""No op without a reference, a kernel or the reason why it has none, and tests that compare them with an oracle."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from runtime.kernels.table import BY_REFERENCE, LOWERINGS
from schema import ops
from schema.ops.base import Op
from tests.support import inventory
from tests.support.inventory import ELSEWHERE, KERNEL, LITERT, Entry

EXAMPLES = 4
"""That hypothesis's profile "brief" draws for each test: a fifth of what "ci" does, a fiftieth of "nightly"."""

NOT_DRAWN = frozenset({"IF", "WHILE"})
"""Ops whose parity tests are files of given kinds."""


@pytest.fixture(scope="module")
def counts(repository) -> Counter[Entry]:
    """What the drawn tests compare, found by running them."""
    return inventory.run("brief", ["-m", "hypothesis", *inventory.PARITY_TESTS, "--deselect", __file__])


@pytest.mark.parametrize("op", ops.NAMES)
def test_every_op_has_a_reference(op):
    kind = ops.get(op)
    assert kind.name == op
    assert kind.reference.__func__ is not Op.reference.__func__
    assert kind.infer.__func__ is not Op.infer.__func__


def test_every_op_has_a_kernel_or_the_reason_why_it_has_none():
    named = [op for names in BY_REFERENCE.values() for op in names.split()]
    assert len(named) == len(set(named))
    assert set(named) | set(LOWERINGS) == set(ops.NAMES)
    assert not set(named) & set(LOWERINGS)


@pytest.mark.slow
def test_every_op_has_a_parity_test_that_draws_its_cases(counts):
    drawn = {op: inventory.cases(counts, op, LITERT, ELSEWHERE) for op in ops.NAMES if op not in NOT_DRAWN}
    missing = {op: count for op, count in drawn.items() if count < EXAMPLES}
    assert not missing, missing


@pytest.mark.slow
def test_every_dtype_that_an_op_takes_is_compared(counts):
    """Of float32, int8 and int16: what `infer` accepts in place of another dtype."""
    accepted, compared = inventory.pairs(counts, inventory.ACCEPTED), inventory.pairs(counts, LITERT, ELSEWHERE)
    missing = sorted(accepted - compared)
    assert not missing, missing


@pytest.mark.slow
def test_every_kernel_is_compared_with_its_reference(counts):
    """The parity tests run their cases by the engine as well: whatever they draw that has a kernel is compared."""
    kernels = {op for op, _ in inventory.pairs(counts, KERNEL)}
    missing = sorted(set(LOWERINGS) - kernels)
    assert not missing, missing


def test_what_is_missing_is_seen():
    counts: Counter[Entry] = Counter({Entry(LITERT, "ADD", "int8", True): 3, Entry(KERNEL, "ADD", "int8", True): 3})
    counts[Entry(LITERT, "ADD", "float32", False)] = 2
    assert inventory.cases(counts, "ADD", LITERT, ELSEWHERE) == 3
    assert inventory.cases(counts, "ADD", LITERT, drawn=False) == 5
    assert inventory.cases(counts, "SUB", LITERT) == 0
    assert inventory.pairs(counts, LITERT) == {("ADD", "int8"), ("ADD", "float32")}
    assert re.search(r"ADD +3 +2 +INT8 float32|ADD +3 +2 +float32 INT8", inventory.report(counts))


def test_tests_that_fail_are_not_counted():
    with pytest.raises(RuntimeError, match="no tests ran"):
        inventory.run("brief", ["tests/schema/ops/test_binary.py", "-k", "no such test"])
