"""The base of xnn's callbacks: one class that Keras 3 and tf_keras both take."""

from typing import Any

Logs = dict[str, Any] | None


def _unused(hook):
    """Marks a hook that does nothing; both Kerases then skip their per-batch work for it."""
    hook._is_default = True
    return hook


class Callback:
    """A callback for `fit`, `evaluate` and `predict` of either Keras.

    Neither Keras asks for its own base class: their callback lists call hooks by name, and find out which batch hooks
    are used by the `_is_default` mark (both) and the `_implements_*_batch_hooks` methods (tf_keras). Deriving from
    both base classes is impossible (`model` is a read-only property in one and assigned in the other's constructor),
    and deriving from neither makes `import xnn_tf` independent of them.

    Attributes:
        model: the model being trained.
        params: what `fit` tells: `epochs`, `steps` per epoch (None where unknown), `verbose`.
    """

    # tf_keras: logs may hold tensors, and need not be fetched for this callback's sake.
    _supports_tf_logs = True
    _chief_worker_only: bool | None = None

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_train_begin(self, logs: Logs = None) -> None: ...

    def on_train_end(self, logs: Logs = None) -> None: ...

    def on_test_begin(self, logs: Logs = None) -> None: ...

    def on_test_end(self, logs: Logs = None) -> None: ...

    def on_predict_begin(self, logs: Logs = None) -> None: ...

    def on_predict_end(self, logs: Logs = None) -> None: ...

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None: ...

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_batch_begin(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_batch_end(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_predict_batch_begin(self, batch: int, logs: Logs = None) -> None: ...

    @_unused
    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None: ...

    def _implements_train_batch_hooks(self) -> bool:
        return self._uses("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")

    def _implements_test_batch_hooks(self) -> bool:
        return self._uses("on_test_batch_begin", "on_test_batch_end")

    def _implements_predict_batch_hooks(self) -> bool:
        return self._uses("on_predict_batch_begin", "on_predict_batch_end")

    def _uses(self, *hooks: str) -> bool:
        return not all(getattr(getattr(self, hook), "_is_default", False) for hook in hooks)
