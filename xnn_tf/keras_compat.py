"""What differs between Keras 3 (on the TensorFlow backend) and tf_keras, in one place.

Everything else in `xnn_tf` asks here, by duck typing and module names, so that neither Keras is imported before a model
of it exists.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from schema.errors import InputError, UnsupportedError

Variable = Any
"""A `keras.Variable` (Keras 3), or a `tf.Variable`, perhaps auto-casting or mirrored (tf_keras)."""


def require_tensorflow_keras(model: Any) -> str:
    """Names the Keras that a model belongs to: `"keras"` (version 3, on TensorFlow) or `"tf_keras"`.

    Raises:
        InputError: it is no Keras model.
        UnsupportedError: Keras 3 runs on another backend, or it is Keras 2.
    """
    roots = (cls.__module__.partition(".")[0] for cls in type(model).__mro__)
    root = next((root for root in roots if root in ("keras", "tf_keras")), None)
    if root is None:
        raise InputError(
            f"{type(model).__module__}.{type(model).__name__} is no Keras model: pass a Keras 3 or tf_keras model"
        )
    if root == "keras":
        keras = sys.modules["keras"]
        if keras.__version__.startswith("2."):
            raise UnsupportedError(
                f"Keras {keras.__version__} is not supported: build the model with Keras 3, or import tf_keras"
            )
        if (backend := keras.backend.backend()) != "tensorflow":
            raise UnsupportedError(
                f"Keras runs on the {backend} backend, xnn needs TensorFlow: set KERAS_BACKEND=tensorflow before the "
                "first import of keras (or backend in ~/.keras/keras.json)"
            )
    return root


def sublayers(layer: Any) -> Iterator[Any]:
    """The layers directly inside a layer or model, those in its lists and dicts too."""
    return iter(layer._flatten_layers(include_self=False, recursive=False))


def is_built(model: Any) -> bool:
    """Whether the model and all its layers have their weights.

    Subclassed tf_keras models get them with the first batch.
    """
    return all(layer.built for layer in model._flatten_layers())


def weights_of(layer: Any) -> list[Variable]:
    """A layer's weights and those of the layers inside it; none where they do not exist yet."""
    try:
        return layer.weights
    except ValueError:  # what tf_keras raises for a model that is not built
        return []


def trainable_weights_of(model: Any) -> list[Variable]:
    """The weights that training changes."""
    try:
        return model.trainable_weights
    except ValueError:
        return []


def weight_name(variable: Variable) -> str:
    """The last part of a weight's name: `kernel` for `block/dense/kernel:0`."""
    return variable.name.rpartition("/")[2].partition(":")[0]


def constraint_of(variable: Variable) -> Callable | None:
    """The function that optimizers apply to the variable after each update."""
    return variable.constraint


def set_constraint(variable: Variable, constraint: Callable | None) -> None:
    """Makes every optimizer of either Keras apply `constraint` to the variable after each update.

    It counts in functions traced from now on. Layers keep their own `kernel_constraint`, so configs and saved models do
    not change.
    """
    if type(variable).constraint.fset is not None:  # Keras 3
        variable.constraint = constraint
        return
    variable = getattr(variable, "_variable", variable)  # the variable inside an AutoCastVariable of mixed precision
    for component in getattr(variable, "_values", (variable,)):  # one per replica of a mirrored variable
        component._constraint = constraint  # tf.Variable takes a constraint in its constructor only


def float32_values(variable: Variable) -> np.ndarray:
    """The variable's values as float32, whatever its type."""
    return np.asarray(variable.numpy()).astype(np.float32, copy=False)


def tensorflow_variable(variable: Variable) -> Any:
    """The `tf.Variable` of a variable of either Keras."""
    return variable if callable(variable.value) else variable.value


def moving_average_of(optimizer: Any, variable: Variable) -> Variable | None:
    """The variable in which an optimizer with `use_ema=True` averages `variable`, or None."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    for candidate in getattr(optimizer, "optimizers", (optimizer,)):
        averages = getattr(candidate, "_model_variables_moving_average", None)
        if not averages:
            continue
        indices = getattr(candidate, "_trainable_variables_indices", None) or getattr(candidate, "_index_dict", {})
        index = indices.get(candidate._var_key(variable))
        if index is not None:
            return averages[index]
    return None


def updates_done(model: Any) -> int:
    """Batches that the model's optimizer has seen; restored by checkpoints. 0 without an optimizer."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return 0
    return int(optimizer.iterations.numpy()) * (getattr(optimizer, "gradient_accumulation_steps", None) or 1)


def steps_per_execution(model: Any) -> int:
    """Batches that one call of `model.train_function` consumes (fewer at the end of an epoch)."""
    steps = getattr(model, "steps_per_execution", None)
    return 1 if steps is None else int(steps.numpy() if hasattr(steps, "numpy") else steps)


def replicas(model: Any) -> int:
    """In how many copies the model trains (`tf.distribute`)."""
    return model.distribute_strategy.num_replicas_in_sync


def variable_scope(model: Any) -> AbstractContextManager:
    """The scope that places new variables as the model's own are (mirrored, for instance)."""
    return model.distribute_strategy.scope()
