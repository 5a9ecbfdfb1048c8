"""Which channels go together, and why others are fixed."""

import re

import pytest

from xnn_tf.channels import channel_groups
from xnn_tf.channels.rules.registry import rule_for
from xnn_tf.channels.rules.wrappers import Opaque


def reasons(model):
    return {group.name: group.fixed for group in channel_groups(model)}


def test_additions_join_the_layers_that_feed_them(keras):
    L = keras.layers
    inputs = L.Input((8, 8, 3))
    x = L.Conv2D(4, 1, name="a")(inputs)
    y = L.Conv2D(2, 1, name="b")(x)
    z = L.Concatenate()([y, L.Conv2D(2, 1, name="c")(x)])
    model = keras.Model(inputs, L.Conv2D(5, 1, name="out")(L.Add()([x, z])))
    groups = channel_groups(model)
    assert [(group.name, len(group)) for group in groups.removable] == [("a + b", 2), ("a + c", 2)]
    assert groups["out"].fixed == "output of the model"
    assert "a + b" in str(groups)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda L, x: L.LayerNormalization(name="norm")(x), "norm .*several channels together"),
        (lambda L, x: L.Softmax(name="softmax")(x), "softmax .*several channels together"),
        (lambda L, x: L.GroupNormalization(groups=2, name="norm")(x), "norm .*several channels together"),
        (lambda L, x: L.Activation("softmax", name="act")(x), "act .*mixes channels"),
        (lambda L, x: L.Lambda(lambda v: v * 2, name="own")(x), "own .*not understood"),
        (lambda L, x: L.BatchNormalization(axis=1, name="bn")(x), "bn .*another axis"),
        (lambda L, x: L.MultiHeadAttention(2, 2, name="mha")(x, x), "mha"),
    ],
)
def test_what_mixes_channels_fixes_them_with_the_reason(keras, build, reason):
    L = keras.layers
    inputs = L.Input((8, 8, 3))
    x = build(L, L.Conv2D(4, 1, name="first")(inputs))
    model = keras.Model(inputs, L.Dense(2, name="last")(L.Flatten()(x)))
    assert not channel_groups(model).removable
    assert re.search(reason, reasons(model)["first"])


def test_a_softmax_in_a_layer_fixes_its_units(keras):
    L = keras.layers
    model = keras.Sequential([L.Input((6,)), L.Dense(4, "softmax", name="gate"), L.Dense(2, name="out")])
    assert "activation of gate mixes channels" in reasons(model)["gate"]


def test_recurrent_layers_that_are_given_a_state_are_fixed(keras):
    L = keras.layers
    inputs, state = L.Input((5, 3)), L.Input((4,))
    x = L.GRU(4, name="gru")(inputs, initial_state=L.Dense(4, name="state")(state))
    model = keras.Model([inputs, state], L.Dense(2)(x))
    assert "given state" in str(reasons(model))
    assert not channel_groups(model).removable


def test_subclassed_layers_are_understood_as_far_as_they_are_what_they_derive_from(keras):
    class Named(keras.layers.Conv2D):
        def __init__(self, filters, **arguments):
            super().__init__(filters, 3, **arguments)

    class Standardized(Named):
        def convolution_op(self, inputs, kernel):
            return super().convolution_op(inputs, kernel - kernel.mean())

    L = keras.layers
    x = L.Input((8, 8, 3))
    y = L.Conv2D(2, 1, name="out")(Named(4, name="own")(L.Conv2D(4, 1, name="first")(x)))
    assert [group.name for group in channel_groups(keras.Model(x, y)).removable] == ["first", "own"]
    assert isinstance(rule_for(Standardized(4)), Opaque)
