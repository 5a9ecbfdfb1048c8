"""What kernel sources are written with: the decorators and typed memory access. Imports numba.

A kernel is a function `kernel(params, begin, end, scratch)` of int64 arguments that returns a status: the address of
its parameter block, the range of tiles to compute, the address of memory for this worker alone (64-byte aligned).

    CONV = ParameterBlock("CONV", ...)            # in a module without numba

    @kernel
    def copy(params, begin, end, scratch):
        p = view(CONV, params)
        source, target = f32(p.source), f32(p.target)
        for i in range(begin, end):
            target[i] = source[i]
        return 0

Memory is reached through pointers made from addresses: `f32(address)[i]`. There are no bounds checks, and a negative
index means memory before the pointer, not the end of an array.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model, typeof_impl

from runtime.kernels.parameters import ParameterBlock
from runtime.native.device_function import DeviceFunction


class Kernel:
    """A function with the kernel ABI, exported as `xnn_<name>`."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__


def kernel(function: Callable) -> Kernel:
    """Export `function(params, begin, end, scratch) -> status` from its family's object file."""
    return Kernel(function)


def inline(function: Callable) -> DeviceFunction:
    """A function for kernels to call; compiled for the argument types of each call and always inlined."""
    return DeviceFunction(function)


def _pointer_cast(dtype: types.Type):
    @intrinsic
    def cast(typing_context, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.int64), codegen

    return cast


i8 = _pointer_cast(types.int8)
u8 = _pointer_cast(types.uint8)
i16 = _pointer_cast(types.int16)
u16 = _pointer_cast(types.uint16)
i32 = _pointer_cast(types.int32)
u32 = _pointer_cast(types.uint32)
i64 = _pointer_cast(types.int64)
f32 = _pointer_cast(types.float32)
f64 = _pointer_cast(types.float64)


@intrinsic
def truncated_divide(typing_context, dividend, divisor):
    """Quotient of two int64, towards zero; nothing checks for a divisor of 0."""
    return types.int64(types.int64, types.int64), lambda context, builder, signature, args: builder.sdiv(*args)


@intrinsic
def bits_of_f32(typing_context, value):
    """The int32 with the same 32 bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def f32_of_bits(typing_context, value):
    """The float32 with the same 32 bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


class ParameterBlockType(types.Opaque):
    """A parameter block's declaration, as a constant in a kernel."""

    def __init__(self, block: ParameterBlock) -> None:
        self.block = block
        super().__init__(f"ParameterBlock({block.name}, {id(block)})")


class ParameterViewType(types.Type):
    """A parameter block in memory: its address; slots are its attributes."""

    def __init__(self, block: ParameterBlock) -> None:
        self.block = block
        super().__init__(f"ParameterView({block.name}, {id(block)})")


register_model(ParameterBlockType)(models.OpaqueModel)


@register_model(ParameterViewType)
class _ParameterViewModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, ir.IntType(64))


@typeof_impl.register(ParameterBlock)
def _typeof_parameter_block(value, context):
    return ParameterBlockType(value)


@lower_constant(ParameterBlockType)
def _constant_parameter_block(context, builder, type_, value):
    return context.get_dummy_value()


@intrinsic
def view(typing_context, block, params):
    """The block at address `params`; `view(BLOCK, params).name` loads a slot as int64 or float64, as declared."""
    if isinstance(block, ParameterBlockType):
        return ParameterViewType(block.block)(block, types.int64), lambda context, builder, signature, args: args[1]
    return None


@infer_getattr
class _ParameterViewAttributes(AttributeTemplate):
    key = ParameterViewType

    def generic_resolve(self, type_, name):
        if name in type_.block.slots:
            return types.float64 if name in type_.block.floats else types.int64
        return None


@lower_getattr_generic(ParameterViewType)
def _load_parameter(context, builder, type_, value, name):
    element = ir.DoubleType() if name in type_.block.floats else ir.IntType(64)
    address = builder.add(value, ir.Constant(ir.IntType(64), 8 * type_.block.slots.index(name)))
    loaded = builder.load(builder.inttoptr(address, element.as_pointer()))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))  # no kernel writes to its parameters
    return loaded
