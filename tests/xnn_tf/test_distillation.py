"""Distilling inside `fit`: the loss is Hinton's, the model stays what it was, other callbacks work beside it."""

import subprocess
import sys

import numpy as np
import pytest

import xnn_tf
from schema.errors import InputError

CLASSES = 3


@pytest.fixture
def problem(rng):
    x = rng.normal(size=(64, 6)).astype(np.float32)
    return x, rng.integers(0, CLASSES, 64)


def network(keras, activation=None, units=CLASSES, name="student"):
    layers = [
        keras.layers.Input((6,)),
        keras.layers.Dense(8, "relu", name="hidden"),
        keras.layers.Dense(units, activation, name="out"),
    ]
    return keras.Sequential(layers, name=name)


def compiled(keras, model, from_logits=True, **arguments):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model.compile(keras.optimizers.SGD(0.1), loss, **arguments)
    return model


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def divergence(wanted, given, temperature):
    p, q = softmax(wanted / temperature), softmax(given / temperature)
    return temperature**2 * np.mean(np.sum(p * (np.log(p) - np.log(q)), axis=-1))


def predictions(model, x):
    return np.asarray(model(x, training=False), np.float64)


def test_one_step_descends_the_mixed_loss(keras, problem):
    import tensorflow as tf

    x, y = problem
    teacher, model = network(keras, name="teacher"), compiled(keras, network(keras))
    kernel = model.layers[0].kernel
    before = kernel.numpy()
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        task = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        p = tf.nn.softmax(teacher(x) / 3.0)
        apart = tf.reduce_mean(tf.reduce_sum(p * (tf.math.log(p) - tf.nn.log_softmax(logits / 3.0)), axis=-1))
        total = 0.4 * task + 0.6 * 9.0 * apart
    gradient = tape.gradient(total, getattr(kernel, "value", kernel) if keras.__name__ == "keras" else kernel)

    distill = xnn_tf.DistillCallback(teacher, temperature=3.0, weight=0.6)
    model.fit(x, y, batch_size=64, epochs=1, verbose=0, callbacks=[distill])

    np.testing.assert_allclose(kernel.numpy(), before - 0.1 * gradient.numpy(), atol=1e-6)


