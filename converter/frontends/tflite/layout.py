"""The parts of TFLite's file format that are read, for the verifying reader of `schema.flatbuffer`.

Tables and the order of their fields are those of tensorflow/compiler/mlir/lite/schema/schema.fbs, version 3. A field
is written "name:type=default", the default being 0, false or absent where it is not said; "skip" fields are not read.
Tables that are not listed here have no field that is read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from converter.frontends.tflite.package import members
from schema.flatbuffer import SCALARS, Field, Layout

IDENTIFIER = b"TFL3"
ENUMS = dict.fromkeys(
    """TensorType Padding ActivationFunctionType MirrorPadMode FullyConnectedOptionsWeightsFormat DimensionType
    LSTMKernelType""".split(),
    "byte",
)
UNIONS = ("BuiltinOptions", "SparseIndexVector")

_FUSED = "fused_activation_function:ActivationFunctionType"
_STRIDES = "padding:Padding stride_w:int stride_h:int"
_DILATIONS = "dilation_w_factor:int=1 dilation_h_factor:int=1"
_SUMS = f"{_FUSED} pot_scale_int16:bool=1"

TABLES = {
    # ---- the model ----
    "Model": """version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:skip buffers:[Buffer]
        metadata_buffer:skip metadata:skip signature_defs:[SignatureDef]""",
    "OperatorCode": "deprecated_builtin_code:byte custom_code:string version:int=1 builtin_code:int",
    "SubGraph": "tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator] name:string",
    "Buffer": "data:[ubyte] offset:ulong size:ulong",
    "SignatureDef": """inputs:[TensorMap] outputs:[TensorMap] signature_key:string deprecated_tag:skip
        subgraph_index:uint""",
    "TensorMap": "name:string tensor_index:uint",
    "Tensor": """shape:[int] type:TensorType buffer:uint name:string quantization:QuantizationParameters
        is_variable:bool sparsity:SparsityParameters shape_signature:[int]""",
    "QuantizationParameters": """min:skip max:skip scale:[float] zero_point:[long] details_type:ubyte details:skip
        quantized_dimension:int""",
    "SparsityParameters": "traversal_order:[int] block_map:[int] dim_metadata:[DimensionMetadata]",
    "DimensionMetadata": """format:DimensionType dense_size:int array_segments_type:ubyte
        array_segments:SparseIndexVector array_indices_type:ubyte array_indices:SparseIndexVector""",
    "Int32Vector": "values:[int]",
    "Uint16Vector": "values:[ushort]",
    "Uint8Vector": "values:[ubyte]",
    "Operator": """opcode_index:uint inputs:[int] outputs:[int] builtin_options_type:ubyte
        builtin_options:BuiltinOptions custom_options:[ubyte] custom_options_format:skip mutating_variable_inputs:skip
        intermediates:[int]""",
    # ---- options of operators ----
    "Conv2DOptions": f"{_STRIDES} {_FUSED} {_DILATIONS}",
    "DepthwiseConv2DOptions": f"{_STRIDES} depth_multiplier:int {_FUSED} {_DILATIONS}",
    "TransposeConvOptions": f"{_STRIDES} {_FUSED}",
    "Conv3DOptions": f"""padding:Padding stride_d:int stride_w:int stride_h:int {_FUSED} dilation_d_factor:int=1
        {_DILATIONS}""",
    "Pool2DOptions": f"{_STRIDES} filter_width:int filter_height:int {_FUSED}",
    "FullyConnectedOptions": f"{_FUSED} weights_format:FullyConnectedOptionsWeightsFormat keep_num_dims:bool",
    "BatchMatMulOptions": "adj_x:bool adj_y:bool",
    "AddOptions": _SUMS,
    "SubOptions": _SUMS,
    "MulOptions": _FUSED,
    "DivOptions": _FUSED,
    "SequenceRNNOptions": f"time_major:bool {_FUSED}",
    "BidirectionalSequenceRNNOptions": f"time_major:bool {_FUSED} merge_outputs:bool",
    "UnidirectionalSequenceLSTMOptions": f"{_FUSED} cell_clip:float proj_clip:float time_major:bool",
    "BidirectionalSequenceLSTMOptions": f"""{_FUSED} cell_clip:float proj_clip:float merge_outputs:bool
        time_major:bool=1""",
    "SVDFOptions": f"rank:int {_FUSED}",
    "LeakyReluOptions": "alpha:float",
    "GeluOptions": "approximate:bool",
    "SoftmaxOptions": "beta:float",
    "L2NormOptions": _FUSED,
    "LocalResponseNormalizationOptions": "radius:int bias:float alpha:float beta:float",
    "ReducerOptions": "keep_dims:bool",
    "CumsumOptions": "exclusive:bool reverse:bool",
    "ReshapeOptions": "new_shape:[int]",
    "ConcatenationOptions": f"axis:int {_FUSED}",
    "SplitOptions": "num_splits:int",
    "SplitVOptions": "num_splits:int",
    "PackOptions": "values_count:int axis:int",
    "UnpackOptions": "num:int axis:int",
    "StridedSliceOptions": """begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int shrink_axis_mask:int
        offset:bool""",
    "MirrorPadOptions": "mode:MirrorPadMode",
    "GatherOptions": "axis:int batch_dims:int",
    "SqueezeOptions": "squeeze_dims:[int]",
    "SpaceToDepthOptions": "block_size:int",
    "DepthToSpaceOptions": "block_size:int",
    "ResizeBilinearOptions": "new_height:skip new_width:skip align_corners:bool half_pixel_centers:bool",
    "ResizeNearestNeighborOptions": "align_corners:bool half_pixel_centers:bool",
    "OneHotOptions": "axis:int",
    "IfOptions": "then_subgraph_index:int else_subgraph_index:int",
    "WhileOptions": "cond_subgraph_index:int body_subgraph_index:int",
    "CallOnceOptions": "init_subgraph_index:int",
    "VarHandleOptions": "container:string shared_name:string",
}


@cache
def layout() -> Layout:
    """The layout, with the numbers of enums and unions from the package `tflite`."""
    enums = {name: (width, members(name)) for name, width in ENUMS.items()}
    unions = {name: members(name) for name in UNIONS}
    tables: dict[str, tuple[Field, ...]] = {member: () for union in unions.values() for member in union}
    tables |= {name: tuple(_field(text) for text in fields.split()) for name, fields in TABLES.items()}
    return Layout(tables, enums, unions)


def defaults(table: str) -> dict[str, Any]:
    """What the fields of a table are that is not there."""
    numbers = {name: {v: k for k, v in values.items()} for name, (_, values) in layout().enums.items()}
    return {f.name: numbers[f.type][f.default] if f.type in ENUMS else f.default for f in layout().tables[table]}


def _field(text: str) -> Field:
    name, _, rest = text.partition(":")
    kind, _, default = rest.partition("=")
    if kind in ENUMS or kind in SCALARS:
        number = int(default or 0)
        return Field(name, kind, bool(number) if kind == "bool" else number)
    return Field(name, kind)
