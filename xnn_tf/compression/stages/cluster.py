"""Weight sharing: each kernel keeps few different values, which are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xnn_tf.cluster_callback import ClusterCallback
from xnn_tf.compression.context import Context, exactly
from xnn_tf.compression.stages.base import Stage, levels_of


@dataclass(frozen=True)
class Cluster(Stage):
    """Clusters the weights that are not zero.

    Attributes:
        clusters: values of a kernel, zero aside.
        conv_clusters: of a convolution's; None: as many.
        init: "kmeans++", "linear" or "density".
        begin, end: shares of the training: when sharing begins, and from when on weights keep to their value.
        learning_rate: at the start; None takes the optimizer's usual one.
    """

    name: ClassVar[str] = "cluster"
    share: float = 0.4
    clusters: int = 16
    conv_clusters: int | None = None
    init: str = "kmeans++"
    begin: float = 0.0
    end: float = 0.5
    learning_rate: float | None = None

    def run(self, context: Context) -> dict[str, Any]:
        counts = levels_of(context, self.clusters, self.conv_clusters)
        by_name = {exactly([name])[0]: count for name, count in counts.items()}
        callback = ClusterCallback(
            None, init=self.init, begin=self.begin, end=self.end, include=list(by_name), per_layer=by_name
        )
        return {"clusters": counts, **context.fit([callback], learning_rate=self.learning_rate)}

    def suggest(self, trial: Any) -> Cluster:
        return replace(self, clusters=trial.suggest_int("clusters", 4, 32, log=True))

    def keep(self, context: Context) -> list[Any]:
        return [ClusterCallback(None, include=exactly(list(context.weights())))]
