"""The physically smaller model: without the neurons that do nothing."""

from typing import Any

from xnn_tf.channels.dead import dead_neurons
from xnn_tf.channels.groups import channel_groups
from xnn_tf.channels.rebuild import Rebuilder, compile_like


def shrink(model: Any) -> Any:
    """Removes the neurons (filters, units) that do nothing, and returns a smaller model of the same function.

        model.fit(x, y, epochs=10, callbacks=[xnn_tf.NeuronPruneCallback(target=0.5)])
        small = xnn_tf.shrink(model)

    A neuron does nothing where all that read it have zeros for it, or where it is the same number whatever the input
    is (a filter and bias of zeros, BatchNorm with γ = 0); that number, after its activation, goes into the biases of
    its readers. It does not matter what made the zeros. Neurons whose results are added to others go only together
    with these (see `xnn_tf.channel_groups`), and each layer keeps one.

    Layers keep their names, settings and order, and the model can be trained further; it is compiled as the old one
    was, with a new state of the optimizer. Subclassed models come back as functional ones of the same layers.

    Args:
        model: of Keras 3 (on TensorFlow) or tf_keras; it stays as it is.

    Returns:
        A new model of the same Keras.

    Raises:
        InputError: no Keras model, one that is not built, a subclassed one that cannot be followed, or a custom layer
            without `get_config`; the message names it.
        UnsupportedError: Keras runs on another backend than TensorFlow.
    """
    groups = channel_groups(model)
    small = Rebuilder(groups, dead_neurons(groups))(model)
    compile_like(small, model)
    return small
