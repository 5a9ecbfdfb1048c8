"""NumPy's broadcasting rule over shapes that may be partly unknown."""

from __future__ import annotations

from schema.errors import ShapeError
from schema.graph import Shape


def broadcast_dims(a: int | None, b: int | None) -> int | None:
    """The common size of two dimensions. An unknown one is taken to be 1 or the other's size. Raises ValueError."""
    if a == b or b == 1:
        return a
    if a == 1 or a is None:
        return b
    if b is None:
        return a
    raise ValueError


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """The shape to which all broadcast, None where a rank is unknown. Raises ShapeError with the shapes."""
    if None in shapes:
        return None
    result: Shape = ()
    for shape in shapes:
        assert shape is not None
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + shape
        try:
            result = tuple(broadcast_dims(x, y) for x, y in zip(a, b, strict=True))
        except ValueError:
            raise ShapeError(f"shapes {' and '.join(map(str, shapes))} do not broadcast together") from None
    return result
