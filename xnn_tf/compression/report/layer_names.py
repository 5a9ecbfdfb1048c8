"""Which Keras layer a node of a file belongs to."""

from collections.abc import Sequence


def layer_of(node: str, paths: Sequence[str]) -> str | None:
    """The path of the Keras layer that a node is named after, or None.

    Args:
        node: its name in the file: the layer's name or path, perhaps with more before or behind.
        paths: of the layers with weights, as `encoder/dense`.
    """
    if node in paths:
        return node
    parts = node.split("/")
    for path in paths:
        names = path.split("/")
        if any(parts[at : at + len(names)] == names for at in range(len(parts))):
            return path
    return next((path for path in paths if path.split("/")[-1] in parts), None)
