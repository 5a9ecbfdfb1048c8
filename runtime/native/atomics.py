"""Atomic memory access, the spin hint and calls through addresses, for native code written in Python. Imports numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from runtime.native.primitives import PAUSE

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _pointer(builder, address):
    return builder.inttoptr(address, _I64.as_pointer())


@intrinsic
def load_acquire(typing_context, address):
    """The int64 at `address`; later accesses of this thread see what was written before the store it reads."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_pointer(builder, args[0]), "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def store_release(typing_context, address, value):
    """Store an int64 after all earlier accesses of this thread."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[1], _pointer(builder, args[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def fetch_add(typing_context, address, value):
    """Add to the int64 at `address`; gives what was there before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def exchange(typing_context, address, value):
    """Replace the int64 at `address`; gives what was there before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("xchg", _pointer(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def compare_exchange(typing_context, address, expected, value):
    """Store `value` if the int64 at `address` is `expected`; gives whether it was."""

    def codegen(context, builder, signature, args):
        pair = builder.cmpxchg(_pointer(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


@intrinsic
def pause(typing_context):
    """Tell the CPU that this thread spins."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.globals.get(PAUSE) or ir.Function(builder.module, kind, PAUSE), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def call_kernel(typing_context, kernel, params, begin, end, scratch):
    """Call the kernel at address `kernel`; gives its status."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_I32, [_I64] * 4)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int32(*[types.int64] * 5), codegen


@intrinsic
def call_system(typing_context, function, first, second, third):
    """Call a C function of up to three pointer-sized arguments at address `function`, ignoring what it returns."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_I32, [_I64] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), codegen
