"""One model, however it is stored, gives one graph: same numbers, names and order."""

import importlib

import numpy as np
import pytest

from converter import frontends
from converter.frontends import tensorflow
from schema import evaluate
from schema.errors import ConversionError, FormatError, InputError, UnsupportedError
from tests.support.keras_parity import compare, outputs, randomize


def build(keras):
    """Two inputs, a nested model, a shared layer, two outputs named b and a."""
    L = keras.layers
    inner_input = L.Input((6, 6, 4))
    inner = keras.Model(inner_input, L.ReLU(name="act")(L.Conv2D(4, 3, name="conv")(inner_input)), name="inner")
    left, right = L.Input((8, 8, 3), name="left"), L.Input((8, 8, 3), name="again")
    shared = L.Conv2D(4, 3, name="shared")
    x = inner(L.Add(name="add")([shared(left), shared(right)]))
    x = L.BatchNormalization(name="bn")(L.Dropout(0.5, name="drop")(x))
    outputs = [L.Dense(3, name="b")(L.Flatten(name="flat")(x)), L.GlobalMaxPooling2D(name="a")(x)]
    return keras.Model([left, right], outputs, name="net")


@pytest.fixture(scope="module", params=["keras", "tf_keras"])
def keras(request):
    return importlib.import_module(request.param)


@pytest.fixture(scope="module")
def model(keras):
    built = build(keras)
    randomize(built, np.random.default_rng(1))
    return built


def arrays(rng):
    return [rng.normal(size=(2, 8, 8, 3)).astype(np.float32) for _ in range(2)]


def save(model, keras, kind, folder):
    """The path of the model saved as `kind`."""
    if kind == "export":
        path = folder / "exported"
        model.export(str(path))
    elif kind == "save" and keras.__name__ == "tf_keras":
        path = folder / "saved"
        model.save(str(path), save_format="tf")
    elif kind == "save":
        import tensorflow as tf

        path = folder / "saved"
        tf.saved_model.save(model, str(path))
    else:
        path = folder / f"model{kind}"
        model.save(str(path))
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["export", "save", ".keras", ".h5"])
def test_sources_agree(keras, model, rng, tmp_path, kind):
    x = arrays(rng)
    graph = frontends.read(save(model, keras, kind, tmp_path))
    compare(evaluate.run(graph, x), outputs(model, x), 1e-6)
    if kind != "save" or keras.__name__ == "tf_keras":  # Keras 3 under tf.saved_model.save calls them inputs, inputs_1
        assert graph.input_names == ["left", "again"]
    assert graph.output_names == ["b", "a"]
    assert [t.shape for t in graph.inputs] == [(None, 8, 8, 3)] * 2
    layers = {node.name for node in graph.nodes}
    assert {"shared", "add", "inner/conv", "inner/act", "bn", "b", "flat", "a"} - layers == set()
    assert layers == {node.name for node in tensorflow.read(model).nodes}


def test_object(model, rng):
    x = arrays(rng)
    graph = frontends.read(model)
    compare(evaluate.run(graph, x), outputs(model, x), 1e-6)
    assert (graph.input_names, graph.output_names) == (["left", "again"], ["b", "a"])


def test_dict_of_outputs_keeps_its_order(keras):
    inputs = keras.Input((4,), name="x")
    b, a = keras.layers.Dense(2, name="one")(inputs), keras.layers.Dense(3, name="two")(inputs)
    graph = frontends.read(keras.Model(inputs, {"b": b, "a": a}))
    assert sorted(zip(graph.output_names, (t.shape[-1] for t in graph.outputs), strict=True)) == [("a", 3), ("b", 2)]


def test_dict_of_inputs(keras, rng):
    inputs = {"second": keras.Input((4,), name="second"), "first": keras.Input((3,), name="first")}
    joined = keras.layers.Concatenate()([inputs["second"], inputs["first"]])
    model = keras.Model(inputs, joined)
    graph = frontends.read(model)
    given = {"second": rng.normal(size=(2, 4)), "first": rng.normal(size=(2, 3))}
    given = {name: x.astype(np.float32) for name, x in given.items()}
    (got,) = evaluate.run(graph, [given[name] for name in graph.input_names])
    np.testing.assert_array_equal(got, np.concatenate([given["second"], given["first"]], 1))


def test_output_that_is_an_input_or_twice_the_same(keras, rng):
    inputs = keras.Input((4,), name="x")
    y = keras.layers.Dense(2, name="y")(inputs)
    graph = frontends.read(keras.Model(inputs, [y, inputs, y]))
    x = rng.normal(size=(2, 4)).astype(np.float32)
    first, same, again = evaluate.run(graph, [x])
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(first, again)
    assert len(set(graph.output_names)) == 3


