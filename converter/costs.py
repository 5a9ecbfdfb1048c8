"""What a graph costs: multiply-accumulates and memory traffic of one sample, bytes of its weights as the encoder stores
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from schema import costs, inference
from schema.coding import constant as constant_coding
from schema.costs import Cost
from schema.errors import ShapeError
from schema.graph import Constant, Graph, Node, Shape, Tensor, TensorType, nested

_STREAMS: WeakKeyDictionary[Constant, list[int]] = WeakKeyDictionary()


def stored_bytes(tensor: Tensor) -> int:
    """Bytes of a constant's streams, coded by itself: biases may take less in a file, by what kernels let expect."""
    return sum(_streams(tensor))


def file_bytes(tensor: Tensor) -> int:
    """Bytes of a constant's streams and of what the file says of them."""
    return sum(size + constant_coding.STREAM_OVERHEAD for size in _streams(tensor))


def _streams(tensor: Tensor) -> list[int]:
    """Bytes of each stream of a constant, encoded once for each constant."""
    stored = tensor.constant
    assert stored is not None
    if stored not in _STREAMS:
        encoded = constant_coding.encode(stored, tensor.dtype)
        _STREAMS[stored] = [len(stream.data) for _, stream in encoded.streams()]
    return _STREAMS[stored]


def sample_types(graph: Graph) -> dict[Tensor, TensorType]:
    """Types of all tensors when one sample is given: where axis 0 of an input is open it is 1."""
    try:
        return inference.infer(graph, [_one_sample(tensor.shape) for tensor in graph.inputs]).types
    except ShapeError:
        return inference.infer(graph).types


def _one_sample(shape: Shape | None) -> Shape | None:
    return shape if not shape or shape[0] is not None else (1, *shape[1:])


def node_costs(graph: Graph) -> Iterator[tuple[Node, Cost]]:
    """Every node with what it costs, those of branches and loops as if each ran once. A constant that several nodes
    read is counted at the first of them.
    """
    counted: set[Constant] = set()
    for inner in nested(graph):
        types = sample_types(inner)
        for node in inner.nodes:
            constants = [t for t in node.inputs if t is not None and t.constant is not None]
            new = [t for t in dict.fromkeys(constants) if t.constant not in counted]
            counted.update(t.constant for t in new if t.constant is not None)
            yield node, compute_cost(node, types) + Cost(weight_bytes=sum(map(stored_bytes, new)))


def compute_cost(node: Node, types: Mapping[Tensor, TensorType]) -> Cost:
    """What running a node costs, without its weights' bytes."""
    return Cost(macs=costs.macs(node, types), traffic=costs.traffic(node, types))


def graph_cost(graph: Graph) -> Cost:
    """What all nodes cost together."""
    return sum((cost for _, cost in node_costs(graph)), Cost())
