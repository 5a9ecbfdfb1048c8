"""Copies of Keras models."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema.errors import UnsupportedError


def copy_of(base: Any, keras: Any, weights: Sequence[np.ndarray], config: str | None, x: Any) -> Any:
    """A new model with weights of its own.

    Args:
        base: the architecture, unless `config` says another.
        keras: the module of its Keras.
        weights: in the order of `get_weights()`.
        config: JSON of an architecture whose layers' classes are the base's or xnn's.
        x: a batch of inputs, for models that are built by their first call.

    Raises:
        UnsupportedError: the model cannot be made from its configuration.
    """
    classes = {type(layer).__name__: type(layer) for layer in [base, *base._flatten_layers(include_self=False)]}
    try:
        if config is None:
            with keras.utils.custom_object_scope(classes):
                model = keras.models.clone_model(base)
        else:
            model = keras.models.model_from_json(config, custom_objects=classes)
        if not model.built or len(model.get_weights()) != len(weights):
            model(x)
        model.set_weights(list(weights))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise UnsupportedError(
            f"{base.name} cannot be copied, which compress needs: give {type(base).__name__} a get_config and a "
            f"from_config that make it anew ({error})"
        ) from error
    for copied, layer in zip(model._flatten_layers(), base._flatten_layers(), strict=False):
        copied.trainable = layer.trainable
    return model


def config_of(model: Any, base: Any) -> str | None:
    """JSON of the model's architecture, None where its weights are of the base's shapes."""
    shapes = [tuple(weight.shape) for weight in model.weights]
    return None if shapes == [tuple(weight.shape) for weight in base.weights] else model.to_json()
