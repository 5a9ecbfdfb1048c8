"""What is decided without any training: goals, levels, epochs, sparsities."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from schema.errors import InputError
from xnn_tf.compression import allocation, budget
from xnn_tf.compression.coded_size import coded_bytes_of, quantized
from xnn_tf.compression.goal import Goal, check_goal
from xnn_tf.compression.levels import Level, next_level
from xnn_tf.compression.recipe import Recipe, find_recipe
from xnn_tf.compression.stages.prune import Prune
from xnn_tf.compression.state import Step
from xnn_tf.lamp_ranking import lamp_scores


@dataclass
class File:
    bytes: int
    score: float


FILES = [File(1000, 0.90), File(400, 0.896), File(200, 0.88), File(300, 0.895)]
RECIPE = Recipe("test", (Prune(),), (), first_ratio=10, stride=1.5, levels=6)


def test_the_smallest_file_that_loses_little_enough():
    goal = Goal(4000, 0.90, max_drop=0.005, target_bytes=None)
    assert goal.best(FILES) == 3
    assert [goal.met(file) for file in FILES] == [True, True, False, True]
    assert Goal(4000, 0.99, 0.005, None).best(FILES) == 0  # none is good enough: the best of them


def test_the_most_accurate_file_that_is_small_enough():
    assert Goal(4000, 0.90, None, target_bytes=350).best(FILES) == 3
    assert Goal(4000, 0.90, None, target_bytes=100).best(FILES) == 2  # none is small enough: the smallest


@pytest.mark.parametrize(
    "arguments", [(0.01, 100, None), (None, 100, 2.0), (1.5, None, None), (None, 0, None), (None, None, 1.0)]
)
def test_goals_that_make_no_sense(arguments):
    with pytest.raises(InputError):
        check_goal(*arguments)


def test_levels_go_on_while_the_goal_is_met_and_then_halve_the_interval():
    goal = Goal(10_000, 0.9, 0.005, None)
    done = []
    assert next_level(goal, RECIPE, done) == (1000, None)
    done.append(Level(1000, 990, True))
    assert next_level(goal, RECIPE, done) == (pytest.approx(1000 / 1.5), 0)
    done.append(Level(1000 / 1.5, 650, False))
    assert next_level(goal, RECIPE, done) == (pytest.approx(1000 / math.sqrt(1.5)), 0)
    done.append(Level(1000 / math.sqrt(1.5), 800, True))
    target, start = next_level(goal, RECIPE, done)
    assert start == 2 and 1000 / 1.5 < target < 1000 / math.sqrt(1.5)
    assert next_level(goal, RECIPE, [*done, *done]) is None  # six levels are all there may be


def test_a_first_level_that_loses_too_much_is_tried_again_from_the_base():
    assert next_level(Goal(10_000, 0.9, 0.005, None), RECIPE, [Level(1000, 990, False)]) == (2250, None)


def test_a_size_is_aimed_at_with_what_the_last_file_took():
    goal = Goal(10_000, 0.9, None, target_bytes=500)
    assert next_level(goal, RECIPE, []) == (495, None)
    assert next_level(goal, RECIPE, [Level(490, 600, False)]) == (pytest.approx(490 * 500 / 600 * 0.99), 0)
    assert next_level(goal, RECIPE, [Level(490, 495, True)]) is None
    target, start = next_level(goal, RECIPE, [Level(490, 300, True)])  # needlessly small
    assert start is None and target > 490


def test_epochs_are_cut_to_the_time_that_is_left():
    steps = [
        Step("base", 4.0, {}, {}),
        Step("level-1/prune", 52.0, {"epochs": 10, "seconds": 50.0}, {}),
        Step("level-1/int8", 8.0, {}, {}),
    ]
    assert budget.seconds_per_epoch(steps) == 5.0
    assert budget.epochs_of_level(10, 5, steps, 5.0, None) == 10
    assert budget.epochs_of_level(10, 5, steps, 5.0, 1e6) == 10
    assert budget.epochs_of_level(10, 3, steps, 5.0, 64 + 3 * 30) == 4  # 30 s a level, 10 of them for other things
    assert budget.epochs_of_level(10, 3, steps, 5.0, 70) == 0


def test_epochs_go_to_stages_by_their_shares():
    assert budget.share_out(10, [Prune(share=0.6), Prune(share=0.4)]) == [6, 4]
    assert budget.share_out(10, [Prune(share=0), Prune(share=0.4)]) == [0, 10]
    assert budget.share_out(1, [Prune(share=0.6), Prune(share=0.4)]) == [1, 1]
    assert sum(budget.share_out(11, [Prune(share=0.5), Prune(share=0.3), Prune(share=0.2)])) == 11


@pytest.fixture
def weights(rng):
    return {
        "wide": rng.normal(size=(100, 60)).astype(np.float32),
        "small": rng.normal(size=(20, 10)).astype(np.float32),
        "heavy": (rng.standard_t(2, size=(60, 50))).astype(np.float32),
    }


@pytest.mark.parametrize("rule", ["uniform", "std", "lamp"])
def test_an_allotment_takes_the_bytes_that_were_asked_for(weights, rule):
    levels = dict.fromkeys(weights, 16)
    target = 2500
    sparsities = allocation.allot(weights, rule, target, levels)
    sizes = [coded_bytes_of(quantized(allocation.pruned(w, sparsities[n]), 16)) for n, w in weights.items()]
    assert 0.93 * target <= sum(sizes) <= target


def test_lamp_scores_by_definition(rng):
    weight = rng.normal(size=30)
    squares = np.sort(weight**2)
    wanted = [squares[i] / squares[i:].sum() for i in range(30)]
    np.testing.assert_allclose(lamp_scores(weight), wanted, rtol=1e-12)
    assert lamp_scores(weight)[-1] == 1.0


def test_lamp_spares_small_layers(weights):
    sparsities = allocation.lamp(weights, 0.8)
    assert sparsities["small"] < sparsities["wide"]
    zeros = sum(sparsities[name] * weight.size for name, weight in weights.items())
    assert zeros == pytest.approx(0.8 * allocation.MOST * sum(w.size for w in weights.values()), abs=2)


def test_bytes_are_spent_where_damage_is_worst():
    """Equal layers, of which one hardly matters: that one is pruned."""
    weight = np.random.default_rng(0).normal(size=(80, 80)).astype(np.float32)
    weights, levels = {"a": weight, "b": weight.copy()}, {"a": 16, "b": 16}
    shares = (0.0, 0.5, 0.8, 0.9, 0.95)
    curves = {"a": [(s, 0.01 * s**4) for s in shares], "b": [(s, 10 * s**4) for s in shares]}
    half = sum(allocation.coded(w, 0.5, 16) for w in weights.values())
    sparsities = allocation.allot(weights, "sensitivity", half, levels, curves)
    assert sparsities["a"] > sparsities["b"]


@pytest.mark.parametrize("share", [0.3, 0.55, 0.75])
def test_few_points_of_a_curve_do_not_make_sizes_coarse(weights, share):
    levels = dict.fromkeys(weights, 16)
    curves = {name: [(s, s**3) for s in (0.0, 0.5, 0.9, 0.99)] for name in weights}
    target = share * sum(allocation.coded(w, 0.0, 16) for w in weights.values())
    sparsities = allocation.allot(weights, "sensitivity", target, levels, curves)
    size = sum(allocation.coded(w, sparsities[name], 16) for name, w in weights.items())
    assert 0.98 * target <= size <= target


def test_coded_bytes_are_those_of_the_encoder_and_remembered(rng, monkeypatch):
    from schema.coding import constant as constant_coding

    weight = np.where(rng.random((64, 64)) < 0.9, 0, rng.integers(1, 16, (64, 64))).astype(np.float32)
    size = coded_bytes_of(weight)
    assert size < 64 * 64 * 0.2
    monkeypatch.setattr(constant_coding, "encode", None)
    assert coded_bytes_of(weight.copy()) == size


def test_quantizing_keeps_zeros_and_only_those(rng):
    weight = np.where(rng.random((50, 50)) < 0.5, 0, rng.normal(size=(50, 50))).astype(np.float32)
    snapped = quantized(weight, 15)
    assert np.array_equal(snapped == 0, weight == 0)
    assert len(np.unique(snapped)) <= 15


def test_an_unknown_recipe_is_named():
    with pytest.raises(InputError, match="xqueeze"):
        find_recipe("zip")
