import numpy as np
import pytest

from converter.quantize import load
from converter.quantize.calibration import Batches
from schema import CalibrationError
from tests.support.float_graphs import Builder

A = np.arange(5 * 3, dtype=np.float32).reshape(5, 3)
B = np.arange(5, dtype=np.int32).reshape(5, 1)


def one_input(batch=None):
    builder = Builder()
    return builder.end(builder.input("image", batch, 3))


def two_inputs():
    builder = Builder()
    return builder.end(builder.input("image", None, 3), builder.input("label", None, 1, dtype=np.int32))


def batches(graph, calibration, size=2):
    return [list(batch) for batch in Batches(graph, calibration, size)]


def assert_batches(found, *expected):
    assert len(found) == len(expected)
    for batch, arrays in zip(found, expected, strict=True):
        assert len(batch) == len(arrays)
        for array, wanted in zip(batch, arrays, strict=True):
            np.testing.assert_array_equal(array, wanted, strict=True)


class Viewable:
    """Something with a shape that numpy can view, as a TensorFlow tensor is."""

    def __init__(self, array):
        self._array, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype or self._array.dtype)


@pytest.mark.parametrize("data", [A, {"image": A}, {"arr_0": A}, Viewable(A), A.astype(np.float64)])
def test_samples_are_cut_into_batches(data):
    assert_batches(batches(one_input(), data), [A[:2]], [A[2:4]], [A[4:]])
    assert Batches(one_input(), data, 2).samples == 5


@pytest.mark.parametrize("data", [{"label": B, "image": A}, {"arr_0": A, "arr_1": B}])
def test_samples_by_name(data):
    assert_batches(batches(two_inputs(), data, 3), [A[:3], B[:3]], [A[3:], B[3:]])


@pytest.mark.parametrize(
    "batch",
    [A, {"image": A}, (A,), [A], (A, np.zeros(5)), ({"image": A}, np.zeros(5)), ([A], B, B), Viewable(A), (A, None)],
)
def test_an_iterable_yields_batches(batch):
    assert_batches(batches(one_input(), [batch, batch]), [A], [A])
    assert_batches(batches(one_input(), iter([batch])), [A])
    assert Batches(one_input(), [batch], 2).samples is None


@pytest.mark.parametrize(
    "batch", [(A, B), [A, B], {"label": B, "image": A}, ((A, B), 1), ({"image": A, "label": B}, 0)]
)
def test_batches_of_two_inputs(batch):
    assert_batches(batches(two_inputs(), [batch]), [A, B])


def test_a_fixed_batch_axis_sets_the_batch_size():
    data = Batches(one_input(2), A, 32)
    assert data.samples == 4
    assert_batches(list(data), [A[:2]], [A[2:4]])
    with pytest.raises(CalibrationError, match="5 samples, fewer than the 8"):
        Batches(one_input(8), A, 32)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "int8 needs calibration data.*'image'"),
        ("calib.npz", "load it with"),
        (7, "calibration is int: an array, a dict"),
        (A[:0], r"'image' .* is empty: shape \(0, 3\)"),
        (A[:, :2], r"'image' \(float32, shape \(\?, 3\)\) has shape \(5, 2\)"),
        (A[0], r"has shape \(3,\)"),
        (A.astype(np.int64), "is int64: .*astype"),
        (A.astype(np.complex64), "is complex64"),
        (A.astype(str), "is <U"),
        (np.where(A == 7, np.nan, A), "'image'.*has NaN"),
        (np.where(A == 7, np.inf, A), "has infinite values"),
        (A.astype(np.float64) * 1e300, "has infinite values"),
        ({"img": A}, "no input is called 'img'; 'image' is missing"),
        ({}, "'image' is missing"),
        ([], "yields no batches"),
        ([A, A[:, :2]], "calibration batch 1 for input 'image'"),
        ([[A, A, A]], "is a list of 3"),
        ([7], "calibration batch 0 is int"),
    ],
)
def test_wrong_data_is_refused(data, message):
    with pytest.raises(CalibrationError, match=message):
        batches(one_input(), data)


def test_wrong_data_for_two_inputs_is_refused():
    with pytest.raises(CalibrationError, match=r"one array, but the model takes input 'image'.*'label'"):
        batches(two_inputs(), A)
    with pytest.raises(CalibrationError, match=r"different number of samples.*'image': 5, 'label': 4"):
        batches(two_inputs(), {"image": A, "label": B[:4]})
    with pytest.raises(CalibrationError, match=r"'label'.*is float32"):
        batches(two_inputs(), {"image": A, "label": B.astype(np.float32)})
    with pytest.raises(CalibrationError, match="int64 values that int32 does not hold"):
        batches(two_inputs(), {"image": A, "label": B.astype(np.int64) << 40})


def test_an_iterator_is_used_up_once():
    data = Batches(one_input(), iter([A]), 2)
    assert len(list(data)) == 1
    with pytest.raises(CalibrationError, match="used up before"):
        list(data)


def test_files(tmp_path):
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "a.npz", image=A, label=B)
    np.testing.assert_array_equal(load(tmp_path / "a.npy"), A)
    loaded = load(str(tmp_path / "a.npz"))
    assert list(loaded) == ["image", "label"]
    np.testing.assert_array_equal(loaded["label"], B)


def test_bad_files_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "whole.npz", A)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-30])
    for name in ("objects.npy", "text.npy", "empty.npz", "cut.npz"):
        with pytest.raises(CalibrationError, match=f"{name} cannot be read"):
            load(tmp_path / name)
    with pytest.raises(CalibrationError, match="does not exist"):
        load(tmp_path / "missing.npy")
    with pytest.raises(CalibrationError, match=r"\.npy or \.npz"):
        load(tmp_path / "a.csv")
