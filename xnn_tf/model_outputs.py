"""What the numbers that a model puts out mean: logits, probabilities, or values of a regression."""

from typing import Any, Literal

OutputKind = Literal["logits", "probabilities", "binary logits", "binary probabilities", "values"]
"""Of one output. "logits" and "probabilities" are over classes on the last axis; the binary ones are one by one."""

_REGRESSION = ("squared", "absolute", "huber", "cosh", "poisson", "mse", "mae", "mape", "msle", "cosine")


def output_kinds(model: Any) -> list[OutputKind]:
    """The kind of each output, in the order of `model.outputs` (of one output for a subclassed model).

    Told by the activation of the layer that makes the output; where that is linear or unknown, by the loss that the
    model was compiled with; and without one, several linear numbers are logits and a single one is a value.
    """
    outputs = getattr(model, "outputs", None)
    if not outputs:
        return [_by_loss(_losses(model, 1)[0], None)]
    losses = _losses(model, len(outputs))
    return [_kind(output, loss) for output, loss in zip(outputs, losses, strict=True)]


def _kind(output: Any, loss: Any) -> OutputKind:
    activation = _activation(output)
    size = output.shape[-1] if len(output.shape) else None
    if activation == "softmax":
        return "probabilities"
    if activation == "sigmoid":
        return "binary probabilities"
    return _by_loss(loss, size)


def _activation(output: Any) -> str:
    """The activation of the layer that made a symbolic output; "" where that is not told."""
    history = output._keras_history
    layer: Any = getattr(history, "operation", None) or getattr(history, "layer", None)
    if getattr(layer, "outputs", None):  # a model inside of the model
        return _activation(layer.outputs[getattr(history, "tensor_index", 0) or 0])
    name = type(layer).__name__
    if name in ("Softmax", "Sigmoid"):  # the layer, or the operation of Keras 3
        return name.lower()
    if name == "TFOpLambda":  # tf_keras: tf.nn.softmax(x)
        return getattr(layer, "symbol", "").rpartition(".")[2]
    if name == "Reshape":
        return _activation(layer.input)
    return getattr(getattr(layer, "activation", None), "__name__", "")


def _by_loss(loss: Any, size: int | None) -> OutputKind:
    if loss is None:
        return "values" if size == 1 else "logits"
    name = _loss_name(loss)
    if "crossentropy" not in name and any(part in name for part in _REGRESSION):
        return "values"
    if "binary" in name:
        return "binary logits" if _from_logits(loss) else "binary probabilities"
    if "crossentropy" in name:
        return "logits" if _from_logits(loss) else "probabilities"
    return "values" if size == 1 else "logits"


def _loss_name(loss: Any) -> str:
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", None) or type(loss).__name__
    return name.lower().replace("_", "")


def _from_logits(loss: Any) -> bool:
    if hasattr(loss, "from_logits"):
        return bool(loss.from_logits)
    config: dict[str, Any] = getattr(loss, "get_config", dict)()
    return bool(config.get("from_logits", config.get("fn_kwargs", {}).get("from_logits", False)))


def _losses(model: Any, count: int) -> list[Any]:
    """The loss that the model was compiled with, for each output; None where there is none."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, dict):
        loss = [loss.get(name) for name in getattr(model, "output_names", loss)]
    if isinstance(loss, (list, tuple)):
        return [*loss, *[None] * count][:count]
    return [loss] * count