def test_subclassed_model(keras, rng):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.head = keras.layers.Dense(5, activation="relu"), keras.layers.Dense(2)

        def call(self, x, training=False):
            x = self.hidden(x)
            return {"logits": self.head(x), "features": x}

    model = Net()
    x = rng.normal(size=(3, 4)).astype(np.float32)
    with pytest.raises(ConversionError, match="call model"):
        frontends.read(model)
    expected = outputs(model, [x])
    graph = frontends.read(model)
    compare(evaluate.run(graph, [x]), expected, 1e-6)
    assert graph.output_names == ["logits", "features"]
    assert graph.inputs[0].shape == (None, 4)


def test_sequential_that_is_called_once(keras, rng):
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2)])
    x = rng.normal(size=(3, 4)).astype(np.float32)
    expected = outputs(model, [x])
    compare(evaluate.run(frontends.read(model), [x]), expected, 1e-6)


def test_fixed_batch_stays():
    import keras

    inputs = keras.Input(batch_shape=(4, 3))
    assert frontends.read(keras.Model(inputs, keras.layers.Dense(2)(inputs))).inputs[0].shape == (4, 3)


# ---- SavedModels of plain TensorFlow ----


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory):
    """Two signatures, a variable, a lookup, a branch on a constant, and an assert and a print on the way."""
    import tensorflow as tf

    class Module(tf.Module):
        def __init__(self):
            self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="table")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="rows")])
        def look_up(self, rows):
            tf.debugging.assert_less(rows, 4)
            return {"found": tf.gather(self.table, rows), "doubled": self.scaled(tf.gather(self.table, rows), 2.0)}

        @tf.function
        def scaled(self, x, factor):
            return x * factor

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
        def project(self, x):
            return {"y": tf.cond(tf.constant(True), lambda: tf.matmul(x, self.table, transpose_b=True), lambda: x)}

    module = Module()
    folder = tmp_path_factory.mktemp("module")
    tf.saved_model.save(module, str(folder), {"look_up": module.look_up, "project": module.project})
    return folder


def test_signatures(module_folder):
    graph = frontends.read(module_folder, "look_up")
    results = dict(zip(graph.output_names, evaluate.run(graph, [np.array([3, 1], np.int32)]), strict=True))
    np.testing.assert_array_equal(results["found"], [[9, 10, 11], [3, 4, 5]])
    np.testing.assert_array_equal(results["doubled"], [[18, 20, 22], [6, 8, 10]])
    graph = frontends.read(module_folder, "project")
    assert (graph.name, graph.input_names, graph.output_names) == ("project", ["x"], ["y"])
    (y,) = evaluate.run(graph, [np.eye(3, dtype=np.float32)])
    np.testing.assert_array_equal(y, np.arange(12).reshape(4, 3).T)


def test_unknown_signature_lists_the_ones_there_are(module_folder):
    with pytest.raises(InputError, match=r"'other'.*look_up, project"):
        frontends.read(module_folder, "other")
    with pytest.raises(InputError, match=r"several.*look_up, project.*--signature"):
        frontends.read(module_folder)


def test_folder_without_a_saved_model(tmp_path):
    with pytest.raises(ConversionError, match="no SavedModel"):
        frontends.read(tmp_path)


def test_damaged_saved_model(module_folder, tmp_path):
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(module_folder, folder)
    data = next((folder / "variables").glob("variables.data*"))
    data.write_bytes(b"")
    with pytest.raises(FormatError, match=r"variable 'table'.*damaged"):
        frontends.read(folder, "project")
    next((folder / "variables").glob("variables.index")).unlink()
    with pytest.raises(FormatError, match="variable 'table'"):
        frontends.read(folder, "project")
    program = folder / "saved_model.pb"
    program.write_bytes(program.read_bytes()[:1000])
    with pytest.raises(FormatError, match="damaged"):
        frontends.read(folder)


# ---- files ----


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        frontends.read(tmp_path / "none.keras")
    other = tmp_path / "model.onnx"
    other.write_bytes(b"x")
    with pytest.raises(UnsupportedError, match="onnx"):
        frontends.read(other)
    for name in ("model.keras", "model.h5"):
        (tmp_path / name).write_bytes(b"not a model at all")
        with pytest.raises(FormatError, match="no Keras model"):
            frontends.read(tmp_path / name)
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    with pytest.raises(UnsupportedError, match="its folder"):
        frontends.read(tmp_path / "saved_model.pb")


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.filterwarnings("ignore")
def test_truncated_files(tmp_path, suffix):
    import keras

    inputs = keras.Input((4,))
    path = tmp_path / f"model{suffix}"
    keras.Model(inputs, keras.layers.Dense(3)(inputs)).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises((FormatError, ConversionError), match=str(path)):
        frontends.read(path)


