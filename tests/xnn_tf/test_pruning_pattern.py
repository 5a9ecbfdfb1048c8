import numpy as np
import pytest

from schema import InputError
from xnn_tf.kernel_layout import KernelLayout
from xnn_tf.pruning_pattern import pruning_pattern, smallest

LAYOUTS = {
    "dense": KernelLayout.last_is_output((13, 10)),
    "conv": KernelLayout.last_is_output((3, 2, 6, 9)),
    "transposed": KernelLayout.transposed_conv((3, 2, 9, 6)),
    "depthwise": KernelLayout.depthwise((3, 3, 5, 2)),
    "einsum": KernelLayout.einsum((5, 2, 3), "abc,cde->abde"),
}


def test_smallest_takes_exactly_that_many_and_the_first_of_equals():
    values = np.array([[3.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert smallest(values, 3).tolist() == [[False, True, True], [False, True, False]]
    for count in range(7):
        assert smallest(values, count).sum() == count
        assert smallest(np.full((2, 3), 0.5), count).ravel().tolist() == [True] * count + [False] * (6 - count)


def test_smallest_leaves_nan():
    assert smallest(np.array([np.nan, 1.0, np.nan, 2.0]), 2).tolist() == [False, True, False, True]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_view_goes_back_to_its_weight(name, rng):
    layout = LAYOUTS[name]
    weight = rng.normal(size=layout.shape)
    view = layout.to_view(weight)
    assert view.shape == layout.view_shape
    np.testing.assert_array_equal(layout.from_view(view), weight)


def test_views_follow_the_axes_of_keras():
    conv = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)  # (height, width, inputs, outputs)
    assert KernelLayout.last_is_output(conv.shape).to_view(conv)[1 * 3 + 2, 4, 3] == conv[1, 2, 3, 4]
    assert KernelLayout.transposed_conv(conv.shape).to_view(conv)[1 * 3 + 2, 3, 4] == conv[1, 2, 3, 4]
    assert KernelLayout.depthwise(conv.shape).to_view(conv)[1 * 3 + 2, 3 * 5 + 4, 0] == conv[1, 2, 3, 4]
    einsum = np.arange(5 * 2 * 3).reshape(5, 2, 3)  # attention's query: inputs 5, heads 2, size 3
    assert KernelLayout.einsum(einsum.shape, "abc,cde->abde").to_view(einsum)[0, 1 * 3 + 2, 4] == einsum[4, 1, 2]
    output = np.arange(2 * 3 * 5).reshape(2, 3, 5)  # attention's output: heads 2, size 3, outputs 5
    assert KernelLayout.einsum(output.shape, "abcd,cde->abe").to_view(output)[0, 4, 1 * 3 + 2] == output[1, 2, 4]
    assert KernelLayout.einsum((7, 8), "...x,xy->...y").view_shape == (1, 8, 7)


@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_of_least_magnitude_go_first(name, rng):
    layout, pattern = LAYOUTS[name], pruning_pattern("element")
    weight = rng.normal(size=layout.shape)
    zeros = pattern.zeros(weight, layout, 17)
    assert zeros.sum() == 17
    assert np.abs(weight[zeros]).max() < np.abs(weight[~zeros]).min()


@pytest.mark.parametrize("block", [(4, 4), (1, 4), (4, 1), (2, 3), (64, 64)])
@pytest.mark.parametrize("name", LAYOUTS)
def test_blocks_are_zero_as_a_whole_and_counted_with_their_tails(name, block, rng):
    layout, pattern = LAYOUTS[name], pruning_pattern(block)
    positions, outputs, inputs = layout.view_shape
    rows, columns = -(-outputs // block[0]), -(-inputs // block[1])
    assert pattern.units(layout) == positions * rows * columns
    weight = rng.normal(size=layout.shape)
    count = pattern.units(layout) // 2
    view = layout.to_view(pattern.zeros(weight, layout, count))
    padded = np.pad(view, ((0, 0), (0, rows * block[0] - outputs), (0, columns * block[1] - inputs)), mode="edge")
    blocks = padded.reshape(positions, rows, block[0], columns, block[1])
    assert (blocks.all(axis=(2, 4)) == blocks.any(axis=(2, 4))).all()
    assert blocks.all(axis=(2, 4)).sum() == count
    weight[layout.from_view(view)] = 0
    assert pattern.zero_units(weight, layout) == count


def test_the_block_of_least_energy_goes_first():
    weight = np.array([[3.0, 0.0, 2.0, 2.0]]).T  # four inputs, one output; blocks of two inputs: energies 9 and 8
    zeros = pruning_pattern((1, 2)).zeros(weight, KernelLayout.last_is_output(weight.shape), 1)
    assert zeros.ravel().tolist() == [False, False, True, True]


@pytest.mark.parametrize("name", ["dense", "conv", "transposed", "einsum"])
def test_two_of_four(name, rng):
    layout, pattern = LAYOUTS[name], pruning_pattern("2:4")
    weight = rng.normal(size=layout.shape)
    view = layout.to_view(weight)
    zeros = layout.to_view(pattern.zeros(weight, layout, pattern.units(layout)))
    for start in range(0, view.shape[2], 4):
        group, magnitudes = zeros[:, :, start : start + 4], np.abs(view[:, :, start : start + 4])
        left = np.sort(np.where(group, 0, magnitudes), axis=-1)[..., ::-1]
        want = np.sort(magnitudes, axis=-1)[..., ::-1].copy()
        want[..., 2:] = 0  # the two largest stay, in a tail too
        np.testing.assert_array_equal(left, want)


def test_two_of_four_prunes_half_of_full_groups(rng):
    layout, pattern = KernelLayout.last_is_output((8, 6)), pruning_pattern("2:4")
    weight = rng.normal(size=layout.shape)
    assert pattern.zeros(weight, layout, pattern.units(layout)).sum() == weight.size // 2
    halfway = pattern.zeros(weight, layout, pattern.units(layout) // 2)
    assert halfway.sum() == weight.size // 4
    weight[halfway] = 0
    assert pattern.zero_units(weight, layout) == pattern.units(layout) // 2


@pytest.mark.parametrize("pattern", ["block", (4,), (4, 4, 4), (0, 4), (4, -1), (2.0, 4), (True, 4), 4, None, "4:8"])
def test_unknown_patterns_are_refused(pattern):
    with pytest.raises(InputError, match="unknown pattern"):
        pruning_pattern(pattern)
