"""Parameter blocks of the kernels that multiply matrices: convolutions, dense layers, batched products (no numba here).

A product has `rows` (output pixels, or samples) and, for each of `groups`, `channels` outputs of `depth` products each.
Weights are packed in panels of a kernel's width, [group][panel][depth][width], the last one padded with zeros; bias and
multipliers are padded alike. A tile is `block` rows of one group times `tile_panels` panels.
"""

from runtime.kernels.parameters import ParameterBlock

# Where the rows come from.
ROWS_IN_MEMORY = 0  # `row_stride` bytes apart, from `input` on
ROWS_OF_WINDOWS = 1  # the windows of a convolution
ROWS_OF_TRANSPOSED_WINDOWS = 2  # of a transposed one: what an output pixel receives
ROWS_TO_COPY = 3  # as ROWS_IN_MEMORY, but not of a size that can be read there
ROWS_OF_LINES = 4  # the windows of a convolution, read from whole lines of the input
ROWS_OF_DEPTHWISE = 5  # what a depthwise convolution gives, made when it is needed

# How int8 kernels requantize, and what `multipliers` holds per channel (see runtime/kernels/requantize.py).
TFLITE_DOUBLE = 0  # int32, with int32 `shifts`
FP32_ROUND_EVEN = 1  # float32
EXACT = 2  # float64
# For many channels at once: TFLITE_DOUBLE whose first product is one of float64, and the same where what is below the
# zero point is clamped away (see runtime/lowering/lane_factors.py).
DOUBLE_BY_FLOAT64 = 3
DOUBLE_BY_FLOAT64_POSITIVE = 4

_PRODUCT = [
    "input",
    "weights",
    "bias",
    "output",
    "output_stride",  # bytes between rows of the output
    "rows",
    "block",
    "groups",
    "channels",  # of the output, per group
    "depth",
    "panels",  # per group
    "tile_panels",
    "panel_tiles",  # tiles that share rows and group
    "source",  # ROWS_...
    "row_stride",
]

# A window has d x h x w taps of `group_channels` of the input's `in_c` channels.
WINDOW_SLOTS = [
    *[f"in_{axis}" for axis in "dhwc"],
    *[f"out_{axis}" for axis in "dhw"],
    "group_channels",
    *[f"kernel_{axis}" for axis in "dhw"],
    *[f"stride_{axis}" for axis in "dhw"],
    *[f"dilation_{axis}" for axis in "dhw"],
    *[f"pad_{axis}" for axis in "dhw"],  # before the first pixel
]

# ROWS_OF_LINES: a block is `lines` lines of output, from lines of `line_bytes` of input.
_LINES = [
    "lines",
    "lines_in",  # of input that those need
    "line_blocks",  # of an image
    "line_bytes",
]

# The depth is summed up in `passes` over pieces, see runtime.kernels.matmul_f32: int64 arrays.
_PIECES = ["passes", "pass_ends", "piece_offsets", "piece_sizes"]

MATMUL_F32 = ParameterBlock(
    "MATMUL_F32",
    [
        *_PRODUCT,
        *WINDOW_SLOTS,
        *_LINES,
        "padding",
        "depthwise",  # ROWS_OF_DEPTHWISE: address of its block
        "room",  # bytes that it needs before the rows
        "residual",  # what is added to the result, 0: nothing
        "residual_stride",
        "gathered_stride",
        *_PIECES,
        "low",
        "high",
    ],
    floats=["low", "high"],
)

# Convolutions that follow each other line by line (runtime.kernels.line_chain_f32). A tile is `lines` lines of what the
# last stage gives; `line_blocks` of them are an image.
LINE_CHAIN_F32 = ParameterBlock(
    "LINE_CHAIN_F32", ["last", "stages", "lines", "line_blocks", "depthwise_room", "buffer", "gathered"]
)

# A product of one group, of rows that a depthwise convolution makes or not.
LINE_STAGE_F32 = ParameterBlock(
    "LINE_STAGE_F32",
    [
        "number",  # from 0, the first
        "before",  # address of the stage that makes its input, 0: that is in memory
        "product",  # address of its MATMUL_F32
        "depthwise",  # address of the DEPTHWISE_F32 before the product, 0: none
        "in_h",
        "out_h",
        "out_w",
        "stride_h",
        "pad_h",
        "reach",  # lines of input that one of output needs
        "most",  # lines computed at once
        "ring",  # lines that its output keeps, 0: it goes to memory
        "ring_offset",  # in the scratch
        "line_bytes",  # of a line of that
    ],
)

# Bytes of the input are taken as x + 128; depth is a multiple of 4. bias holds, besides the bias, what that and the
# input's zero point add. factors: see runtime.lowering.lane_factors, for panels in lane order; 0: panels are in the
# order of channels, and requantized by multipliers and shifts.
MATMUL_I8 = ParameterBlock(
    "MATMUL_I8",
    [*_PRODUCT, *WINDOW_SLOTS, "padding", "rule", "factors", "multipliers", "shifts", "zero_point", "low", "high"],
)

# Products by AMX tiles. A row is `steps` times `step_bytes` long, a multiple of 4 up to 64. Panels of 32 channels, in
# lane order, are packed as [step][2 tiles][step_bytes / 4][16 channels][4].
MATMUL_TILES_I8 = ParameterBlock(
    "MATMUL_TILES_I8",
    [
        *[slot for slot in _PRODUCT if slot not in ("bias", "depth")],
        *WINDOW_SLOTS,
        "padding",
        "rule",
        "factors",  # see runtime.lowering.lane_factors
        "start",  # int32 of each channel: what its sums start from
        "zero_point",
        "low",
        "high",
        "steps",
        "step_bytes",
        "step_offsets",  # int64 array: from a row's address to what each step reads
        "pairs_per_step",  # of the 16 pairs of rows that are requantized during the next product
        *_LINES,
        "line_rows",  # rows from one line to the next
        "segments",  # runs of rows in a block: 1, on over all lines, or one for each line
        "segment_rows",
        "copied",  # whether lines are copied, with their padding
        "tile_configuration",
    ],
)

# out[batch] = a[batch] @ b[batch], with matrices of any strides. A tile is `block` rows of one batch times one panel of
# columns of b, which the kernel packs itself.
_BATCHED = [
    "a",
    "b",
    "output",
    "a_offsets",  # int64 array: bytes from `a` to the matrix of each batch
    "b_offsets",
    "rows",
    "columns",
    "depth",
    "block",
    "row_blocks",
    "panels",
    "a_row",  # bytes between rows of a, and between its columns
    "a_column",
    "b_row",
    "b_column",
]

BATCH_MATMUL_F32 = ParameterBlock("BATCH_MATMUL_F32", [*_BATCHED, *_PIECES, "residual_stride"])

# One multiplier: `multipliers` and `shifts` repeat it for a whole panel.
BATCH_MATMUL_I8 = ParameterBlock(
    "BATCH_MATMUL_I8",
    [*_BATCHED, "a_zero", "b_zero", "rule", "multipliers", "shifts", "zero_point", "low", "high"],
)
