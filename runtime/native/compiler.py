"""Kernels written in Python, compiled by numba's front end and LLVM to one relocatable object file per family.

Only this module and the kernel families import numba, and they are imported only when an object is not in the cache.

numba does typing and lowering; its optimisation passes, its JIT and its own cache are left out. The unoptimised LLVM
code of a whole family is retargeted to the wanted triple, reduced to the exported kernels and optimised once with the
target's own cost model, so that another CPU or architecture is the same path with another `Target`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from runtime.kernels.abi import Kernel
from runtime.native.device_function import DeviceFunction, compiling
from runtime.native.errors import KernelCompileError
from runtime.native.object_file import undefined_symbols
from runtime.native.primitives import define_primitives
from runtime.native.status import Status
from runtime.native.target import Target, create_target_machine

KERNEL_SIGNATURE = types.int32(types.int64, types.int64, types.int64, types.int64)
SYMBOL_PREFIX = "xnn_"


class _Library(AOTCodeLibrary):
    """Collects a family's LLVM code as numba lowers it, unoptimised."""

    def _optimize_functions(self, ll_module: llvm.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(AOTCPUCodegen):
    _library_class = _Library


class FamilyCompilation:
    """What one run of numba over a kernel family shares: contexts, the library that collects code, compiled callees."""

    def __init__(self, name: str) -> None:
        self._typing_context = cpu_target.typing_context
        self._context = cpu_target.target_context.subtarget(_internal_codegen=_Codegen(name), aot_mode=True)
        self.typing_context.refresh()
        self._context.refresh()
        self._library = self._context.codegen().create_library(name)
        self._compiled: dict[tuple[DeviceFunction, tuple], tuple[object, object]] = {}

    @property
    def typing_context(self):
        return self._typing_context

    def compile(self, function: Callable, args: tuple, return_type=None, inline: bool = False):
        """Lower `function` for the numba types `args` into the library; gives numba's compile result."""
        flags = Flags()
        flags.no_compile = True
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        flags.error_model = "numpy"  # no exception on division by zero
        flags.forceinline = inline
        return compile_extra(
            self._typing_context, self._context, function, args, return_type, flags, {}, library=self._library
        )

    def device_overload(self, device: DeviceFunction, args: tuple) -> tuple[object, object]:
        """(signature, key under which the lowering of calls to it is registered) of `device` for `args`."""
        known = self._compiled.get((device, args))
        if known is None:
            result = self.compile(device.function, args, inline=True)
            key = object()
            self._context.insert_user_function(key, result.fndesc)
            known = self._compiled[device, args] = (result.signature, key)
        return known

    def export(self, symbol: str, function: Callable) -> None:
        """Compile `function` as a kernel and give it the fixed ABI under the name `symbol`."""
        result = self.compile(function, KERNEL_SIGNATURE.args, KERNEL_SIGNATURE.return_type)
        module = self._library.create_ir_module(symbol)
        i32, i64 = ir.IntType(32), ir.IntType(64)
        entry = ir.Function(module, ir.FunctionType(i32, [i64] * 4), symbol)
        builder = ir.IRBuilder(entry.append_basic_block())
        callee = self._context.declare_function(module, result.fndesc)
        status, value = self._context.call_conv.call_function(
            builder, callee, KERNEL_SIGNATURE.return_type, KERNEL_SIGNATURE.args, entry.args
        )
        builder.ret(builder.select(status.is_error, ir.Constant(i32, int(Status.INTERNAL)), value))
        self._library.add_ir_module(module)

    def llvm_text(self) -> str:
        """The code so far, together with what numba's own library contributes (`min` of integers, for example)."""
        self._library.finalize()
        return self._library.get_llvm_str()


def kernels_of(module_name: str) -> dict[str, Callable]:
    """The kernels that a family's module defines, by exported symbol; imports the module."""
    module = importlib.import_module(module_name)
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, Kernel):
            found[SYMBOL_PREFIX + name] = value.function
    if not found:
        raise KernelCompileError(f"{module_name} defines no kernel")
    return found


def compile_family(module_name: str, target: Target) -> tuple[bytes, list[str]]:
    """Compile all kernels of the module `module_name` for `target`.

    Returns the object file and the symbols it exports. Raises KernelCompileError if numba refuses the source or if the
    object would need symbols from outside.
    """
    kernels = kernels_of(module_name)
    with global_compiler_lock:
        compilation = FamilyCompilation(module_name)
        with compiling(compilation):
            for symbol, function in kernels.items():
                try:
                    compilation.export(symbol, function)
                except NumbaError as error:
                    raise KernelCompileError(f"{module_name}: numba refuses {symbol}: {error}") from error
        text = compilation.llvm_text()
    return emit_object(text, list(kernels), target), list(kernels)


def emit_object(text: str, exports: list[str], target: Target) -> bytes:
    """Optimise LLVM assembly `text` for `target`, keep `exports` and what they call, and emit an object file."""
    machine = create_target_machine(target)
    module = llvm.parse_assembly(_retarget(text, target, str(machine.target_data)))
    for function in module.functions:
        if not function.is_declaration and function.name not in exports:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    data = machine.emit_object(module)
    foreign = undefined_symbols(data)
    if foreign:
        raise KernelCompileError(
            f"kernels {', '.join(exports)} for {target.triple} ({target.cpu}) call symbols from outside: "
            f"{', '.join(foreign)}; write them with runtime.kernels.maths or without what makes LLVM call them"
        )
    return data


def _retarget(text: str, target: Target, data_layout: str) -> str:
    text = re.sub(r'target triple = ".*"', f'target triple = "{target.triple}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{data_layout}"', text)
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)
    text = text.replace("= common ", "= ")  # WebAssembly has no common linkage
    text = define_primitives(text, target)
    # Without this LLVM turns loops that copy or clear into calls of memcpy and memset.
    return re.sub(r"^(define [^\n]*?)\s*\{$", r'\1 "no-builtins" {', text, flags=re.MULTILINE)
