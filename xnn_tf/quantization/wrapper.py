"""QuantizeWrapper: a layer that quantizes the layer inside it. What is common to both Kerases; see `layers`.

The layer keeps its float weights, which training changes. In each call they are replaced for a moment by rounded ones,
so that whatever the layer does is done with what the file will hold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from schema.errors import InputError, UnsupportedError
from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.settings import Settings
from xnn_tf.quantization.strategy import Strategy, strategy_named

PREFIX = "quant_"


class State:
    """What a wrapper knows and Keras must not track: plain Python objects, whose variables the wrapper owns."""

    def __init__(self) -> None:
        self.sources: list[Any] | None = None  # where inputs were rounded, by input; found when the graph is made
        self.own: list[Any] = []  # ranges of inputs that nothing rounded before
        self.steps: dict[int, Any] = {}  # logarithms of learned steps, by id of the weight: updates are then relative
        self.axes: dict[int, tuple[int, ...]] = {}  # axes of a weight that one step is for


class WrapperBehaviour:
    """Mixed into a Keras `Layer`. layer: the one inside. batch_norm, activation: layers behind it that are computed
    with it, as the converter fuses them, or None. quantize_inputs: which inputs are rounded here, None: those that no
    quantized layer has made.
    """

    name: str
    layer: Any
    batch_norm: Any
    activation: Any
    add_steps: Callable[[str, list[int]], Any]
    _several: Callable[[Any], bool]  # whether the shape that `build` gets is that of several inputs
    _scope: Callable[[str], AbstractContextManager]  # of names of variables
    _serialize: Callable[[Any], Any]
    _deserialize: Callable[[Any], Any]

    def __init__(
        self,
        layer: Any,
        strategy: Any,
        batch_norm: Any = None,
        activation: Any = None,
        quantize_inputs: list[bool] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.layer, self.batch_norm, self.activation = layer, batch_norm, activation
        self._strategy = strategy
        self._quantize_inputs = quantize_inputs
        self._state = State()
        self.supports_masking = getattr(layer, "supports_masking", True)

    @property
    def strategy(self) -> Strategy:
        return self._strategy

    # ---- construction ----

    def __call__(self, inputs: Any, *others: Any, **arguments: Any) -> Any:
        self._bind(inputs)
        return super().__call__(inputs, *others, **arguments)  # type: ignore[misc]

    def build(self, input_shape: Any) -> None:
        if not self.layer.built:
            with self._scope(self.layer.name):
                self._strategy.build_layer(self.layer, input_shape)
                self.layer.built = True
        for follower in (self.batch_norm, self.activation):
            if follower is not None and not follower.built:
                with self._scope(follower.name):
                    follower.build(self._strategy.result_shape(self.layer, input_shape))
                    follower.built = True
        self._build(list(input_shape) if self._several(input_shape) else [input_shape])
        self.built = True

    def _bind(self, inputs: Any) -> None:
        """Find out where inputs were rounded, from the layers that made them."""
        from xnn_tf.quantization.sources import source_of

        flat = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if self._state.sources is None and any(hasattr(x, "_keras_history") for x in flat):
            self._state.sources = [source_of(x) for x in flat]

    def _build(self, shapes: list[Any]) -> None:
        """Weights of this wrapper, after those of the layers inside."""
        from xnn_tf.quantization.ranges import TrainedRange

        strategy, state = self._strategy, self._state
        for kernel in find_kernels(self.layer):
            layout = kernel.layout
            whole = strategy.settings.weight_steps == "tensor"
            axes = tuple(a for a in range(len(layout.shape)) if whole or a not in layout.outputs)
            state.axes[id(kernel.variable)] = axes
            if strategy.settings.weight_steps == "learned" and strategy.rounds_weights:
                name = f"{kernel.name.replace('/', '_')}_steps"
                kept = [1 if a in axes else size for a, size in enumerate(layout.shape)]
                state.steps[id(kernel.variable)] = self.add_steps(name, kept)
        if self._quantize_inputs is None:
            sources = state.sources or [None] * len(shapes)
            self._quantize_inputs = [strategy.integer_inputs and source is None for source in sources]
        for index, own in enumerate(self._quantize_inputs):
            name = f"input_{index}"
            if own:
                strategy.ranges[name] = TrainedRange(self, name, strategy.input_settings(self.layer))
            state.own.append(strategy.ranges.get(name))
        strategy.build(self, shapes)

    def start_steps(self) -> None:
        """Set learned steps to what the weights need now; called once the weights have their values."""
        import tensorflow as tf

        from xnn_tf.quantization.fake_quantize import steps_of

        variables = {id(v): v for v in self.layer.weights}
        for key, steps in self._state.steps.items():
            found = steps_of(variables[key], self._state.axes[key], self._strategy.settings.weights)
            steps.assign(tf.math.log(found))

    # ---- call ----

    def call(self, inputs: Any, training: Any = None, mask: Any = None, **arguments: Any) -> Any:
        if mask is not None:
            arguments["mask"] = mask
        return self._run(inputs, training, arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return self.layer.compute_mask(inputs, mask)

    def _run(self, inputs: Any, training: Any, arguments: Mapping[str, Any]) -> Any:
        training = bool(training) if isinstance(training, (bool, int)) else False
        several = isinstance(inputs, (list, tuple))
        flat = list(inputs) if several else [inputs]
        known = self._state.sources or [None] * len(flat)
        sources = []
        for index, x in enumerate(flat):
            own = self._state.own[index] if index < len(self._state.own) else None
            if own is not None:
                flat[index] = own(x, training)
            sources.append(own or (known[index] if index < len(known) else None))
        given = flat if several else flat[0]
        return self._strategy.call(self, given, sources, training, **arguments)

    @property
    def output_source(self) -> Any:
        """The range that this wrapper's results are rounded to, None where they are not."""
        sources = self._state.sources or []
        own = [*self._state.own, *[None] * len(sources)]
        both = [mine or given for mine, given in zip(own, sources)] if sources else list(self._state.own)  # noqa: B905
        return self._strategy.output_range(both)

    def quantized(self, variable: Any) -> tuple[Any, Any]:
        """(the rounded weight, its steps with other axes at length 1).

        Of what `find_kernels` does not list, a matrix or more has one step, and a vector or a number is rounded as the
        activations that it is added to or multiplied by: the converter stores it so.
        """
        import tensorflow as tf

        from xnn_tf.quantization.fake_quantize import round_by_learned_steps, round_weights, steps_of
        from xnn_tf.quantization.ranges import TableRange, scale_of

        bits = self._strategy.settings.weights
        axes, rank = self._state.axes.get(id(variable)), len(variable.shape)
        if axes is None and rank < 2:
            table = TableRange(variable, self._strategy.settings.activations)
            return table(tf.convert_to_tensor(variable), False), scale_of(table)[0]
        learned = self._state.steps.get(id(variable))
        if learned is not None:
            steps = tf.exp(tf.convert_to_tensor(learned))
            return round_by_learned_steps(variable, steps, bits), tf.stop_gradient(steps)
        value = tf.convert_to_tensor(variable)
        steps = steps_of(value, range(rank) if axes is None else axes, bits)
        return round_weights(value, steps), steps

    @contextmanager
    def swapped(self, values: Sequence[tuple[Any, Any]], **attributes: Any) -> Iterator[None]:
        """Within this context the layer, and all layers inside it, hold other values in place of these variables.

        values: (variable, tensor) pairs. attributes: of the layer itself, such as activation=None.
        """
        pairs = {id(variable): value for variable, value in values}
        undo: list[tuple[dict[str, Any], str, Any]] = []
        try:
            for layer in self.layer._flatten_layers():
                held = layer.__dict__
                for name in [name for name, value in held.items() if id(value) in pairs]:
                    undo.append((held, name, held[name]))
                    held[name] = pairs[id(held[name])]
            held = self.layer.__dict__
            for name, value in attributes.items():
                if name in held:
                    undo.append((held, name, held[name]))
                    held[name] = value
            yield
        finally:
            for held, name, value in reversed(undo):
                held[name] = value

    # ---- configuration ----

    def get_config(self) -> dict[str, Any]:
        serialize = type(self)._serialize
        return {
            **super().get_config(),  # type: ignore[misc]
            "layer": serialize(self.layer),
            "batch_norm": None if self.batch_norm is None else serialize(self.batch_norm),
            "activation": None if self.activation is None else serialize(self.activation),
            "strategy": {
                "name": type(self._strategy).__name__,
                "settings": dataclasses.asdict(self._strategy.settings),
            },
            "quantize_inputs": self._quantize_inputs,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        config = dict(config)
        for name in ("layer", "batch_norm", "activation"):
            config[name] = None if config.get(name) is None else cls._deserialize(config[name])
        made = config["strategy"]
        config["strategy"] = strategy_named(made["name"])(Settings(**made["settings"]))
        return cls(**config)


def refuse_mixed_precision(layer: Any) -> None:
    """Raises UnsupportedError for a layer that does not compute in float32."""
    if layer.compute_dtype in ("float16", "bfloat16", "float64"):
        raise UnsupportedError(
            f"layer '{layer.name}' computes in {layer.compute_dtype}: quantize-aware training needs float32; set the "
            "dtype policy back before the model is built"
        )


def wrapper_of(layer: Any, strategy: Strategy | None = None, **arguments: Any) -> Any:
    """See `xnn_tf.quantization.QuantizeWrapper`."""
    from xnn_tf.keras_compat import require_tensorflow_keras
    from xnn_tf.quantization.layers import wrapper_class
    from xnn_tf.quantization.strategies import strategy_for

    keras = require_tensorflow_keras(layer)
    refuse_mixed_precision(layer)
    if strategy is None:
        strategy = strategy_for(layer, Settings())
        if strategy is None:
            raise InputError(
                f"layer '{layer.name}' ({type(layer).__name__}) has nothing to quantize: leave it as it is"
            )
    arguments.setdefault("name", f"{PREFIX}{layer.name}")
    return wrapper_class(keras)(layer, strategy, **arguments)
