"""Chains of functions of single elements: float32 block by block, int8 as one table of what all of them make."""

from __future__ import annotations

import math

import numpy as np

from runtime.chains import BLOCK, Chain, Stage, period
from runtime.kernels.elementwise_parameters import CHAIN, CHAIN_STAGE, UNARY_TABLE
from runtime.lowering import activation, elementwise, lookup
from runtime.lowering.base import Call, KernelAddress, LoweringContext, Parameters
from runtime.lowering.broadcasting import CHUNK

FAMILY = "runtime.kernels.elementwise_chain"
PARAMETERS_BYTES = 256
WHOLE = 1 << 40  # more than any tensor has
GRAIN = 4


def lower(context: LoweringContext) -> list[Call]:
    """context: of a runtime.chains.Chain."""
    chain = context.node
    assert isinstance(chain, Chain)
    first = context.stages[0].inputs[chain.stages[0].chained]
    assert first is not None
    if first.dtype != np.float32:
        return [_table(context)]
    longest = period(chain.stages)
    assert longest is not None
    block = BLOCK // longest * longest
    following: Parameters | int = 0  # innermost last: a stage's block holds that of the one after
    for stage, inner in reversed(list(zip(chain.stages, context.stages, strict=True))):
        following = _stage(stage, inner, block, following)
    count = math.prod(context.outputs[0].shape or ())
    params = {
        "input": context.stages[0].input(chain.stages[0].chained),
        "output": context.output(),
        "count": count,
        "block": block,
        "first": following,
    }
    scratch = PARAMETERS_BYTES + 2 * 4 * block
    return [Call(FAMILY, "xnn_elementwise_chain_f32", CHAIN, params, -(-count // block), GRAIN, scratch)]


def _stage(stage: Stage, context: LoweringContext, block: int, following: Parameters | int) -> Parameters:
    unary = len(context.inputs) == 1
    calls = (activation if unary else elementwise).lower(context)
    assert calls is not None  # runtime.chains has looked
    (call,) = calls
    place = call.block.slots.index
    params = {**call.params, "output": 0}
    slots = {"other": -1, "other_input": 0, "other_step": 0, "run": 0}
    if unary:
        params |= {"input": 0, "chunk": block}
        slots |= {"chained": place("input"), "extent": place("count")}
    else:
        names = ("a", "b") if stage.chained == 0 else ("b", "a")
        in_runs = stage.run > 1
        slots |= {
            "chained": place(names[0]),
            "other": place(names[1]),
            "other_input": context.input(1 - stage.chained),  # type: ignore[dict-item]
            "other_step": 0 if stage.run else 4,
            "extent": -1 if in_runs else place("inner"),
            "run": stage.run,
        }
        strides = {names[0]: stage.run, names[1]: 0}
        params |= dict.fromkeys(names, 0)
        params |= {f"{names[0]}_step": 1, f"{names[1]}_step": int(stage.run != 1)}
        params |= {f"{name}_strides": np.array([stride], np.int64) for name, stride in strides.items()}
        params |= {
            "inner": stage.run,
            "chunk": block,
            "chunks": 1,
            "outer_rank": int(in_runs),
            "outer": np.array([WHOLE], np.int64),
        }
    assert 8 * len(call.block.slots) <= PARAMETERS_BYTES
    return Parameters(
        CHAIN_STAGE,
        {
            "next": following,
            "kernel": KernelAddress(call.family, call.symbol),
            "params": Parameters(call.block, params),
            "slots": len(call.block.slots),
            "output": place("output"),
            **slots,
        },
    )


def _table(context: LoweringContext) -> Call:
    """The results of all stages for -128, -127, ... 127."""

    def compose() -> np.ndarray:
        numbers = np.arange(-128, 128).astype(np.int8)
        for inner in context.stages:
            (given, *_), (output, *_) = inner.inputs, inner.outputs
            numbers = lookup.table(inner, given, output)[numbers.astype(np.int64) + 128]
        return numbers

    output = context.outputs[0]
    count = math.prod(output.shape or ())
    params = {
        "input": context.stages[0].input(0),
        "output": context.output(),
        "count": count,
        "chunk": CHUNK,
        "table": context.stages[-1].derived(
            ("chain", *(id(inner.node.outputs[0]) for inner in context.stages)), compose
        ),
    }
    return Call(lookup.FAMILY, lookup.SYMBOLS["int8", output.dtype.name], UNARY_TABLE, params, -(-count // CHUNK))
