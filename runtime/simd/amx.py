"""AMX: the eight tile registers of 16 rows of 64 bytes, and products of tiles. Imports numba.

Only kernels that the table lists under "amx" may use them. Each thread loads a configuration first and releases the
tiles at the end, so that what the operating system saves of a thread stays small. Tile numbers are literals.
Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_POINTER = _I8.as_pointer()


def _call(context, builder, name: str, args):
    declared = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(ir.VoidType(), [arg.type for arg in args]), name
    )
    builder.call(declared, args)
    return context.get_dummy_value()


def _number(type_):
    return ir.Constant(_I8, type_.literal_value) if isinstance(type_, types.IntegerLiteral) else None


@intrinsic
def load_tile_configuration(typing_context, address):
    """From 64 bytes: palette 1, bytes per row of tile i as uint16 at 16 + 2 i, its rows as uint8 at 48 + i."""

    def codegen(context, builder, sig, args):
        return _call(context, builder, "llvm.x86.ldtilecfg", [builder.inttoptr(args[0], _POINTER)])

    return types.void(types.int64), codegen


@intrinsic
def release_tiles(typing_context):
    """No tile is in use any longer."""
    return types.void(), lambda context, builder, sig, args: _call(context, builder, "llvm.x86.tilerelease", [])


@intrinsic(prefer_literal=True)
def load_tile_rows(typing_context, tile, address, stride):
    """Rows `stride` bytes apart; a stride of 0 repeats one row."""
    number = _number(tile)

    def codegen(context, builder, sig, args):
        arguments = [number, builder.inttoptr(args[1], _POINTER), args[2]]
        return _call(context, builder, "llvm.x86.tileloadd64", arguments)

    return number and (types.void(tile, types.int64, types.int64), codegen)


@intrinsic(prefer_literal=True)
def clear_tile(typing_context, tile):
    """Zeros."""
    number = _number(tile)
    return number and (
        types.void(tile),
        lambda context, builder, sig, args: _call(context, builder, "llvm.x86.tilezero", [number]),
    )


@intrinsic(prefer_literal=True)
def store_tile_rows(typing_context, tile, address, stride):
    """Rows to memory, `stride` bytes apart."""
    number = _number(tile)

    def codegen(context, builder, sig, args):
        arguments = [number, builder.inttoptr(args[1], _POINTER), args[2]]
        return _call(context, builder, "llvm.x86.tilestored64", arguments)

    return number and (types.void(tile, types.int64, types.int64), codegen)


@intrinsic(prefer_literal=True)
def add_tile_product_s8_s8(typing_context, sums, a, b):
    """sums[m, n] += the products of row m of `a` with the columns of 4 bytes n of `b`, all signed bytes."""
    numbers = [_number(tile) for tile in (sums, a, b)]

    def codegen(context, builder, sig, args):
        return _call(context, builder, "llvm.x86.tdpbssd", numbers)

    return (types.void(sums, a, b), codegen) if all(numbers) else None
