"""No op without a kernel or the reason why it has none, and without tests that compare it with an oracle.

That each has a reference is tested in test_attributes.py.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from runtime.kernels.table import BY_REFERENCE, LOWERINGS
from schema import ops
from tests.support import inventory
from tests.support.inventory import ELSEWHERE, KERNEL, LITERT, Entry

EXAMPLES = 4
"""That hypothesis's profile "brief" draws for each test: a fifth of what "ci" does, a fiftieth of "nightly"."""


def test_every_op_has_a_kernel_or_the_reason_why_it_has_none():
    named = [op for names in BY_REFERENCE.values() for op in names.split()]
    assert len(named) == len(set(named))
    assert set(named) | set(LOWERINGS) == set(ops.NAMES)
    assert not set(named) & set(LOWERINGS)


@pytest.mark.slow
def test_every_op_dtype_and_kernel_is_compared():
    """What the drawn tests compare is found by running them with a few examples each.

    The parity tests run their cases on the engine as well: whatever they draw that has a kernel is compared with it.
    """
    selected = ["-m", "hypothesis", "-k", "not tensorflow", "--deselect", __file__]
    counts = inventory.run("brief", [*selected, *inventory.PARITY_TESTS])
    drawn = {op: inventory.cases(counts, op, LITERT, ELSEWHERE) for op in ops.NAMES}
    missing = {op: count for op, count in drawn.items() if count < EXAMPLES}
    assert not missing, "no parity test that draws its cases"
    compared = inventory.pairs(counts, LITERT, ELSEWHERE)
    missing_dtypes = sorted(inventory.pairs(counts, inventory.ACCEPTED) - compared)
    assert not missing_dtypes, "what `infer` accepts in place of another dtype, of float32, int8 and int16"
    missing_kernels = set(LOWERINGS) - {op for op, _ in inventory.pairs(counts, KERNEL)}
    assert not missing_kernels, "no kernel was compared with its reference"


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
