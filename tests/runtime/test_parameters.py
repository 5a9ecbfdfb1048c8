import numpy as np
import pytest

from runtime.kernels.parameters import ParameterBlock

BLOCK = ParameterBlock("BLOCK", ["address", "count", "scale"], floats=["scale"])


def test_slots_are_packed_in_order():
    packed = BLOCK.pack({"scale": 0.5, "address": 2**62, "count": np.int32(-3)})
    assert packed.dtype == np.int64
    assert packed[:2].tolist() == [2**62, -3]
    assert packed.view(np.float64)[2] == 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"address": 1, "count": 2}, r"missing \['scale'\]"),
        ({"address": 1, "count": 2, "scale": 1.0, "size": 3}, r"unknown \['size'\]"),
        ({"address": 1.0, "count": 2, "scale": 1.0}, "address must be an integer"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(TypeError, match=message):
        BLOCK.pack(values)


@pytest.mark.parametrize(
    ("slots", "floats"), [(["a", "a"], []), (["a b"], []), (["a"], ["b"])], ids=["twice", "no identifier", "no slot"]
)
def test_wrong_declarations_are_refused(slots, floats):
    with pytest.raises(ValueError):
        ParameterBlock("WRONG", slots, floats)
