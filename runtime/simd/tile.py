"""Register tiles: `rows` x `columns` vectors of accumulators that stay in registers over a loop. Imports numba.

acc = zero_tile(F32x16, 6, 2)
for k in range(depth):
    acc = add_outer_product(acc, a + 4 * k, row_stride, b + 128 * k)
store_tile(acc, buffer, 128)
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

from runtime.native.primitives import DOT_S16, DOT_U8_S8
from runtime.simd.vector import Vector, _instance, load_value, splat_value

_I64 = ir.IntType(64)


class Tile(types.Type):
    """`rows` x `columns` vectors of one type."""

    def __init__(self, vector: Vector, rows: int, columns: int) -> None:
        self.vector, self.rows, self.columns = vector, rows, columns
        self.llvm = ir.ArrayType(vector.llvm, rows * columns)
        super().__init__(f"tile({vector}, {rows}x{columns})")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, frontend_type.llvm)


def _tile_type(vector, rows, columns) -> Tile | None:
    kind = _instance(vector)
    literal = isinstance(rows, types.IntegerLiteral) and isinstance(columns, types.IntegerLiteral)
    return Tile(kind, rows.literal_value, columns.literal_value) if kind is not None and literal else None


@intrinsic(prefer_literal=True)
def zero_tile(typing_context, vector, rows, columns):
    """A tile of zeros; `rows` and `columns` are constants."""
    kind = _tile_type(vector, rows, columns)
    return kind and (kind(vector, rows, columns), lambda context, builder, sig, args: ir.Constant(kind.llvm, None))


@intrinsic(prefer_literal=True)
def row_tile(typing_context, vector, rows, columns, address):
    """A tile whose rows all are the `columns` vectors at `address`."""
    kind = _tile_type(vector, rows, columns)
    if kind is None:
        return None

    def codegen(context, builder, sig, args):
        loaded = [
            load_value(builder, kind.vector.llvm, _at(builder, args[3], kind.vector.bytes * c))
            for c in range(kind.columns)
        ]
        return _build(builder, kind, [loaded[c] for _ in range(kind.rows) for c in range(kind.columns)])

    return kind(vector, rows, columns, types.int64), codegen


@intrinsic(prefer_literal=True)
def load_tile(typing_context, vector, rows, columns, address, row_stride):
    """A tile from rows at `address`, `row_stride` bytes apart; a stride of 0 repeats one row."""
    kind = _tile_type(vector, rows, columns)
    if kind is None:
        return None

    def codegen(context, builder, sig, args):
        vectors = []
        for r in range(kind.rows):
            row = builder.add(args[3], builder.mul(args[4], ir.Constant(_I64, r)))
            vectors += [
                load_value(builder, kind.vector.llvm, _at(builder, row, kind.vector.bytes * c))
                for c in range(kind.columns)
            ]
        return _build(builder, kind, vectors)

    return kind(vector, rows, columns, types.int64, types.int64), codegen


@intrinsic
def add_outer_product(typing_context, tile, a, row_stride, b):
    """tile[r, c] += (the float32 at a + r * row_stride) * (the vector c at b)."""

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        vector = kind.vector
        name = f"llvm.fmuladd.v{vector.lanes}f{vector.dtype.bitwidth}"
        multiply_add = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(vector.llvm, [vector.llvm] * 3), name
        )
        return _outer(builder, kind, args, lambda acc, x, y: builder.call(multiply_add, [x, y, acc]))

    return (tile(tile, types.int64, types.int64, types.int64), codegen) if isinstance(tile, Tile) else None


@intrinsic
def add_outer_dot_u8_s8(typing_context, tile, a, row_stride, b):
    """tile[r, c][lane] += sum of 4 products: unsigned bytes at a + r * row_stride times signed bytes of lane at b."""

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        llvm = kind.vector.llvm
        dot = builder.module.globals.get(DOT_U8_S8) or ir.Function(
            builder.module, ir.FunctionType(llvm, [llvm] * 3), DOT_U8_S8
        )
        return _outer(builder, kind, args, lambda acc, x, y: builder.call(dot, [acc, x, y]))

    return (tile(tile, types.int64, types.int64, types.int64), codegen) if isinstance(tile, Tile) else None


@intrinsic
def add_outer_dot_s16_s8(typing_context, tile, a, row_stride, b):
    """tile[r, c][lane] += sum of 2 products: int16 at a + r * row_stride times int8 of lane at b."""

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        llvm = kind.vector.llvm
        dot = builder.module.globals.get(DOT_S16) or ir.Function(
            builder.module, ir.FunctionType(llvm, [llvm] * 3), DOT_S16
        )
        pairs = 2 * kind.vector.lanes
        narrow, wide = (ir.VectorType(ir.IntType(bits), pairs) for bits in (8, 16))

        def column(c):
            value = load_value(builder, narrow, _at(builder, args[3], pairs * c))
            return builder.bitcast(builder.sext(value, wide), llvm)

        return _outer(builder, kind, args, lambda acc, x, y: builder.call(dot, [acc, x, y]), column)

    return (tile(tile, types.int64, types.int64, types.int64), codegen) if isinstance(tile, Tile) else None


@intrinsic
def clamp_tile(typing_context, tile, low, high):
    """All lanes not below `low` and not above `high`; NaN stays NaN."""

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        low, high = (splat_value(builder, kind.vector, bound) for bound in args[1:])
        vectors = []
        for i in range(kind.rows * kind.columns):
            value = builder.extract_value(args[0], i)
            value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
            vectors.append(builder.select(builder.fcmp_ordered(">", value, high), high, value))
        return _build(builder, kind, vectors)

    return (tile(tile, tile.vector.dtype, tile.vector.dtype), codegen) if isinstance(tile, Tile) else None


@intrinsic
def add_tiles(typing_context, a, b):
    """The sums of two tiles' elements."""

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        add = builder.fadd if kind.vector.is_float else builder.add
        pairs = [[builder.extract_value(tile, i) for tile in args] for i in range(kind.rows * kind.columns)]
        return _build(builder, kind, [add(*pair) for pair in pairs])

    return (a(a, b), codegen) if isinstance(a, Tile) and a == b else None