@pytest.mark.filterwarnings("ignore")
def test_weights_alone_are_no_model(tmp_path):
    import tf_keras

    inputs = tf_keras.Input((4,))
    tf_keras.Model(inputs, tf_keras.layers.Dense(3)(inputs)).save_weights(tmp_path / "weights.h5")
    with pytest.raises(ConversionError, match="holds weights"):
        frontends.read(tmp_path / "weights.h5")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_custom_objects(keras, rng, tmp_path, suffix):
    module = tmp_path / f"own_layers_{keras.__name__}_{suffix[1:]}.py"
    module.write_text(
        f"import {keras.__name__} as keras\n\n\nclass Shift(keras.layers.Layer):\n"
        "    def call(self, x):\n        return x + 1.0\n"
    )
    from converter.frontends.tensorflow import keras_files

    shift = keras_files.objects_of(str(module))["Shift"]
    inputs = keras.Input((4,))
    path = tmp_path / f"model{suffix}"
    keras.Model(inputs, shift(name="shift")(inputs)).save(path)
    with pytest.raises(ConversionError, match="--custom-objects"):
        frontends.read(path)
    x = rng.normal(size=(2, 4)).astype(np.float32)
    for given in (str(module), {"Shift": shift}):
        (y,) = evaluate.run(frontends.read(path, custom_objects=given), [x])
        np.testing.assert_allclose(y, x + 1, rtol=1e-6)
    with pytest.raises(InputError, match="no_such_module"):
        frontends.read(path, custom_objects="no_such_module")


def test_depthwise_h5_of_keras_2_needs_tf_keras(shared):
    """Keras 3 refuses this file."""
    graph = frontends.read(shared / "models" / "mltk" / "keyword_spotting.h5")
    assert any(node.op == "DEPTHWISE_CONV_2D" for node in graph.nodes)


def test_what_is_no_model():
    with pytest.raises(InputError, match=r"int cannot be converted"):
        frontends.read(3)


# ---- what is not supported ----


def test_unsupported_op_names_layer_op_and_remedy():
    import keras
    import tensorflow as tf

    class Sorted(keras.layers.Layer):
        def call(self, x):
            return tf.linalg.inv(x)

    inputs = keras.Input((4, 4))
    with pytest.raises(UnsupportedError, match=r"layer 'inverse' \(TensorFlow op MatrixInverse\): .*outside"):
        frontends.read(keras.Model(inputs, Sorted(name="inverse")(inputs)))


def test_loops_of_tensorflow_1_are_refused(shared):
    with pytest.raises(UnsupportedError, match=r"layer '.*': loops of TensorFlow 1.* are not supported"):
        frontends.read(shared / "models" / "handtrack_ssd")


def test_saved_model_of_others(shared, rng):
    """Of TensorFlow 2's early days, with transposes, logarithms and data-dependent sizes."""
    import tensorflow as tf

    folder = shared / "models" / "basic_pitch" / "saved_model"
    x = rng.normal(0, 0.1, (1, 43844, 1)).astype(np.float32)
    theirs = tf.saved_model.load(str(folder)).signatures["serving_default"](tf.constant(x))
    graph = frontends.read(folder)
    assert graph.output_names == sorted(theirs)
    compare(evaluate.run(graph, [x]), [theirs[name].numpy() for name in graph.output_names], 1e-4)


def test_unrolled_recurrence_converts(keras, rng):
    inputs = keras.Input((5, 3))
    model = keras.Model(inputs, keras.layers.LSTM(4, unroll=True)(inputs))
    x = rng.normal(size=(3, 5, 3)).astype(np.float32)
    compare(evaluate.run(frontends.read(model), [x]), outputs(model, [x]), 1e-6)


def test_layers_whose_ops_are_in_functions_of_their_own(tmp_path):
    """As grouped convolutions are, which Keras 3 compiles."""
    import keras

    x = keras.Input((6, 6, 4), name="image")
    y = keras.layers.Conv2D(8, 3, groups=2, name="grouped")(keras.layers.Conv2D(4, 3, name="plain")(x))
    keras.Model(x, keras.layers.ReLU(name="last")(y), name="net").export(str(tmp_path / "net"), verbose=False)
    graph = frontends.read(tmp_path / "net")
    assert {node.name for node in graph.nodes} == {"plain", "grouped", "last"}
    assert graph.output_names == ["last"]


def test_strings_are_refused():
    import tensorflow as tf

    class Module(tf.Module):
        pass

    module = Module()
    module.f = tf.function(lambda text: tf.strings.length(text), input_signature=[tf.TensorSpec([None], tf.string)])
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, {"serving_default": module.f})
        with pytest.raises(UnsupportedError, match="string"):
            frontends.read(folder)
