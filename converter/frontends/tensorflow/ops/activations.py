"""Activations. Those that Keras spells out in several ops are recognised by the passes."""

from __future__ import annotations

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads

SIMPLE = {
    "Relu": "RELU",
    "Relu6": "RELU6",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
    "Softplus": "SOFTPLUS",
    "Softsign": "SOFTSIGN",
    "Selu": "SELU",
}


@reads(*SIMPLE)
def simple(reading: Reading) -> Result:
    return reading.emit(SIMPLE[reading.node.op], reading.tensor(0))


@reads("LeakyRelu")
def leaky_relu(reading: Reading) -> Result:
    return reading.emit("LEAKY_RELU", reading.tensor(0), alpha=reading.attribute("alpha"))


@reads("Elu")
def elu(reading: Reading) -> Result:
    return reading.emit("ELU", reading.tensor(0), alpha=1.0)


@reads("Softmax")
def softmax(reading: Reading) -> Result:
    return reading.emit("SOFTMAX", reading.tensor(0), beta=1.0, axis=-1)


@reads("LogSoftmax")
def log_softmax(reading: Reading) -> Result:
    return reading.emit("LOG_SOFTMAX", reading.tensor(0), axis=-1)
