"""Keras layer names, recovered from the names of TensorFlow nodes.

Keras opens a name scope for every model and layer, so a node is called "model/block/conv/Conv2D". Keras 3 opens each
scope twice, and TensorFlow tells the two apart by a number: "model_1/block_1/conv_1/convolution". Inside of a layer,
functions of TensorFlow open scopes of their own ("batchnorm", "Tensordot"), which name no layer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

FUNCTION_SCOPES = frozenset(
    """einsum Tensordot batchnorm moments Gelu Selu clip_by_value l2_normalize strided_slice resize reduce_logsumexp
    PartitionedCall StatefulPartitionedCall""".split()
)
WRAPPERS = ("prune_low_magnitude_", "cluster_", "quant_")
"""What wrappers of TensorFlow's model optimization toolkit put before the name of the layer inside."""
_NUMBER = re.compile(r"_\d+$")


def without_number(scope: str) -> str:
    """ "conv_1" -> "conv"."""
    return _NUMBER.sub("", scope)


class LayerNames:
    """Names the layer of a node.

    known: all layer names where the source tells them, None where it does not. numbered: whether scopes end in Keras
    3's number. models: names of the outermost models, which are left out: a layer of a nested model is "block/conv".
    operations: full names of nodes; where one of them is a scope too, a function opened it.
    """

    def __init__(
        self,
        known: Collection[str] | None = None,
        numbered: bool = False,
        models: Collection[str] = (),
        operations: Collection[str] = (),
    ):
        self.known = None if known is None else frozenset(known)
        self.numbered = numbered
        self.models = frozenset(models)
        self.operations = frozenset(operations)

    @classmethod
    def guess(
        cls, nodes: Collection[str], variables: Iterable[str], known: Collection[str] | None = None
    ) -> LayerNames:
        """From the names of a program's nodes and variables ("conv/kernel").

        Scopes are numbered when the owners of variables are no scopes as they stand; a scope that holds all nodes is
        the model.
        """
        paths = [path for path in (name.split("/") for name in nodes) if len(path) > 1]
        scopes = {part for path in paths for part in path[:-1]}
        owners = {owner for path in (name.split("/") for name in variables) for owner in path[-2:-1]}
        numbered = bool(owners) and sum(owner in scopes for owner in owners) < len(owners) / 2
        numbered = numbered or (not owners and bool(paths) and all(_NUMBER.search(path[0]) for path in paths))
        first = {path[0] for path in paths}
        model = first if len(first) == 1 and any(len(path) > 2 for path in paths) else set()
        return cls(known, numbered, {without_number(scope) if numbered else scope for scope in model}, nodes)

    def layer(self, node: str) -> str:
        """ "model/block/conv/Conv2D" -> "block/conv"; a node outside of all layers keeps its own name."""
        *scopes, last = node.split("/")
        start = int(bool(scopes) and not self.models.isdisjoint(self._spellings(scopes[0])))
        found: list[str] = []
        for position, scope in enumerate(scopes[start:], start):
            name = self._name(scope)
            if name is None or (found and "/".join(scopes[: position + 1]) in self.operations):
                break
            found.append(name)
        return "/".join(found) or (scopes[start:] or [last])[0]

    def _name(self, scope: str) -> str | None:
        """The layer that opened the scope, None for a function."""
        if self.known is not None:
            return next((self._unwrapped(name) for name in self._spellings(scope) if name in self.known), None)
        plain = without_number(scope)
        if self.numbered:
            return plain if plain != scope and plain not in FUNCTION_SCOPES else None
        return scope if plain not in FUNCTION_SCOPES else None

    def _unwrapped(self, name: str) -> str:
        """The layer in a wrapper, where there is one."""
        inner = (name.removeprefix(wrapper) for wrapper in WRAPPERS if name.startswith(wrapper))
        return next((layer for layer in inner if layer in (self.known or ())), name)

    def _spellings(self, scope: str) -> tuple[str, str]:
        """What the layer may be called, the likelier one first."""
        plain = without_number(scope)
        return (plain, scope) if self.numbered else (scope, plain)
