"""Vectors narrowed and interleaved within their 128-bit lanes, where most machines need one instruction. Imports numba.

Four I32x16 narrowed by `pack_words` and `pack_bytes` give 64 bytes whose lane L holds 4 elements of lane L of the first
vector, then 4 of the second, and so on. So what is computed with channel 16 L + 4 j + i in element 4 L + i of vector j
comes out in the order of channels (see runtime.lowering.panels.lane_order).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from runtime.native.primitives import DOT_U8_S8, PACK_BYTES, PACK_WORDS, ROUND_TO_EVEN
from runtime.simd.vector import I32, F32x16, F64x16, I8x64, I16x32, I32x16, Vector

LANE = 16  # bytes


def _primitive(builder, name, result: Vector, args):
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result.llvm, [arg.type for arg in args]), name
    )
    return builder.call(function, args)


@intrinsic
def dot_u8_s8(typing_context, sums, a, b):
    """sums[i] + the 4 products of unsigned bytes of a[i] with signed bytes of b[i]; all I32x16."""
    if not sums == a == b == I32x16:
        return None
    return I32x16(sums, a, b), lambda context, builder, sig, args: _primitive(builder, DOT_U8_S8, I32x16, args)


@intrinsic
def pack_words(typing_context, a, b):
    """I16x32 from two I32x16: saturated, each 128-bit lane that of a, then that of b."""
    if a != I32x16 or b != I32x16:
        return None
    return I16x32(a, b), lambda context, builder, sig, args: _primitive(builder, PACK_WORDS, I16x32, args)


@intrinsic
def pack_bytes(typing_context, a, b):
    """I8x64 from two I16x32: saturated, each 128-bit lane that of a, then that of b."""
    if a != I16x32 or b != I16x32:
        return None
    return I8x64(a, b), lambda context, builder, sig, args: _primitive(builder, PACK_BYTES, I8x64, args)


@intrinsic
def round_to_even(typing_context, value):
    """I32x16 from F32x16 of less than 2**22: the nearest integers, of two the even one."""
    if value != F32x16:
        return None
    return I32x16(value), lambda context, builder, sig, args: _primitive(builder, ROUND_TO_EVEN, I32x16, args)


def _tops_of_quarter(quarter: int):
    @intrinsic
    def tops(typing_context, value):
        """I32x16 of which 4 bytes of each 128-bit lane of an I8x64 are the top bytes, with zeros below."""

        def codegen(context, builder, sig, args):
            order = [64] * 64
            for i in range(16):
                order[4 * i + 3] = LANE * (i // 4) + 4 * quarter + i % 4
            none = ir.Constant(I8x64.llvm, None)
            bytes_ = builder.shuffle_vector(args[0], none, ir.Constant(ir.VectorType(I32, 64), order))
            return builder.bitcast(bytes_, I32x16.llvm)

        return (I32x16(value), codegen) if value == I8x64 else None

    return tops


# Of the four quarters of the lanes: narrowed by `pack_words` and `pack_bytes` they come out in order.
tops_0, tops_1, tops_2, tops_3 = (_tops_of_quarter(quarter) for quarter in range(4))


@intrinsic
def odd_elements(typing_context, value):
    """Each odd element in the place of its even neighbour too."""

    def codegen(context, builder, sig, args):
        order = [i | 1 for i in range(value.lanes)]
        return builder.shuffle_vector(args[0], args[0], ir.Constant(ir.VectorType(I32, value.lanes), order))

    return (value(value), codegen) if isinstance(value, Vector) else None


@intrinsic
def low_halves(typing_context, value):
    """I32x16 of the lower 32 bits of each float64."""

    def codegen(context, builder, sig, args):
        # As floats: LLVM takes the same of integers for a conversion, which takes five instructions instead of one.
        halves = builder.bitcast(args[0], ir.VectorType(ir.FloatType(), 2 * value.lanes))
        order = ir.Constant(ir.VectorType(I32, value.lanes), list(range(0, 2 * value.lanes, 2)))
        return builder.bitcast(builder.shuffle_vector(halves, halves, order), I32x16.llvm)

    return (I32x16(value), codegen) if value == F64x16 else None


def _interleave(builder, kind: Vector, args, high: bool):
    a, b = args
    per_lane = LANE * 8 // kind.dtype.bitwidth
    half = per_lane // 2
    order = [
        lane + half * high + i + which * kind.lanes
        for lane in range(0, kind.lanes, per_lane)
        for i in range(half)
        for which in (0, 1)
    ]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, kind.lanes), order))


@intrinsic
def interleave_low(typing_context, a, b):
    """The lower half of each 128-bit lane: a's and b's elements in turn."""
    if not isinstance(a, Vector) or a != b:
        return None
    return a(a, b), lambda context, builder, sig, args: _interleave(builder, a, args, False)


@intrinsic
def interleave_high(typing_context, a, b):
    """The upper half of each 128-bit lane: a's and b's elements in turn."""
    if not isinstance(a, Vector) or a != b:
        return None
    return a(a, b), lambda context, builder, sig, args: _interleave(builder, a, args, True)


def _store_halves(first: int):
    def codegen(context, builder, sig, args):
        whole = builder.bitcast(args[1], ir.VectorType(ir.IntType(64), 8))
        order = ir.Constant(ir.VectorType(I32, 4), [first, first + 2, first + 4, first + 6])
        half = builder.shuffle_vector(whole, whole, order)
        builder.store(half, builder.inttoptr(args[0], half.type.as_pointer())).align = 1
        return context.get_dummy_value()

    return codegen


@intrinsic
def store_even_halves(typing_context, address, value):
    """Store 32 bytes: the lower half of every 128-bit lane of an I8x64."""
    return (types.void(types.int64, value), _store_halves(0)) if value == I8x64 else None


@intrinsic
def store_odd_halves(typing_context, address, value):
    """Store 32 bytes: the upper half of every 128-bit lane of an I8x64."""
    return (types.void(types.int64, value), _store_halves(1)) if value == I8x64 else None
