import numpy as np
import pytest

from converter.quantize.measure import Noise
from converter.quantize.selection import HELPS, TRIALS, choose


def measured(gains, log=None, samples=50):
    """20 dB, and what the changes gain, the same for each sample."""

    def measure(changes):
        if log is not None:
            log.append(list(changes))
        return Noise(np.full(samples, 10 ** (-(20 + sum(gains[c] for c in changes)) / 10) / samples))

    return measure


def numbers(chosen):
    return [pytest.approx(noise.snr) for noise in (chosen.before, chosen.after, chosen.together)]


def test_all_are_kept_at_once_where_they_help():
    log = []
    chosen = choose("abc", measured({"a": 3, "b": -1, "c": 1}, log))
    assert (chosen.kept, [20, 23, 23]) == (["a", "b", "c"], numbers(chosen))
    assert log == [[], ["a", "b", "c"]]


def test_parts_that_hurt_are_left_out():
    chosen = choose("abcdefgh", measured(dict.fromkeys("abdefgh", 1) | {"c": -20}))
    assert (chosen.kept, [20, 27, 7]) == (list("abdefgh"), numbers(chosen))
    chosen = choose("abcd", measured({"a": -9, "b": 2, "c": 1, "d": 1}))
    assert (chosen.kept, [20, 24, 15]) == (["b", "c", "d"], numbers(chosen))


def test_nothing_is_kept_where_nothing_helps():
    chosen = choose("ab", measured({"a": 0.9 * HELPS, "b": -1}))
    assert (chosen.kept, chosen.after) == ([], chosen.before)
    assert choose([], measured({})).kept == []


def test_measurements_are_limited():
    log = []
    choose(range(1000), measured(dict.fromkeys(range(1000), -1), log))
    assert len(log) == TRIALS + 1


def test_what_a_few_samples_decide_is_not_believed():
    before, lucky = Noise(np.array([30.0] + [1.0] * 40)), Noise(np.array([1.0] + [1.2] * 40))
    steady = Noise(before.samples / 10**0.15)
    gain, error = lucky.gain_over(before)
    assert (gain, steady.gain_over(before)) == (pytest.approx(1.5, abs=0.1), (pytest.approx(1.5), pytest.approx(0)))
    assert error > gain
    assert choose("a", lambda changes: steady if changes else before).kept == ["a"]
    assert choose("a", lambda changes: lucky if changes else before).kept == []
