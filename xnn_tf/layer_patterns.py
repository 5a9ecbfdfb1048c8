"""Selects kernels by layer-name patterns: the `include`, `exclude` and `per_layer` of every compression step.

A pattern has the wildcards of shell globs (`fnmatch`, case-sensitive; `*` crosses `/`). It is compared with a layer's
name (`dense_1`), its path in the model (`encoder/dense_1`), one weight of it (`sep_conv/depthwise_kernel`), and the
names and paths of the containers around it (nested models, wrappers, recurrent layers).

A pattern that names a weight means that weight. One that names a layer or a container means the Conv and Dense kernels
inside, or, where there are none, every kernel inside: so `lstm` or `depthwise_*` ask for what is not chosen by default.
"""

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from schema.errors import InputError
from xnn_tf.kernels import Kernel

Patterns = str | Sequence[str]
T = TypeVar("T")


def as_patterns(patterns: Patterns | None, argument: str) -> list[str]:
    """One pattern, several, or None, as a list.

    Raises:
        InputError: something else.
    """
    listed = [patterns] if isinstance(patterns, str) else () if patterns is None else patterns
    if not isinstance(listed, (list, tuple)) or not all(isinstance(pattern, str) for pattern in listed):
        raise InputError(f"{argument}={patterns!r}: give a layer-name pattern or a list of them")
    return list(listed)


def select(
    kernels: Sequence[Kernel],
    include: Patterns | None = None,
    exclude: Patterns | None = None,
    per_layer: Mapping[str, T] | None = None,
) -> list[Kernel]:
    """The kernels to work on, in their order.

    Args:
        kernels: all of the model's.
        include: what to take; None takes the Conv and Dense kernels that are trainable.
        exclude: what to leave out, whatever else asks for it.
        per_layer: its patterns ask for kernels too, where they match none of those taken.

    Raises:
        InputError: a pattern matches no layer; the message lists names that come near.
    """
    if include is None:
        taken = [kernel for kernel in kernels if kernel.pruned_by_default and kernel.trainable]
    else:
        taken = [
            kernel for pattern in as_patterns(include, "include") for kernel in _asked(kernels, pattern, "include")
        ]
    for pattern in per_layer or ():
        asked = _asked(kernels, pattern, "per_layer")
        if not any(matches(kernel, pattern) for kernel in taken):
            taken += asked
    for pattern in as_patterns(exclude, "exclude"):
        _asked(kernels, pattern, "exclude")  # so that a misspelt name is found
        taken = [kernel for kernel in taken if not matches(kernel, pattern)]
    return [kernel for kernel in kernels if kernel in taken]


def first_match(kernel: Kernel, per_layer: Mapping[str, T], default: T) -> T:
    """The value of the first pattern that matches the kernel, in the mapping's order."""
    return next((value for pattern, value in per_layer.items() if matches(kernel, pattern)), default)


def _containers(kernel: Kernel) -> list[str]:
    """Paths of the kernel's layer and of all that it lies in."""
    names = kernel.path.split("/")
    return ["/".join(names[:end]) for end in range(1, len(names) + 1)]


def _names_layer(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def _names_weight(kernel: Kernel, pattern: str) -> bool:
    layer, _, weight = pattern.rpartition("/")
    return bool(layer) and fnmatchcase(kernel.weight, weight) and _names_layer(kernel.path, layer)


def matches(kernel: Kernel, pattern: str) -> bool:
    """Whether a pattern names the kernel, its layer, or a container around it."""
    return _names_weight(kernel, pattern) or any(_names_layer(path, pattern) for path in _containers(kernel))


def _asked(kernels: Sequence[Kernel], pattern: str, argument: str) -> list[Kernel]:
    asked = [kernel for kernel in kernels if _names_weight(kernel, pattern)]
    for path in {path: None for kernel in kernels for path in _containers(kernel) if _names_layer(path, pattern)}:
        inside = [kernel for kernel in kernels if path in _containers(kernel)]
        asked += [kernel for kernel in inside if kernel.pruned_by_default] or inside
    if not asked:
        names = list(dict.fromkeys(kernel.path for kernel in kernels))
        near = difflib.get_close_matches(pattern, names, n=5, cutoff=0.4) or names[:10]
        raise InputError(
            f"{argument}: no layer with a kernel is named {pattern!r}; the model has {', '.join(near) or 'none'}"
            + (", …" if len(near) < len(names) else "")
        )
    return asked
