"""Fixed-width vectors and their operations for kernels. Imports numba.

    v = load(F32x16, address)
    v = fma(v, splat(F32x16, scale), w) + load(F32x16, address + 64)
    store(address, select(v < zero(F32x16), zero(F32x16), v))

The widths are those of AVX-512; LLVM splits them for narrower machines. All operations are plain LLVM, so there is no
instruction that a target could lack. Operators: + - * / on numbers, & | ^ << >> on integers (>> keeps the sign),
comparisons give masks for `select`. Operands are vectors of one type.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

I32 = ir.IntType(32)
_ELEMENTS = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int8: ir.IntType(8),
    types.int16: ir.IntType(16),
    types.int32: ir.IntType(32),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}


class Vector(types.Type):
    """`lanes` numbers of a numba type. Booleans make a mask."""

    def __init__(self, dtype: types.Type, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.llvm = ir.VectorType(_ELEMENTS[dtype], lanes)
        super().__init__(f"{dtype}x{lanes}")

    @property
    def is_float(self) -> bool:
        return isinstance(self.dtype, types.Float)

    @property
    def bytes(self) -> int:
        return self.dtype.bitwidth // 8 * self.lanes

    @property
    def mask(self) -> Vector:
        return Vector(types.boolean, self.lanes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, frontend_type.llvm)


F32x16 = Vector(types.float32, 16)
F64x16 = Vector(types.float64, 16)
I8x16 = Vector(types.int8, 16)
I8x32 = Vector(types.int8, 32)
I8x64 = Vector(types.int8, 64)
I16x16 = Vector(types.int16, 16)
I16x32 = Vector(types.int16, 32)
I32x16 = Vector(types.int32, 16)
I64x8 = Vector(types.int64, 8)
I64x16 = Vector(types.int64, 16)


def splat_value(builder, vector: Vector, value):
    """LLVM vector with the LLVM scalar `value` in every lane."""
    undefined = ir.Constant(vector.llvm, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, vector.lanes), [0] * vector.lanes))


def load_value(builder, llvm_type, address):
    """Unaligned load of `llvm_type` from an int64 address."""
    value = builder.load(builder.inttoptr(address, llvm_type.as_pointer()))
    value.align = 1
    return value


def _instance(type_):
    """The vector type that `F32x16`, written in a kernel, names; None for anything else."""
    inner = getattr(type_, "instance_type", None)
    return inner if isinstance(inner, Vector) else None


@intrinsic
def zero(typing_context, vector):
    """All lanes 0."""
    kind = _instance(vector)
    return kind and (kind(vector), lambda context, builder, sig, args: ir.Constant(kind.llvm, None))


@intrinsic
def splat(typing_context, vector, value):
    """`value`, converted to the lanes' type, in every lane."""
    kind = _instance(vector)
    return kind and (
        kind(vector, kind.dtype),
        lambda context, builder, sig, args: splat_value(builder, kind, args[1]),
    )


@intrinsic
def load(typing_context, vector, address):
    """The vector at an address, aligned or not."""
    kind = _instance(vector)
    return kind and (
        kind(vector, types.int64),
        lambda context, builder, sig, args: load_value(builder, kind.llvm, args[1]),
    )


@intrinsic
def load_splat(typing_context, vector, address):
    """The one element at an address in every lane."""
    kind = _instance(vector)
    return kind and (
        kind(vector, types.int64),
        lambda context, builder, sig, args: splat_value(builder, kind, load_value(builder, kind.llvm.element, args[1])),
    )


