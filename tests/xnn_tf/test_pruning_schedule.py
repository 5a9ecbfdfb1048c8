import sys
from types import SimpleNamespace

import pytest

from schema import InputError
from xnn_tf.pruning_schedule import pruning_schedule
from xnn_tf.training_clock import TrainingClock


def positions(schedule, epochs, steps, every=1):
    """The position before each step, as `fit` would ask for it."""
    clock = TrainingClock(epochs, steps)
    seen = []
    for epoch in range(epochs):
        clock.begin_epoch(epoch, 0)
        for batch in range(0, steps, every):
            clock.begin_batch(batch)
            seen.append(schedule.position(clock))
    return seen


def test_cubic_in_steps():
    seen = positions(pruning_schedule("cubic", 2, 6, 1, 0.5), 1, 8)
    assert seen == [None, None, 0.0, *(1 - (1 - t) ** 3 for t in (0.25, 0.5, 0.75)), 1.0, 1.0]


def test_cubic_in_shares_equals_cubic_in_steps():
    assert positions(pruning_schedule("cubic", 0.2, 0.6, 1, 0.5), 2, 10) == positions(
        pruning_schedule("cubic", 4, 12, 1, 0.5), 2, 10
    )


def test_constant_comes_at_its_begin():
    assert positions(pruning_schedule("constant", 0.5, 0.75, None, 0.5), 1, 4) == [None, None, 1.0, 1.0]


def test_positions_change_at_the_frequency_and_at_the_end():
    seen = positions(pruning_schedule("cubic", 1, 9, 3, 0.5), 1, 12)
    changes = [step for step in range(1, 12) if seen[step] != seen[step - 1]]
    assert changes == [1, 4, 7, 9]
    # Several steps per execution skip steps, not changes: each position is that of the last change.
    assert positions(pruning_schedule("cubic", 1, 9, 3, 0.5), 1, 12, every=5) == [seen[0], seen[5], seen[10]]


def test_without_a_frequency_there_are_about_16_changes_or_one_in_100_steps():
    assert len(set(positions(pruning_schedule("cubic", 0, 64, None, 0.5), 1, 65))) == 17
    assert len(set(positions(pruning_schedule("cubic", 0, 10_000, None, 0.5), 1, 10_001, every=50))) == 101


def test_unknown_length_counts_whole_epochs_until_the_first_is_over():
    schedule = pruning_schedule("cubic", 0.25, 0.75, 1, 0.5)
    clock = TrainingClock(4, None)
    clock.begin_epoch(0, 0)
    clock.advance(1)
    assert schedule.position(clock) is None
    clock.advance(9)
    clock.end_epoch()
    assert (clock.steps_per_epoch, clock.total) == (10, 40)
    assert schedule.position(clock) == 0.0
    clock.begin_epoch(1, 0)
    clock.begin_batch(5)
    assert schedule.position(clock) == 1 - (1 - 0.25) ** 3
    clock.begin_epoch(3, 0)
    assert schedule.position(clock) == 1.0


def test_unknown_length_and_a_resumed_run():
    clock = TrainingClock(4, None)
    clock.begin_epoch(3, 30)
    assert clock.step == 30
    assert pruning_schedule("cubic", 0.25, 0.75, 1, 0.5).position(clock) == 1.0
    assert pruning_schedule("cubic", 10, 50, 1, 0.5).position(clock) == 1 - 0.5**3


def test_a_single_epoch_of_unknown_length_prunes_at_once_and_says_so():
    schedule = pruning_schedule("cubic", 0.25, 0.75, 1, 0.5)
    clock = TrainingClock(1, None)
    clock.begin_epoch(0, 0)
    with pytest.warns(UserWarning, match="steps_per_epoch"):
        assert schedule.position(clock) == 1.0


def test_steps_need_no_length():
    clock = TrainingClock(None, None, step=5)
    assert pruning_schedule("cubic", 0, 10, 5, 0.5).position(clock) == 1 - 0.5**3
    assert pruning_schedule("constant", 0.0, 0.75, None, 0.5).position(clock) == 1.0
    with pytest.raises(InputError, match="total_steps"):
        pruning_schedule("cubic", 0, 0.75, 5, 0.5).position(clock)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("linear", 0, 1.0, None), "linear"),
        ((None, 0, 1.0, None), "schedule"),
        ((dict, 0, 1.0, None), "schedule"),
        (("cubic", -1, 1.0, None), "begin=-1"),
        (("cubic", True, 1.0, None), "begin=True"),
        (("cubic", 0, 1.5, None), "end=1.5"),
        (("cubic", 0, "late", None), "end='late'"),
        (("cubic", 20, 10, None), "end=10"),
        (("cubic", 0.5, 0.25, None), "end=0.25"),
        (("cubic", 0, 1.0, 0), "frequency=0"),
        (("cubic", 0, 1.0, 2.5), "frequency=2.5"),
    ],
)
def test_useless_arguments_are_refused(arguments, names):
    with pytest.raises(InputError, match=names):
        pruning_schedule(*arguments, 0.5)


class TestTfmot:
    @pytest.fixture(autouse=True)
    def sparsity(self, monkeypatch):
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")  # tfmot sets it; monkeypatch puts it back
        pytest.importorskip("tensorflow_model_optimization")
        return sys.modules["tensorflow_model_optimization"].sparsity.keras

    def test_polynomial_decay_keeps_its_numbers(self, sparsity):
        theirs = sparsity.PolynomialDecay(0.2, 0.8, begin_step=3, end_step=13, power=2, frequency=5)
        ours = pruning_schedule(theirs, 0.0, 0.75, None, 0.5)
        assert (ours.initial_sparsity, ours.target_sparsity) == (0.2, 0.8)
        seen = positions(ours, 1, 20)
        assert seen[:3] == [None] * 3
        for step in (3, 8, 13):
            assert 0.2 + 0.6 * seen[step] == pytest.approx(float(theirs(step)[1]), abs=1e-6)
        assert seen[7] == seen[3]
        assert seen[13:] == [1.0] * 7

    def test_polynomial_decay_ends_at_its_end_even_off_frequency(self, sparsity):
        seen = positions(
            pruning_schedule(sparsity.PolynomialDecay(0.0, 0.8, 0, 10, frequency=4), 0, 1, None, 0.5), 1, 12
        )
        assert seen[9] < 1
        assert seen[10] == 1

    def test_constant_sparsity(self, sparsity):
        ours = pruning_schedule(sparsity.ConstantSparsity(0.7, begin_step=2, frequency=3), 0.0, 0.75, None, 0.5)
        assert ours.target_sparsity == 0.7
        assert positions(ours, 1, 5) == [None, None, 1.0, 1.0, 1.0]

    def test_a_schedule_of_ones_own(self, sparsity):
        class Halves(sparsity.PruningSchedule):
            def __call__(self, step):
                return True, 0.3 if step < 2 else 0.6

            def get_config(self):
                return {}

        assert positions(pruning_schedule(Halves(), 0.0, 0.75, None, 0.6), 1, 3) == [0.5, 0.5, 1.0]

    def test_a_callable_that_is_no_schedule(self):
        schedule = pruning_schedule(lambda step: 0.5, 0.0, 0.75, None, 0.5)
        with pytest.raises(InputError, match="should_prune"):
            schedule.position(SimpleNamespace(step=0))
