"""Several holders on one weight: pruning, clustering and the like in one `fit`, attached and detached in any order.

A variable's constraint is what both Kerases call inside the train function after each update (after momentum, weight
decay, moving-average overwrites, and within the loss-scale optimizer's branch), so what it holds is held in every step
of an execution, compiled by XLA or not. A variable has one constraint; here it is a chain: the one that the variable
had, then any number of parts, then at most one projection.
"""

from collections.abc import Callable
from typing import Any, Protocol

from schema.errors import InputError
from xnn_tf.keras_compat import Variable, constraint_of, set_constraint

Part = Callable[[Any], Any]
"""Takes a weight's tensor and returns what is allowed of it. Calling it again changes nothing."""


class UpdateProjection(Protocol):
    """What remembers between updates what a weight cannot show; see `xnn_tf.projected_weight`."""

    def update(self, weight: Any, restrict: Part, hold: Part) -> Any:
        """The allowed weight after an update.

        Args:
            weight: the variable's tensor after the update.
            restrict: the variable's own constraint and the parts.
            hold: the parts alone.
        """


class ConstraintChain:
    """The constraint of a variable that has holders.

    Attributes:
        inner: the constraint that the variable had, or None.
        parts: in the order in which they were attached.
        projection: the one projection, or None.
    """

    def __init__(self, inner: Callable | None) -> None:
        self.inner = inner
        self.parts: list[Part] = []
        self.projection: UpdateProjection | None = None

    def __call__(self, weight: Any) -> Any:
        if self.projection is None:
            return self.restrict(weight)
        return self.projection.update(weight, self.restrict, self.hold)

    def restrict(self, weight: Any) -> Any:
        """Applies the variable's own constraint and the parts."""
        return self.hold(weight if self.inner is None else self.inner(weight))

    def hold(self, weight: Any) -> Any:
        """Applies the parts."""
        for part in self.parts:
            weight = part(weight)
        return weight


def chain_of(variable: Variable) -> ConstraintChain | None:
    """The chain that the variable has at present."""
    constraint = constraint_of(variable)
    return constraint if isinstance(constraint, ConstraintChain) else None


def attach(variable: Variable, part: Part) -> None:
    """Adds a part. It counts in functions that are traced from now on (see `xnn_tf.train_function`)."""
    _chain(variable).parts.append(part)


def attach_projection(variable: Variable, projection: UpdateProjection) -> None:
    """Sets the projection of a variable.

    Raises:
        InputError: it has one.
    """
    chain = chain_of(variable)
    if chain is not None and chain.projection is not None:
        name = getattr(variable, "path", variable.name).partition(":")[0]
        raise InputError(
            f"{name} is already clustered or quantized by another callback: exclude it from one, or finish() one first"
        )
    _chain(variable).projection = projection


def detach(variable: Variable, held: Part | UpdateProjection) -> None:
    """Takes a part or the projection off; with the last one, the variable gets back the constraint that it had.

    Functions that were traced with it go on calling it. A constraint that somebody else has set since stays.
    """
    chain = chain_of(variable)
    if chain is None:
        return
    chain.parts = [part for part in chain.parts if part is not held]
    if chain.projection is held:
        chain.projection = None
    if not chain.parts and chain.projection is None:
        set_constraint(variable, chain.inner)


def _chain(variable: Variable) -> ConstraintChain:
    chain = chain_of(variable)
    if chain is None:
        chain = ConstraintChain(constraint_of(variable))
        set_constraint(variable, chain)
    return chain
