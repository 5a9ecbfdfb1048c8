"""Variables of a file as values: what one subgraph reads of them becomes its inputs, what it assigns its outputs."""

from __future__ import annotations

from collections.abc import Iterable

from schema.errors import FormatError, UnsupportedError
from schema.graph import Constant, Tensor

Variable = tuple[str, str]
"""Container and name: variables that share both are one."""


class Variables:
    """What one subgraph knows of variables as its operators are read.

    before: the value that it finds, an input, for those that it reads before it assigns them. current: the value that
    they have by now.
    """

    def __init__(self) -> None:
        self.before: dict[Variable, Tensor] = {}
        self.current: dict[Variable, Tensor] = {}

    def read(self, variable: Variable, like: Tensor) -> Tensor:
        """The value, which is of the kind that `like` is of."""
        if variable not in self.current:
            tensor = Tensor(variable[1] or "variable", like.dtype, like.shape, like.quantization)
            self.before[variable] = self.current[variable] = tensor
        value = self.current[variable]
        if value.dtype != like.dtype:
            raise FormatError(f"variable '{variable[1]}' holds {value.dtype}, not {like.dtype}")
        return value

    def assign(self, variable: Variable, value: Tensor) -> None:
        self.current[variable] = value

    @property
    def assigned(self) -> list[Variable]:
        return [variable for variable, value in self.current.items() if value is not self.before.get(variable)]


def united(several: Iterable[Variables]) -> dict[Variable, Tensor]:
    """All variables of several subgraphs, and a tensor like each."""
    result: dict[Variable, Tensor] = {}
    for variables in several:
        for variable, value in variables.current.items():
            result.setdefault(variable, variables.before.get(variable, value))
    return result


def remembered(variables: Variables, initial: dict[Variable, Tensor]) -> list[tuple[str, Tensor, Tensor, Tensor]]:
    """(name, before, after, initial value) of the variables that the model keeps from one run to the next.

    Those that it never assigns become constants. Raises UnsupportedError for one that has no value at first.
    """
    result = []
    for variable, before in variables.before.items():
        name = variable[1] or "variable"
        first = initial.get(variable)
        if first is None or first.constant is None:
            raise UnsupportedError(f"variable '{name}' is read before anything is assigned to it")
        if first.dtype != before.dtype:
            raise FormatError(f"variable '{name}' holds {first.dtype} at first, {before.dtype} later")
        if variables.current[variable] is before:
            before.set_constant(Constant(first.constant.values))
        else:
            result.append((name, before, variables.current[variable], first))
    return result
