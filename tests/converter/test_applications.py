"""The nets of keras.applications, from the model object and from a SavedModel, against Keras."""

import importlib

import pytest

from benchmarks import applications

SIZE = 96
BAR = 1e-4
"""Of the outputs' standard deviation, where images have the net's own size. Smaller ones leave BatchNorm fewer values
to learn its statistics from, which makes the nets less well conditioned: Keras's own rounding costs more."""
SMALL = 3


EXPORTED = ("MobileNetV2", "ConvNeXtTiny")
"""Nets that are exported in every run. It takes Keras some ten seconds for each of the larger ones."""


def check(name, keras, bar, **options):
    for figures in applications.figures(name, keras, **options):
        assert figures.difference > 0.1
        assert figures.error < bar, figures.source
    keras.backend.clear_session()


@pytest.mark.slow
@pytest.mark.parametrize("name", applications.NAMES)
def test_keras_3(name):
    import keras

    check(name, keras, SMALL * BAR, size=SIZE, exported=name in EXPORTED)


@pytest.mark.nightly
@pytest.mark.parametrize("name", applications.NAMES)
def test_tf_keras(name):
    check(name, importlib.import_module("tf_keras"), SMALL * BAR, size=SIZE)


@pytest.mark.nightly
@pytest.mark.parametrize("name", applications.NAMES)
def test_at_full_size(name):
    import keras

    check(name, keras, BAR)
