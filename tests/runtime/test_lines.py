"""Convolutions whose rows are read from whole lines of the input: sizes at which that is done, and their borders."""

import numpy as np
import pytest

from runtime.kernels import matmul_parameters as parameters
from runtime.kernels.table import find_kernel
from runtime.lowering import matmul_float, matmul_tiles
from runtime.lowering.products import Windows
from schema import Node
from schema.ops.attributes import Conv2DAttributes
from tests.support.engine import compare
from tests.support.operands import float_operands, int8_operands

# (input shape, weights shape, attributes): what differs is how lines are cut, padded and joined.
CASES = {
    "first layer, stride 2, padded after": ((1, 67, 66, 3), (33, 3, 3, 3), {"stride": 2, "padding": "SAME"}),
    "first layer, nothing padded": ((1, 71, 71, 4), (16, 3, 3, 4), {"stride": 2}),
    "7 x 7 of 3 channels": ((1, 75, 75, 3), (64, 7, 7, 3), {"stride": 2}),
    "two images": ((2, 15, 14, 16), (40, 3, 3, 16), {"padding": "SAME"}),
    "lines shorter than a block of rows": ((1, 9, 7, 64), (32, 3, 3, 64), {"padding": "SAME"}),
    "one line": ((1, 1, 90, 8), (17, 1, 5, 8), {"padding": "SAME"}),
    "unequal strides": ((1, 20, 90, 8), (24, 3, 5, 8), {"stride_h": 1, "stride_w": 2, "padding": "SAME"}),
    "stride over lines only": ((1, 21, 40, 8), (24, 3, 3, 8), {"stride_h": 2, "stride_w": 1}),
    "dilated": ((1, 30, 34, 16), (20, 3, 3, 16), {"dilation_h": 2, "dilation_w": 3, "padding": "SAME"}),
    "explicit padding": ((1, 12, 40, 20), (32, 3, 3, 20), {"padding": "EXPLICIT", "pads": (3, 0, 1, 2)}),
    "many blocks of lines": ((1, 120, 100, 12), (8, 3, 3, 12), {"padding": "SAME"}),
    "channels of several steps": ((1, 10, 30, 144), (70, 3, 3, 144), {"padding": "SAME"}),
    "window wider than the image": ((1, 40, 3, 8), (16, 3, 5, 8), {"padding": "SAME"}),
}


def attributes(stride=1, **fields):
    given = {"stride_h": stride, "stride_w": stride, "activation": "RELU6", **fields}
    return Conv2DAttributes(**given)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_float(case, threads, rng):
    x_shape, w_shape, fields = CASES[case]
    x, input_, constants, y = float_operands(rng, x_shape, w_shape, w_shape[0], True)
    node = Node("CONV_2D", [input_, *constants], [y], attributes(**fields))
    compare([node], [input_], [y], [x], rtol=1e-5, threads=threads)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", ["TFLITE_DOUBLE", "FP32_ROUND_EVEN"])
def test_int8(case, rule, rng):
    x_shape, w_shape, fields = CASES[case]
    depth = int(np.prod(w_shape[1:]))
    x, input_, constants, y = int8_operands(rng, x_shape, w_shape, w_shape[0], True, depth=depth)
    node = Node("CONV_2D", [input_, *constants], [y], attributes(**fields))
    compare([node], [input_], [y], [x], threads=2, requantization=rule)


def windows(x_shape, w_shape, fields) -> tuple[Windows, int]:
    _, in_h, in_w, in_c = x_shape
    out, kernel_h, kernel_w, _ = w_shape
    stride = fields.get("stride", 1)
    out_h, out_w = (-(-in_h // stride), -(-in_w // stride)) if fields.get("padding") == "SAME" else (34, 34)
    slots = dict.fromkeys(parameters.WINDOW_SLOTS, 1) | {f"pad_{axis}": 0 for axis in "dhw"}
    slots |= {"in_h": in_h, "in_w": in_w, "in_c": in_c, "kernel_h": kernel_h, "kernel_w": kernel_w}
    slots |= {"out_h": out_h, "out_w": out_w, "stride_h": stride, "stride_w": stride, "group_channels": in_c}
    depth = kernel_h * kernel_w * in_c
    return Windows(parameters.ROWS_OF_WINDOWS, out, 1, depth, slots), out_h * out_w


def test_what_is_read_from_lines():
    first = windows(*CASES["first layer, stride 2, padded after"])
    assert matmul_tiles.lines(*first, 2)["segments"] > 1
    assert matmul_float.lines(*first, 2, 12)["lines"] >= 1
    on_and_on = windows(*CASES["lines shorter than a block of rows"])
    assert matmul_tiles.lines(*on_and_on, 1)["segments"] == 1
    assert matmul_float.lines(*on_and_on, 1, 12) is None


@pytest.mark.skipif(find_kernel("matmul_tiles", "int8") is None, reason="this CPU has no tiles")
def test_a_product_without_the_proof_that_it_fits_is_computed_all_the_same(rng):
    """Multipliers above 1 need a shift to the left, which the kernel of tiles does not know."""
    x, input_, constants, y = int8_operands(rng, (1, 8, 8, 16), (32, 1, 1, 16), 32, True)
    y.quantization = type(y.quantization)(np.float32(1e-4), -3)
    compare([Node("CONV_2D", [input_, *constants], [y], Conv2DAttributes())], [input_], [y], [x])