@intrinsic
def store_tile(typing_context, tile, address, row_stride):
    """Store the rows of a tile, `row_stride` bytes apart."""

    def codegen(context, builder, sig, args):
        kind, size = sig.args[0], sig.args[0].vector.bytes
        for r in range(kind.rows):
            row = builder.add(args[1], builder.mul(args[2], ir.Constant(_I64, r)))
            for c in range(kind.columns):
                pointer = builder.inttoptr(_at(builder, row, size * c), kind.vector.llvm.as_pointer())
                builder.store(builder.extract_value(args[0], r * kind.columns + c), pointer).align = 1
        return context.get_dummy_value()

    return types.void(tile, types.int64, types.int64), codegen


def _at(builder, address, offset: int):
    return builder.add(address, ir.Constant(_I64, offset))


def _build(builder, kind: Tile, vectors):
    tile = ir.Constant(kind.llvm, ir.Undefined)
    for i, vector in enumerate(vectors):
        tile = builder.insert_value(tile, vector, i)
    return tile


def _outer(builder, kind: Tile, args, combine, column=None):
    """column: gives vector c at b where that is not simply there."""
    tile, a, row_stride, b = args
    vector = kind.vector

    def as_it_is(c):
        return load_value(builder, vector.llvm, _at(builder, b, vector.bytes * c))

    columns = [(column or as_it_is)(c) for c in range(kind.columns)]
    results = []
    for r in range(kind.rows):
        row = builder.add(a, builder.mul(row_stride, ir.Constant(_I64, r)))
        x = splat_value(builder, vector, load_value(builder, vector.llvm.element, row))
        for c in range(kind.columns):
            results.append(combine(builder.extract_value(tile, r * kind.columns + c), x, columns[c]))
    return _build(builder, kind, results)
