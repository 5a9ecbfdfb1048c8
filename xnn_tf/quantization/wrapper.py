"""QuantizeWrapper: a layer that quantizes the layer inside it. What is common to both Kerases; see `layers`.

The layer keeps its float weights, which training changes. In each call they are replaced for a moment by rounded ones,
so that whatever the layer does is done with what the file will hold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from schema.errors import InputError
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

    def _begin(
        self, layer: Any, strategy: Any, batch_norm: Any, activation: Any, quantize_inputs: list[bool] | None
    ) -> None:
        self.layer, self.batch_norm, self.activation = layer, batch_norm, activation
        self._strategy = strategy
        self._quantize_inputs = quantize_inputs
        self._state = State()
        self.supports_masking = getattr(layer, "supports_masking", True)

    @property
    def strategy(self) -> Strategy:
        return self._strategy

    # ---- construction ----

    def _bind(self, inputs: Any) -> None:
        """Find out where inputs were rounded, from the layers that made them."""
        from xnn_tf.quantization.sources import source_of

        flat = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if self._state.sources is None and any(hasattr(x, "_keras_history") for x in flat):
            self._state.sources = [source_of(x) for x in flat]

    def _build(self, shapes: list[Any]) -> None:
        """Weights of this wrapper, after those of the layers inside."""
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
                strategy.add_range(self, name)
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
        """(the rounded weight, its steps with other axes at length 1)."""
        import tensorflow as tf

        from xnn_tf.quantization.fake_quantize import round_by_learned_steps, round_weights, steps_of

        bits = self._strategy.settings.weights
        learned = self._state.steps.get(id(variable))
        if learned is not None:
            steps = tf.exp(tf.convert_to_tensor(learned))
            return round_by_learned_steps(variable, steps, bits), tf.stop_gradient(steps)
        value = tf.convert_to_tensor(variable)
        steps = steps_of(value, self._state.axes.get(id(variable), ()), bits)
        return round_weights(value, steps), steps

    @contextmanager
    def swapped(self, values: Mapping[Any, Any] | list[tuple[Any, Any]], **attributes: Any) -> Iterator[None]:
        """Within this context the layer, and all layers inside it, hold other values in place of these variables.

        values: (variable, tensor) pairs. attributes: of the layer itself, such as activation=None.
        """
        pairs = {id(variable): value for variable, value in (values.items() if isinstance(values, Mapping) else values)}
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

    def _config(self, serialize: Any) -> dict[str, Any]:
        return {
            "layer": serialize(self.layer),
            "batch_norm": None if self.batch_norm is None else serialize(self.batch_norm),
            "activation": None if self.activation is None else serialize(self.activation),
            "strategy": {
                "name": type(self._strategy).__name__,
                "settings": dataclasses.asdict(self._strategy.settings),
            },
            "quantize_inputs": self._quantize_inputs,
        }

    @staticmethod
    def _arguments(config: dict[str, Any], deserialize: Any) -> dict[str, Any]:
        """Arguments of the constructor from a config."""
        config = dict(config)
        for name in ("layer", "batch_norm", "activation"):
            config[name] = None if config.get(name) is None else deserialize(config[name])
        made = config["strategy"]
        config["strategy"] = strategy_named(made["name"])(Settings(**made["settings"]))
        return config


def wrapper_of(layer: Any, strategy: Strategy | None = None, **arguments: Any) -> Any:
    """See `xnn_tf.quantization.QuantizeWrapper`."""
    from xnn_tf.keras_compat import require_tensorflow_keras
    from xnn_tf.quantization.layers import wrapper_class
    from xnn_tf.quantization.strategies import strategy_for

    keras = require_tensorflow_keras(layer)
    if strategy is None:
        strategy = strategy_for(layer, Settings())
        if strategy is None:
            raise InputError(
                f"layer '{layer.name}' ({type(layer).__name__}) has nothing to quantize: leave it as it is"
            )
    arguments.setdefault("name", f"{PREFIX}{layer.name}")
    return wrapper_class(keras)(layer, strategy, **arguments)