@intrinsic
def store(typing_context, address, value):
    """Store a vector, aligned or not."""

    def codegen(context, builder, sig, args):
        builder.store(args[1], builder.inttoptr(args[0], sig.args[1].llvm.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.int64, value), codegen


@intrinsic
def prefetch(typing_context, address):
    """Ask for the line of memory at an address, which need not be there, to be brought to the second-level cache."""

    def codegen(context, builder, sig, args):
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        kinds = [pointer.type, I32, I32, I32]
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0"
        )
        builder.call(function, [pointer, ir.Constant(I32, 0), ir.Constant(I32, 2), ir.Constant(I32, 1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _prefix_mask(builder, kind: Vector, count):
    lanes = ir.Constant(ir.VectorType(I32, kind.lanes), list(range(kind.lanes)))
    counts = splat_value(builder, Vector(types.int32, kind.lanes), builder.trunc(count, I32))
    return builder.icmp_signed("<", lanes, counts)


def _memory_intrinsic(builder, name, kind: Vector, returns, arguments):
    full = f"llvm.masked.{name}.v{kind.lanes}{'f' if kind.is_float else 'i'}{kind.dtype.bitwidth}.p0"
    known = builder.module.globals.get(full)
    return known or ir.Function(builder.module, ir.FunctionType(returns, arguments), full)


@intrinsic
def load_first(typing_context, vector, address, count):
    """The first `count` elements at an address, 0 in the other lanes; nothing beyond is read."""
    kind = _instance(vector)

    def codegen(context, builder, sig, args):
        pointer = builder.inttoptr(args[1], kind.llvm.as_pointer())
        mask = _prefix_mask(builder, kind, args[2])
        arguments = [pointer, ir.Constant(I32, 1), mask, ir.Constant(kind.llvm, None)]
        function = _memory_intrinsic(builder, "load", kind, kind.llvm, [a.type for a in arguments])
        return builder.call(function, arguments)

    return kind and (kind(vector, types.int64, types.int64), codegen)


@intrinsic
def store_first(typing_context, address, value, count):
    """Store the first `count` lanes; nothing beyond is written."""

    def codegen(context, builder, sig, args):
        kind = sig.args[1]
        pointer = builder.inttoptr(args[0], kind.llvm.as_pointer())
        arguments = [args[1], pointer, ir.Constant(I32, 1), _prefix_mask(builder, kind, args[2])]
        function = _memory_intrinsic(builder, "store", kind, ir.VoidType(), [a.type for a in arguments])
        builder.call(function, arguments)
        return context.get_dummy_value()

    return types.void(types.int64, value, types.int64), codegen


@intrinsic
def convert(typing_context, vector, value):
    """Lanes converted to another type: floats to integers truncate, narrowing integers drops high bits."""
    kind = _instance(vector)
    if kind is None or not isinstance(value, Vector) or value.lanes != kind.lanes:
        return None

    def codegen(context, builder, sig, args):
        if kind.is_float and value.is_float:
            wider = kind.dtype.bitwidth > value.dtype.bitwidth
            return (builder.fpext if wider else builder.fptrunc)(args[1], kind.llvm)
        if kind.is_float:
            return builder.sitofp(args[1], kind.llvm)
        if value.is_float:
            return builder.fptosi(args[1], kind.llvm)
        if value.dtype == types.boolean:
            return builder.zext(args[1], kind.llvm)
        wider = kind.dtype.bitwidth > value.dtype.bitwidth
        return (builder.sext if wider else builder.trunc)(args[1], kind.llvm)

    return kind(vector, value), codegen


@intrinsic
def bitcast(typing_context, vector, value):
    """The same bits as another vector type."""
    kind = _instance(vector)
    return kind and (kind(vector, value), lambda context, builder, sig, args: builder.bitcast(args[1], kind.llvm))


@intrinsic
def select(typing_context, mask, yes, no):
    """Lanes of `yes` where the mask is set, of `no` elsewhere."""
    if yes != no:
        return None
    return yes(mask, yes, no), lambda context, builder, sig, args: builder.select(*args)


@intrinsic
def fma(typing_context, a, b, c):
    """a * b + c, rounded once where the machine has such an instruction."""

    def codegen(context, builder, sig, args):
        name = f"llvm.fmuladd.v{a.lanes}f{a.dtype.bitwidth}"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(a.llvm, [a.llvm] * 3), name
        )
        return builder.call(function, args)

    return (a(a, a, a), codegen) if isinstance(a, Vector) and a == b == c and a.is_float else None


@intrinsic
def absolute(typing_context, value):
    """The magnitudes of floats."""

    def codegen(context, builder, sig, args):
        name = f"llvm.fabs.v{value.lanes}f{value.dtype.bitwidth}"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(value.llvm, [value.llvm]), name
        )
        return builder.call(function, args)

    return (value(value), codegen) if isinstance(value, Vector) and value.is_float else None


@intrinsic
def any_lane(typing_context, mask):
    """Whether a mask has a lane set."""

    def codegen(context, builder, sig, args):
        bits = ir.IntType(mask.lanes)
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), ir.Constant(bits, 0))

    return types.boolean(mask), codegen


