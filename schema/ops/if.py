"""IF: one of two graphs, by a truth value. Inputs: the condition, then what both take; outputs: what that one gives."""

from __future__ import annotations

from schema import evaluate
from schema.graph import TensorType
from schema.ops.attributes import IfAttributes
from schema.ops.base import Op, require
from schema.ops.calls import called, check_alike, check_condition, check_dtypes, truth, widened


class If(Op):
    """Shapes in which the two results differ are known when the model runs."""

    name = "IF"
    Attributes = IfAttributes
    inputs = (1, None)
    outputs = None

    @classmethod
    def check(cls, attributes):
        a, b = attributes.then_branch, attributes.else_branch
        check_alike("the branches", a, b)
        require(len(a.outputs) == len(b.outputs), f"the branches: {len(a.outputs)} and {len(b.outputs)} outputs")
        require(bool(a.outputs), "the branches give nothing")
        check_dtypes("the branches: output", [t.dtype for t in a.outputs], [t.dtype for t in b.outputs])

    @classmethod
    def infer(cls, attributes, inputs, values):
        condition, *operands = inputs
        check_condition(condition, "the condition")
        a = called("then_branch", attributes.then_branch, operands)
        b = called("else_branch", attributes.else_branch, operands)
        return [TensorType(widened(x.shape, y.shape), x.dtype) for x, y in zip(a, b, strict=True)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        condition, *operands = arrays
        return evaluate.run(attributes.then_branch if truth(condition) else attributes.else_branch, operands)