def test_the_student_comes_to_answer_as_its_teacher(keras, problem):
    x, y = problem
    teacher, model = network(keras, name="teacher"), compiled(keras, network(keras))
    model.compile(keras.optimizers.Adam(0.02), model.loss)
    apart = divergence(predictions(teacher, x), predictions(model, x), 2.0)
    weights = teacher.get_weights()

    model.fit(x, y, epochs=60, verbose=0, callbacks=[xnn_tf.DistillCallback(teacher, weight=1.0)])

    assert divergence(predictions(teacher, x), predictions(model, x), 2.0) < 0.1 * apart
    for now, then in zip(teacher.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(now, then)


def test_probabilities_are_taken_back_to_logits(keras, problem):
    x, _ = problem
    teacher, student = network(keras, name="teacher"), network(keras)
    logits = predictions(teacher, x), predictions(student, x)
    wanted = divergence(*logits, 2.0)
    assert float(xnn_tf.DistillCallback(teacher).loss(x, student(x))) == pytest.approx(wanted, rel=1e-4)

    for model in (teacher, student):
        model.layers[-1].activation = keras.activations.softmax
    distill = xnn_tf.DistillCallback(teacher)
    distill.set_model(student)
    assert float(distill.loss(x, student(x))) == pytest.approx(wanted, rel=1e-4)


def test_single_probabilities_and_values(keras, problem):
    x, _ = problem
    teacher, student = network(keras, "sigmoid", name="teacher"), network(keras, "sigmoid")
    p, q = predictions(teacher, x), predictions(student, x)
    wanted = np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
    distill = xnn_tf.DistillCallback(teacher, temperature=1.0)
    distill.set_model(student)
    assert float(distill.loss(x, student(x))) == pytest.approx(wanted, rel=1e-4)

    teacher, student = network(keras, units=1, name="teacher"), network(keras, units=1)
    distill = xnn_tf.DistillCallback(teacher)
    distill.set_model(student)
    wanted = np.mean((predictions(teacher, x) - predictions(student, x)) ** 2)
    assert float(distill.loss(x, student(x))) == pytest.approx(wanted, rel=1e-5)


def test_sample_weights_count(keras, problem):
    x, _ = problem
    teacher, student = network(keras, name="teacher"), network(keras)
    weights = np.zeros(64, np.float32)
    weights[:16] = 1
    distill = xnn_tf.DistillCallback(teacher)
    some = float(distill.loss(x[:16], student(x[:16])))
    assert float(distill.loss(x, student(x), weights)) == pytest.approx(some / 4, rel=1e-5)


def test_pruning_beside_it_and_what_is_left(keras, problem, tmp_path):
    x, y = problem
    model = compiled(keras, network(keras), metrics=["accuracy"])
    callbacks = [xnn_tf.DistillCallback(network(keras, name="teacher")), xnn_tf.PruneCallback(0.5, end=0.5)]
    loss_before = model.evaluate(x, y, verbose=0)[0]

    history = model.fit(x, y, epochs=2, verbose=0, validation_data=(x, y), callbacks=callbacks).history

    assert history["sparsity"][-1] == 0.5
    loss_after, accuracy = model.evaluate(x, y, verbose=0)
    assert history["val_loss"][-1] == pytest.approx(loss_after, rel=1e-5)  # validation is by the model's own loss
    assert loss_after != loss_before
    assert not {"compute_loss", "train_step"} & set(vars(model))
    model.save(tmp_path / "student.keras")
    reloaded = keras.models.load_model(tmp_path / "student.keras")
    assert reloaded.evaluate(x, y, verbose=0)[1] == pytest.approx(accuracy)
    np.testing.assert_allclose(predictions(reloaded, x), predictions(model, x), atol=1e-6)


def test_an_earlier_fit_and_a_later_one_are_by_the_models_own_loss(keras, problem):
    x, y = problem
    plain, model = (compiled(keras, network(keras)) for _ in range(2))
    model.set_weights(plain.get_weights())
    for each in (plain, model):
        each.fit(x, y, batch_size=64, verbose=0)
    other = compiled(keras, network(keras))
    other.set_weights(model.get_weights())
    model.fit(x, y, batch_size=64, verbose=0, callbacks=[xnn_tf.DistillCallback(other, weight=1.0)])
    for now, then in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(now, then, atol=1e-7)  # it answers as its teacher already: nothing to learn

    for each in (plain, model):
        each.fit(x, y, batch_size=64, verbose=0)
    for now, then in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(now, then, atol=1e-7)


def test_several_outputs_in_mixed_precision_compiled_by_xla(keras, rng):
    policy = keras.mixed_precision
    policy.set_global_policy("mixed_bfloat16")
    try:

        def build():
            inputs = keras.layers.Input((6,))
            hidden = keras.layers.Dense(8, "relu")(inputs)
            heads = [
                keras.layers.Dense(3, name="kind")(hidden),
                keras.layers.Dense(1, dtype="float32", name="size")(hidden),
            ]
            return keras.Model(inputs, heads)

        teacher, model = build(), build()
        loss = [keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse"]
        model.compile("adam", loss, jit_compile=True)
        x = rng.normal(size=(64, 6)).astype(np.float32)
        answers = [np.asarray(answer, np.float32) for answer in teacher(x)]
        before = np.mean((answers[1] - np.asarray(model(x)[1])) ** 2)
        y = [rng.integers(0, 3, 64), rng.normal(size=(64, 1)).astype(np.float32)]
        model.fit(x, y, epochs=40, verbose=0, callbacks=[xnn_tf.DistillCallback(teacher, weight=1.0)])
    finally:
        policy.set_global_policy("float32")
    assert np.mean((answers[1] - np.asarray(model(x)[1])) ** 2) < 0.5 * before


REPLICAS = """
import numpy as np
import tensorflow as tf
import keras, tf_keras
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import xnn_tf
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 6)).astype("float32"), rng.integers(0, 3, 64)
for keras in (keras, tf_keras):
    def build():
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(3)])
        model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model
    teacher, alone = build(), build()
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        both = build()
    both.set_weights(alone.get_weights())
    for model in (alone, both):
        model.fit(x, y, batch_size=64, shuffle=False, verbose=0, callbacks=[xnn_tf.DistillCallback(teacher)])
    for now, then in zip(both.get_weights(), alone.get_weights()):
        np.testing.assert_allclose(now, then, atol=1e-6)
"""


@pytest.mark.slow
def test_replicas_train_as_one(repository):
    command = [sys.executable, "-c", REPLICAS]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr


def test_a_train_step_that_does_not_ask_for_the_loss_is_told(keras, problem):
    import tensorflow as tf

    class Own(keras.Model):
        def train_step(self, data):
            x, _ = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True)))
            self.optimizer.apply_gradients(
                zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
            )
            return {"loss": loss}

    inner = network(keras)
    model = compiled(keras, Own(inner.inputs, inner.outputs))
    with pytest.warns(UserWarning, match="does not call compute_loss"):
        model.fit(*problem, verbose=0, callbacks=[xnn_tf.DistillCallback(network(keras, name="teacher"))])


def test_what_cannot_be_is_refused(keras, problem):
    x, y = problem
    model = compiled(keras, network(keras))
    with pytest.raises(InputError, match="temperature"):
        xnn_tf.DistillCallback(model, temperature=0)
    with pytest.raises(InputError, match="weight"):
        xnn_tf.DistillCallback(model, weight=1.5)
    with pytest.raises(InputError, match="teacher"):
        xnn_tf.DistillCallback("resnet")
    with pytest.raises(InputError, match="give a copy"):
        model.fit(x, y, verbose=0, callbacks=[xnn_tf.DistillCallback(model)])
    with pytest.raises(InputError, match=r"output 0: the teacher's is \(64, 5\)"):
        xnn_tf.DistillCallback(network(keras, units=5)).loss(x, model(x))
