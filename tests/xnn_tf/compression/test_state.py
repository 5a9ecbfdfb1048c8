import json

import numpy as np
import pytest

from schema.errors import FormatError, InputError
from xnn_tf.compression.state import State, fingerprint


def test_steps_are_found_again(tmp_path):
    state = State(tmp_path / "run", "same")
    weights = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(3, np.float32)]
    state.add("one", 1.5, {"score": 0.5}, weights, config="{}")
    state.add("two", 2.0, {"curve": (1, 2)}, xnn=b"XNN1")

    again = State(tmp_path / "run", "same")
    assert [step.name for step in again.steps] == ["one", "two"]
    assert again.seconds == 3.5
    found, config = again.weights(again.find("one"))
    assert config == "{}"
    for array, wanted in zip(found, weights, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert again.xnn(again.find("two")) == b"XNN1"
    assert again.find("two").values == {"curve": [1, 2]} == state.find("two").values
    assert again.find("three") is None


def test_another_runs_folder_is_refused(tmp_path):
    State(tmp_path, "mine").add("one", 1.0, {})
    with pytest.raises(InputError, match="another compression"):
        State(tmp_path, "yours")


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1}', '{"format": 1, "fingerprint": "mine", "steps": [{}]}'])
def test_what_is_no_state_is_refused(tmp_path, content):
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(FormatError, match="no state"):
        State(tmp_path, "mine")


def test_a_step_that_was_not_listed_is_not_there(tmp_path):
    """As after a kill between the step's files and the list."""
    state = State(tmp_path, "mine")
    state.add("one", 1.0, {}, xnn=b"one")
    kept = (tmp_path / "state.json").read_bytes()
    state.add("two", 1.0, {}, xnn=b"two")
    (tmp_path / "state.json").write_bytes(kept)
    again = State(tmp_path, "mine")
    assert [step.name for step in again.steps] == ["one"]
    again.add("two", 1.0, {}, xnn=b"other")
    assert again.xnn(again.find("two")) == b"other"
    assert len(json.loads((tmp_path / "state.json").read_text())["steps"]) == 2


def test_a_fingerprint_tells_arrays_and_settings_apart():
    a = np.zeros(4, np.float32)
    assert fingerprint([a, {"x": 1}]) == fingerprint([a.copy(), {"x": 1}])
    assert len({fingerprint([a]), fingerprint([a.reshape(2, 2)]), fingerprint([a + 1]), fingerprint([a, 1])}) == 4