@intrinsic
def sum_lanes(typing_context, value):
    """The sum of all lanes, halves added to halves."""

    def codegen(context, builder, sig, args):
        total, lanes = args[0], value.lanes
        add = builder.fadd if value.is_float else builder.add
        while lanes > 1:
            lanes //= 2
            halves = [
                builder.shuffle_vector(
                    total, total, ir.Constant(ir.VectorType(I32, lanes), [i + start for i in range(lanes)])
                )
                for start in (0, lanes)
            ]
            total = add(*halves)
        return builder.extract_element(total, ir.Constant(I32, 0))

    return value.dtype(value), codegen


@intrinsic
def largest_lane(typing_context, value):
    """The largest lane."""

    def codegen(context, builder, sig, args):
        best, lanes = args[0], value.lanes
        while lanes > 1:
            lanes //= 2
            a, b = (
                builder.shuffle_vector(
                    best, best, ir.Constant(ir.VectorType(I32, lanes), [i + start for i in range(lanes)])
                )
                for start in (0, lanes)
            )
            greater = builder.fcmp_ordered(">", a, b) if value.is_float else builder.icmp_signed(">", a, b)
            best = builder.select(greater, a, b)
        return builder.extract_element(best, ir.Constant(I32, 0))

    return value.dtype(value), codegen


def _register(name, result, emit, floats=True, integers=True):
    """Make the operator `name`, and its form that assigns, work on two vectors of one type."""
    for function in (getattr(operator, name), getattr(operator, f"i{name.strip('_')}", None)):
        if function is not None:
            _register_function(function, result, emit, floats, integers)


def _register_function(function, result, emit, floats, integers):
    @infer_global(function)
    class Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                kind = args[0]
                if floats if kind.is_float else integers:
                    return signature(result(kind), kind, kind)
            return None

    @lower_builtin(function, Vector, Vector)
    def lower(context, builder, sig, args):
        return emit(builder, sig.args[0], *args)


def _numbers(float_name, integer_name):
    return lambda builder, kind, a, b: getattr(builder, float_name if kind.is_float else integer_name)(a, b)


def _comparison(symbol):
    return lambda builder, kind, a, b: (builder.fcmp_ordered if kind.is_float else builder.icmp_signed)(symbol, a, b)


_register("add", lambda kind: kind, _numbers("fadd", "add"))
_register("sub", lambda kind: kind, _numbers("fsub", "sub"))
_register("mul", lambda kind: kind, _numbers("fmul", "mul"))
_register("truediv", lambda kind: kind, _numbers("fdiv", ""), integers=False)
_register("and_", lambda kind: kind, _numbers("", "and_"), floats=False)
_register("or_", lambda kind: kind, _numbers("", "or_"), floats=False)
_register("xor", lambda kind: kind, _numbers("", "xor"), floats=False)
_register("lshift", lambda kind: kind, _numbers("", "shl"), floats=False)
_register("rshift", lambda kind: kind, _numbers("", "ashr"), floats=False)
for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "==")):
    _register(_name, lambda kind: kind.mask, _comparison(_symbol))
