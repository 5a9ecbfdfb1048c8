"""quantize_aware: a model that trains with what its file will hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schema.errors import InputError
from xnn_tf.keras_compat import is_built, require_tensorflow_keras
from xnn_tf.quantization.settings import QuantizationRecipe, recipe_of


def quantize_aware(
    model: Any, recipe: QuantizationRecipe | Mapping[str, Any] | None = None, *, calibration: Any = None
) -> Any:
    """A new model of the same Keras that computes as its int8 file will, and can be trained so.

        qat = xnn_tf.quantize_aware(model)
        qat.compile("adam", "sparse_categorical_crossentropy")
        qat.fit(x, y, epochs=2)
        converter.convert(qat).save("model.xnn")  # int8, without calibration data

    The new model is functional, and has the weights of `model`, which stays as it is. It is not compiled. Its layers
    are wrapped: `qat.get_layer("quant_conv").layer` is `conv`. Nested models, and subclassed models and layers whose
    code takes symbolic tensors, are laid open.

    Args:
        model: of Keras 3 (on TensorFlow) or tf_keras, built, of float32.
        recipe: a QuantizationRecipe, or a dict of its arguments: {"weights": 4, "per_layer": {...}}.
        calibration: a batch of inputs, as the model takes them, to know the ranges of activations before training.
            Without it they are not known until the first training step, and outputs are NaN until then.

    Raises:
        InputError: no Keras model, one that is not built, a pattern that matches no layer.
        UnsupportedError: mixed precision, another backend, or a subclassed model that cannot be followed.
    """
    from xnn_tf.quantization.observing import observing
    from xnn_tf.quantization.plan import plan
    from xnn_tf.quantization.rebuild import Rebuild
    from xnn_tf.quantization.trace import trace
    from xnn_tf.quantization.wrapper import refuse_mixed_precision

    require_tensorflow_keras(model)
    recipe = recipe_of(recipe)
    if not is_built(model):
        raise InputError(f"model '{model.name}' is not built: call it on a batch of data, or model.build(input_shape)")
    for layer in model._flatten_layers():
        if hasattr(layer, "output_source"):
            raise InputError(f"model '{model.name}' is quantize-aware already: layer '{layer.name}'")
        refuse_mixed_precision(layer)
    traced = trace(model)
    result = Rebuild(model, traced, recipe).run(plan(traced, recipe))
    if calibration is not None:
        with observing():
            result(calibration, training=False)
    return result
