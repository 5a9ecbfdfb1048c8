"""What a QuantizeWrapper does around its layer: one strategy object for each kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from schema.errors import InputError
from xnn_tf.quantization.settings import Settings

if TYPE_CHECKING:
    from xnn_tf.quantization.integers import Exact

_known: dict[str, type[Strategy]] = {}
S = TypeVar("S", bound="type[Strategy]")


class Strategy:
    """Base of all strategies. One for layers of your own:

        @xnn_tf.quantization.register_strategy
        class ScaleStrategy(xnn_tf.quantization.Strategy):
            def build(self, wrapper, shapes):
                self.add_range(wrapper, "output")

            def call(self, wrapper, inputs, sources, training, **arguments):
                gain = self.quantized(wrapper, wrapper.layer.gain)
                with wrapper.swapped([(wrapper.layer.gain, gain)]):
                    y = wrapper.layer.call(inputs)
                return self.output(y, training)

    A layer class says which strategy it has by a method `quantization_strategy(settings)`, or the recipe does, by
    `strategies={Scale: lambda layer, settings: ScaleStrategy(settings)}`.

    Attributes:
        settings: bits and ranges of this layer.
        integer_inputs: whether all inputs have to be rounded before they come. False: they are taken as they are.
        fuses: whether a BatchNorm (of linear layers) and an activation behind the layer are computed by the strategy.
        rounds_weights: whether kernels are rounded with a step for each output channel.
        ranges: by name, of the tensors that are rounded here; "output" is what follows the layer sees.
    """

    integer_inputs: ClassVar[bool] = True
    rounds_weights: ClassVar[bool] = True
    fuses: ClassVar[bool] = False

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.ranges: dict[str, Any] = {}

    @classmethod
    def takes(cls, layer: Any) -> bool:
        """Whether a layer of the class that this strategy is for can be quantized by it."""
        return True

    def build_layer(self, layer: Any, shape: Any) -> None:
        """Make the weights of the layer inside. shape: what the wrapper gets, a list of shapes for several inputs."""
        layer.build(shape)

    def result_shape(self, layer: Any, shape: Any) -> Any:
        """Of what the layer inside gives."""
        return layer.compute_output_shape(shape)

    def input_settings(self, layer: Any) -> Settings:
        """How inputs are rounded that nothing rounded before."""
        return self.settings

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        """Make ranges and other variables. wrapper.layer is built already. shapes: of the inputs."""

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        """The layer's results, rounded. sources: the range of each input, None where it has none."""
        raise NotImplementedError(f"{type(self).__name__} has no call")

    def output_range(self, sources: list[Any]) -> Any:
        """The range of the results, None where they are not rounded."""
        return self.ranges.get("output")

    # What strategies are made of.

    def add_range(self, wrapper: Any, name: str) -> None:
        """A range that follows the data, for `self.ranges[name]`."""
        from xnn_tf.quantization.ranges import TrainedRange

        self.ranges[name] = TrainedRange(wrapper, name, self.settings)

    def output(self, y: Any, training: bool, exact: Exact | None = None) -> Any:
        """y rounded to the range "output". exact: see `ranges.Range`."""
        return self.ranges["output"](y, training, exact)

    def is_wide(self, sources: list[Any], name: str = "output") -> bool:
        """Whether int16 numbers come in, and go to the range of that name."""
        ranges = *sources, self.ranges.get(name)
        return all(each is not None and each.bits == 16 for each in ranges)

    def quantized(self, wrapper: Any, variable: Any) -> Any:
        """A weight rounded to the bits of the settings, with a step for each output channel."""
        return wrapper.quantized(variable)[0]


def register_strategy(strategy: S) -> S:
    """Class decorator: saved models name the strategy by its class name. Raises InputError for a name that is taken."""
    name = strategy.__name__
    taken = _known.setdefault(name, strategy)
    if taken is not strategy and taken.__module__ != strategy.__module__:
        raise InputError(f"there is a strategy {name} already, of {taken.__module__}: give yours another name")
    _known[name] = strategy
    return strategy


def strategy_named(name: str) -> Callable[[Settings], Strategy]:
    """Raises InputError for a name that nobody registered."""
    from xnn_tf.quantization import strategies  # noqa: F401  (registers xnn's own)

    if name not in _known:
        raise InputError(
            f"the model uses a quantization strategy {name!r} that is not registered: import the module that defines "
            "it, with @xnn_tf.quantization.register_strategy before the class"
        )
    return _known[name]
