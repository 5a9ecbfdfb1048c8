"""What compression while training has left in the kernels must be in the file: zeros, and few distinct values.

Compared are the kernels of the source, as its front end reads them, with those of the written file, as its reader gives
them: whatever rewrites, quantization and encoding do in between. A kernel that a rewrite has made into another one
(layers merged, dead channels removed) has no counterpart of its size; rewrites are done only where the file does not
grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from converter.passes.manager import Explanation
from converter.quantize.layers import layer_name
from converter.quantize.weight_only import AXES
from converter.tables import table
from schema.errors import LostStructureError
from schema.graph import Constant, Graph, Tensor, all_nodes

SMALLEST = 16
"""Weights of a kernel that is looked at."""
MOST_VALUES = 256
WEIGHTS_PER_VALUE = 4
"""A kernel is clustered if it has no more distinct values, zero aside, and no fewer weights for each."""
WEIGHTS = {**{op: tuple(operands) for op, operands in AXES.items()}, "BATCH_MATMUL": (0, 1)}
"""Operands that are kernels, by op."""
REMAKING = ("merge_linear", "merge_sum", "merge_parallel", "split_low_rank")
"""Passes that make other kernels out of those they find."""


@dataclass(frozen=True)
class Kernel:
    """layer: the name of the source's. size: weights. zeros: those that are 0. values: distinct stored ones, zero
    aside, before a factor for each channel is multiplied in.
    """

    layer: str
    size: int
    zeros: int
    values: int

    @property
    def clustered(self) -> bool:
        return 0 < self.values <= min(MOST_VALUES, (self.size - self.zeros) // WEIGHTS_PER_VALUE)


@dataclass(frozen=True)
class Preserved:
    """A kernel of the source with zeros or few values, and the file's. remark: of a file that has no counterpart."""

    source: Kernel
    file: Kernel | None
    remark: str = ""


def kernels(graph: Graph) -> list[Kernel]:
    """The constant kernels of all layers. One that layers share is each one's."""
    known: dict[tuple[str, Constant], Kernel] = {}
    for node in all_nodes(graph):
        for index in WEIGHTS.get(node.op, ()):
            tensor = node.inputs[index] if index < len(node.inputs) else None
            if tensor is not None and tensor.constant is not None and _is_kernel(tensor):
                known.setdefault((layer_name(node), tensor.constant), _kernel(layer_name(node), tensor))
    return list(known.values())


def expected(source: Sequence[Kernel], rewritten: Sequence[Kernel], explanation: Explanation) -> list[Kernel]:
    """What is to be found in the file: the kernels of the source, or what rewrites have made of them.

    rewritten: the kernels after all passes.
    """
    lines = [line.partition(":")[0] for name in REMAKING for line in explanation.of(name)]
    kept = [kernel for kernel in source if not any(kernel.layer in line for line in lines)]
    known = {(kernel.layer, kernel.size) for kernel in kept}
    return kept + [kernel for kernel in rewritten if (kernel.layer, kernel.size) not in known]


def check(expected: Sequence[Kernel], encoded: Sequence[Kernel], written: Sequence[Kernel]) -> list[Preserved]:
    """Compare pruned and clustered kernels with the file's.

    encoded: those of the graph that was given to the encoder, which multiplies a factor per channel into the values
        where that takes fewer bytes, and into integers the sign of a channel.
    Raises LostStructureError that names the layer where zeros or clusters are lost.
    """
    in_file, given = _by_layer_and_size(written), _by_layer_and_size(encoded)
    found: list[Preserved] = []
    for key, before in _by_layer_and_size(expected).items():
        if not any(kernel.zeros or kernel.clustered for kernel in before):
            continue
        after = in_file.get(key, [])
        if len(after) != len(before):
            found += [Preserved(kernel, None, "rewritten into a kernel of another size") for kernel in before]
            continue
        pairs = zip(_ranked(before, "zeros"), _ranked(after, "zeros"), strict=True)
        for old, new in pairs:
            if new.zeros < old.zeros:
                raise LostStructureError(_message(old, f"{old.zeros} zeros", f"{new.zeros}"))
        kept = [kernel.values for kernel in given.get(key, [])]
        for old, new in zip(_ranked(before, "values"), _ranked(after, "values"), strict=True):
            multiplied = old.clustered and new.values > old.values
            if multiplied and not any(values <= old.values for values in kept):
                raise LostStructureError(_message(old, f"{old.values} distinct values", f"{new.values}"))
            found.append(Preserved(old, new, "factors or signs of channels multiplied in" * multiplied))
    return found


def _message(kernel: Kernel, before: str, after: str) -> str:
    return (
        f"layer '{kernel.layer}': of {kernel.size} weights, the source has {before}, the file {after}. This is a "
        "defect of the converter: please report it, and name the layer in keep_float meanwhile"
    )


def describe(preserved: Sequence[Preserved]) -> str:
    """A table for people; "" where there is nothing to tell."""
    if not preserved:
        return ""
    rows: list[tuple[str, ...]] = [
        ("pruned, clustered", "weights", "zeros", "in the file", "values", "in the file", "")
    ]
    for row in preserved:
        source, file = row.source, row.file
        clusters = (str(source.values), "" if file is None else str(file.values)) if source.clustered else ("", "")
        zeros = (str(source.zeros), "" if file is None else str(file.zeros))
        rows.append((source.layer, str(source.size), *zeros, *clusters, row.remark))
    return table(rows, right=(1, 2, 3, 4, 5))


def _is_kernel(tensor: Tensor) -> bool:
    values = np.asarray(tensor.constant.values)
    return (
        values.size >= SMALLEST
        and values.dtype.kind in "fiu"
        and sum(size > 1 for size in values.shape) >= 2
        and (tensor.dtype.kind == "f" or tensor.quantization is not None)
    )


def _kernel(layer: str, tensor: Tensor) -> Kernel:
    constant = tensor.constant
    values = np.asarray(constant.values)
    if constant.channel_scale is not None and not np.all(constant.channel_scale):
        values = np.where(constant.dense(np.dtype(np.float32)) == 0, 0, values)
    if tensor.quantization is not None and tensor.quantization.zero_point.any():
        values = values.astype(np.int32) - tensor.quantization.broadcast(values.ndim)[1]
    ordered = np.sort(values, axis=None)
    distinct = int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    zeros = int(values.size - np.count_nonzero(values))
    return Kernel(layer, values.size, zeros, distinct - (zeros > 0))


def _by_layer_and_size(found: Sequence[Kernel]) -> Mapping[tuple[str, int], list[Kernel]]:
    groups: defaultdict[tuple[str, int], list[Kernel]] = defaultdict(list)
    for kernel in found:
        groups[kernel.layer, kernel.size].append(kernel)
    return groups


def _ranked(found: Sequence[Kernel], attribute: str) -> list[Kernel]:
    return sorted(found, key=lambda kernel: getattr(kernel, attribute))
