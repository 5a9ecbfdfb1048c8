import numpy as np
import pytest

from converter.quantize import Options
from schema import InputError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "int4"}, "quantize is 'int4'; it is one of none, int8"),
        ({"method": "int8", "io_dtype": "uint8"}, "io_dtype is 'uint8'"),
        ({"method": "float16", "io_dtype": "int8"}, "needs quantize='int8'"),
        ({"method": "int8", "observer": "mean"}, "observer is 'mean'"),
        ({"keep_float": "conv*"}, "keep_float is for quantize='int8' or"),
        ({"method": "float16", "int16": "conv*"}, "int16 is for quantize='int8', not 'float16'"),
        ({"method": "float16", "equalize": True}, "equalize is for"),
        ({"method": "float16", "bias_correction": True}, "bias_correction is for"),
        ({"method": "int8", "keep_float": 7}, "keep_float is 7: a pattern"),
        ({"method": "int8", "int16": ["conv", None]}, "int16 is .*a pattern"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Options(**arguments)


def test_patterns_are_one_several_or_separated_by_commas():
    assert Options("int8", keep_float="conv*").keep_float == ("conv*",)
    assert Options("int8", keep_float="a, b,").keep_float == ("a", "b")
    assert Options("int8", int16=["a", "b/*"]).int16 == ("a", "b/*")
    assert Options("int8").keep_float == ()


def test_calibration_data_is_for_integer_activations():
    Options("int8").check_calibration(np.zeros(3))
    Options("int8-weights").check_calibration(np.zeros(3))
    Options("none").check_calibration(None)
    with pytest.raises(InputError, match="calibration data is for quantize='int8'"):
        Options("none").check_calibration(np.zeros(3))
