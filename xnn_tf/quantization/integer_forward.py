"""A quantize-aware model's integers, bit for bit those of its file."""

from __future__ import annotations

from typing import Any

from schema.errors import InputError


def integer_forward(model: Any) -> Any:
    """The model as its file computes it now, a `runtime.Model`: a function of arrays, with `predict(x, batch_size=…)`.

        forward = xnn_tf.integer_forward(qat)
        accuracy = (forward.predict(x, batch_size=256).argmax(1) == y).mean()

    The model is converted in memory, and the engine runs it: whatever the converter decides and the kernels round is in
    the result, which a second implementation in TensorFlow could only imitate. Call it again after more training.
    `model.predict` gives the same but for rare values that differ by one step, where float32 sums of TensorFlow are
    beside a tie.

    Raises:
        InputError: the model is not quantize-aware.
        XnnError: of a kind that says what cannot be converted, such as a model that was not trained yet.
    """
    import converter
    import runtime

    result = converter.convert(model)
    if result.report.quantization is None:
        raise InputError(
            f"model '{getattr(model, 'name', model)}' has learned no ranges: pass what xnn_tf.quantize_aware(model) "
            "returned, after some training"
        )
    return runtime.load(result.bytes)
