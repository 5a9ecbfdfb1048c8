"""What lies inside a layer, as a functional model: nested, Sequential and subclassed ones of either Keras.

A subclassed model or layer is followed by calling its `call` on symbolic tensors, as functional models are made. Its
layers are shared with the result, so their weights are the same.
"""

import inspect
import sys
import weakref
from typing import Any

from schema.errors import InputError
from xnn_tf.keras_compat import sublayers

_KERAS_MODULES = ("keras.", "tf_keras.")
_HARMLESS = {"__init__", "__module__", "__doc__", "get_config", "from_config", "get_build_config", "build_from_config"}
"""What a subclass may replace without computing something else."""
_views: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Of subclassed models and layers; made once, since each leaves nodes in the layers inside."""


def functional_view(layer: Any, inputs: list[Any] | None = None) -> Any | None:
    """The graph of layers inside of a layer or model, None where it is one layer.

    Args:
        layer: a model or layer of either Keras, or an operation of Keras 3.
        inputs: symbolic tensors that it is called with, for subclassed layers; None for the outermost model.

    Returns:
        An object with `inputs`, `outputs` and `_nodes_by_depth`, as functional models are.

    Raises:
        InputError: the outermost model is subclassed and cannot be followed.
    """
    if not hasattr(layer, "weights"):  # an operation
        return None
    if calls_as_keras(layer):
        if getattr(layer, "_functional", None) is not None:  # Sequential of Keras 3
            return layer._functional
        if getattr(layer, "_nodes_by_depth", None):
            return layer
        if type(layer).__name__ == "Sequential":
            raise InputError(f"{layer.name} is not built: give it an Input, or call it on data")
        if type(layer).__module__.startswith(_KERAS_MODULES):
            return None
    if not any(True for _ in sublayers(layer)) or _own_weights(layer):
        if inputs is None:
            raise InputError(
                f"{layer.name} ({type(layer).__name__}) holds no layers, or weights of its own beside them, so that "
                "its channels cannot be followed: put the weights into layers"
            )
        return None
    if layer not in _views:
        _views[layer] = _call_symbolically(layer, inputs)
    return _views[layer]


def keras_of(layer: Any) -> Any:
    """The module `keras` or `tf_keras` that a layer or model is of."""
    modules = (cls.__module__ for cls in type(layer).__mro__)
    return sys.modules[next(name for name in modules if name.startswith(_KERAS_MODULES)).partition(".")[0]]


def keras_class(layer: Any) -> str:
    """The name of the class of Keras that a layer is of, or derives from."""
    return next(cls.__name__ for cls in type(layer).__mro__ if cls.__module__.startswith(_KERAS_MODULES))


def is_functional(layer: Any) -> bool:
    """Whether it is a functional or Sequential model whose `call` is Keras' own."""
    return calls_as_keras(layer) and bool(
        getattr(layer, "_functional", None) is not None or getattr(layer, "_nodes_by_depth", None)
    )


def calls_as_keras(layer: Any) -> bool:
    """Whether what it computes is what the class of Keras computes that it derives from.

    A layer that replaces any method of that class may do something else with its weights; a model may replace all but
    `call`, such as `train_step`.
    """
    classes = type(layer).__mro__
    base = next(cls for cls in classes if cls.__module__.startswith(_KERAS_MODULES))
    if hasattr(layer, "train_step"):
        return getattr(type(layer).call, "__module__", "").startswith(_KERAS_MODULES)
    own = [vars(cls) for cls in classes[: classes.index(base)]]
    return not any(
        hasattr(base, name) and name not in _HARMLESS and (callable(value) or isinstance(value, property))
        for members in own
        for name, value in members.items()
    )


def _own_weights(layer: Any) -> bool:
    inner = {id(variable) for child in sublayers(layer) for variable in child.weights}
    return any(id(variable) not in inner for variable in layer.weights)


def _call_symbolically(layer: Any, inputs: list[Any] | None) -> Any | None:
    keras = keras_of(layer)
    outermost = inputs is None
    given = _inputs_of(layer, keras) if inputs is None else inputs
    fresh = [keras.Input(batch_shape=tuple(t.shape), dtype=t.dtype) for t in given]
    arguments = {"training": None} if "training" in inspect.signature(layer.call).parameters else {}
    structure = fresh[0] if len(fresh) == 1 else fresh
    try:
        return keras.Model(structure, layer.call(structure, **arguments), name=layer.name)
    except Exception as error:  # whatever the model's own code does with symbolic tensors
        if not outermost:
            return None
        raise InputError(
            f"{layer.name} ({type(layer).__name__}) cannot be followed: its call() does not run on symbolic tensors "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}); build it of "
            "layers and operations of Keras"
        ) from error


def _inputs_of(model: Any, keras: Any) -> list[Any]:
    """Symbolic inputs such as a subclassed model was built with."""
    shapes = getattr(model, "_build_shapes_dict", None)  # Keras 3
    if shapes:
        (shape,) = list(shapes.values())[:1]
        listed = shape if shape and isinstance(shape[0], (list, tuple)) else [shape]
        return [keras.Input(batch_shape=(None, *tuple(s)[1:])) for s in listed]
    spec = getattr(model, "_saved_model_inputs_spec", None)  # tf_keras
    if spec is not None:
        import tensorflow as tf

        return [keras.Input(shape=tuple(s.shape)[1:], dtype=s.dtype) for s in tf.nest.flatten(spec)]
    raise InputError(f"{model.name} ({type(model).__name__}) is not built: call it on data first")
