"""WHILE: a graph repeated while another one says so. Inputs: what both graphs take at first; outputs: what the body
gave last, or the inputs where it never ran.
"""

from __future__ import annotations

from schema import evaluate, limits
from schema.graph import TensorType
from schema.ops.attributes import WhileAttributes
from schema.ops.base import Op, require
from schema.ops.calls import called, check_alike, check_carried, check_condition, check_dtypes, narrowed, truth


class While(Op):
    """The inputs that the body declares hold of every iteration: what it gives fits them."""

    name = "WHILE"
    Attributes = WhileAttributes
    inputs = (1, None)
    outputs = None

    @classmethod
    def check(cls, attributes):
        condition, body = attributes.condition, attributes.body
        check_alike("condition and body", condition, body)
        require(len(condition.outputs) == 1, f"the condition has {len(condition.outputs)} outputs")
        count = len(body.inputs)
        require(len(body.outputs) == count > 0, f"the body: {count} inputs and {len(body.outputs)} outputs")
        dtypes = [[t.dtype for t in tensors] for tensors in (body.inputs, body.outputs)]
        check_dtypes("the body's inputs and outputs:", *dtypes)
        declared = [t.type for t in body.inputs]
        check_condition(called("condition", condition, declared)[0], "the condition")
        for index, (given, wanted) in enumerate(zip(called("body", body, declared), declared, strict=True)):
            narrowed(given.shape, wanted.shape, f"the body: output {index}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        check_condition(called("condition", attributes.condition, inputs)[0], "the condition")
        once = called("body", attributes.body, inputs)
        if all(a.shape == b.shape for a, b in zip(inputs, once, strict=True)):
            return [TensorType(kind.shape, kind.dtype) for kind in inputs]
        return [TensorType(tensor.shape, tensor.dtype) for tensor in attributes.body.inputs]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        carried = list(arrays)
        while truth(evaluate.run(attributes.condition, carried)[0]):
            limits.count_iteration()
            carried = evaluate.run(attributes.body, carried)
            check_carried(attributes.body, carried)
        return carried
