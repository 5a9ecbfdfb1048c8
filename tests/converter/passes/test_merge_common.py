from converter.passes import merge_common
from tests.converter.passes.building import Building, names, rewritten


def test_equal_nodes_become_one_and_then_what_reads_them():
    b = Building()
    x = b.x(None, 4)
    left = b("MUL", b("RELU", x, layer="a"), b.constant([1, 2, 3, 4]))
    right = b("MUL", b.constant([1, 2, 3, 4]), b("RELU", x, layer="b"))
    graph = b.end(b("SUB", left, right))
    lines = rewritten(graph, merge_common.run)
    assert names(graph) == ["RELU", "MUL", "SUB"]
    assert lines[0] == "b: the same RELU as in a"


def test_other_attributes_operands_or_orders_stay():
    b = Building()
    x, y = b.x(None, 4), b.x(None, 4)
    results = [
        b("SOFTMAX", x, axis=-1),
        b("SOFTMAX", x, axis=0),
        b("SUB", x, y),
        b("SUB", y, x),
        b("ADD", x, b.constant([1, 2, 3, 4])),
        b("ADD", x, b.constant([1, 2, 3, 5])),
        b("ADD", x, b.constant([[1, 2, 3, 4]])),
    ]
    graph = b.end(*(b("RELU", result) for result in results))
    assert rewritten(graph, merge_common.run) == []


def test_outputs_stay_distinct():
    b = Building()
    x = b.x(None, 4)
    graph = b.end(b("RELU", x), b("RELU", x))
    assert rewritten(graph, merge_common.run) == []
    assert len(set(graph.outputs)) == 2


def test_an_output_serves_inner_readers_too():
    b = Building()
    x = b.x(None, 4)
    y = b("RELU", x)
    graph = b.end(y, b("NEG", b("RELU", x)))
    rewritten(graph, merge_common.run)
    assert names(graph) == ["RELU", "NEG"]
