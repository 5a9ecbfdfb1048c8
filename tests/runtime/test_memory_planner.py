import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.memory_planner import ALIGNMENT, Layout, Request, peak_of_live_sizes, plan_memory


def requests(hints: bool):
    def build(draw):
        items = draw(
            st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 8)), min_size=1, max_size=40)
        )
        made = []
        for size, first, length in items:
            in_place = ()
            if hints:
                in_place = tuple(draw(st.lists(st.integers(0, len(items) - 1), max_size=2)))
            made.append(Request(size, first, first + length, in_place))
        return made

    return st.composite(build)()


def pairs_that_live_together(items):
    for i, a in enumerate(items):
        for j, b in enumerate(items[:i]):
            if a.first <= b.last and b.first <= a.last:
                yield i, j


def overlap(layout: Layout, items, i, j):
    a, b = layout.offsets[i], layout.offsets[j]
    return a < b + items[j].size and b < a + items[i].size and items[i].size > 0 and items[j].size > 0


@given(requests(hints=False))
def test_buffers_that_live_together_never_overlap(items):
    layout = plan_memory(items)
    assert all(offset % ALIGNMENT == 0 and offset >= 0 for offset in layout.offsets)
    assert all(o + r.size <= layout.total for o, r in zip(layout.offsets, items, strict=True))
    assert not any(overlap(layout, items, i, j) for i, j in pairs_that_live_together(items))
    assert peak_of_live_sizes(items) <= layout.total


@given(requests(hints=True))
def test_only_buffers_that_may_be_taken_over_overlap(items):
    layout = plan_memory(items)
    takers: dict[int, list[int]] = {}
    for i, j in pairs_that_live_together(items):
        if not overlap(layout, items, i, j):
            continue
        donor, taker = (j, i) if j in items[i].in_place and items[i].first == items[j].last else (i, j)
        assert donor in items[taker].in_place
        assert items[donor].last == items[taker].first
        assert layout.offsets[donor] == layout.offsets[taker]
        takers.setdefault(donor, []).append(taker)
    assert all(len(who) == 1 for who in takers.values())


def test_in_place_chains_use_one_buffer():
    chain = [Request(1000, i, i + 1, (i - 1,) if i else ()) for i in range(10)]
    assert plan_memory(chain).total == 1024
    assert plan_memory([Request(r.size, r.first, r.last) for r in chain]).total == 2048


@pytest.mark.parametrize("bad", [Request(-1, 0, 1), Request(1, 2, 1), Request(1, 0, 1, (1,))])
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match="request 0"):
        plan_memory([bad])


def mobilenet_v2():
    """Sizes of the activations of MobileNetV2 (224, float32): expand, depthwise, project, with residuals."""
    lives, step, live = [], 0, None

    def add(elements, residual=None):
        nonlocal step, live
        step += 1
        lives.append([4 * elements, step, step + 1])
        for source in (live, residual):
            if source is not None:
                lives[source][2] = max(lives[source][2], step)
        live = len(lives) - 1
        return live

    add(224 * 224 * 3)
    add(112 * 112 * 32)
    size, channels = 112, 32
    for expand, out, repeats, stride in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for i in range(repeats):
            block_input = live
            wide = channels * expand
            if expand != 1:
                add(size * size * wide)
            if i == 0:
                size //= stride
            add(size * size * wide)
            add(size * size * out)
            if i and channels == out:
                add(size * size * out, residual=block_input)
            channels = out
    add(size * size * 1280)
    add(1280)
    return [Request(*life) for life in lives]


def resnet_50():
    lives, step = [[4 * 224 * 224 * 3, 0, 1], [4 * 112 * 112 * 64, 1, 2], [4 * 56 * 56 * 64, 2, 3]], 3
    size, live = 56, 2
    for stage, (wide, repeats) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for i in range(repeats):
            shortcut = live
            out = size // 2 if stage and i == 0 else size
            if i == 0:
                lives.append([4 * out * out * wide * 4, step, step])
                lives[live][2] = step
                shortcut = len(lives) - 1
                step += 1
            for elements in (out * out * wide, out * out * wide, out * out * wide * 4):
                lives.append([4 * elements, step, step + 1])
                lives[live][2] = max(lives[live][2], step)
                live = len(lives) - 1
                step += 1
            lives.append([4 * out * out * wide * 4, step, step + 1])
            lives[shortcut][2] = lives[live][2] = step
            live, size, step = len(lives) - 1, out, step + 1
    return [Request(*life) for life in lives]


def densenet_121():
    lives, step, size, channels = [[4 * 56 * 56 * 64, 0, 1]], 1, 56, 64
    for layers in (6, 12, 24, 16):
        for _ in range(layers):
            joined = len(lives) - 1
            for width in (channels, 128, 32, channels + 32):  # BN+ReLU, 1x1, 3x3, concatenation with what went in
                lives[-1][2] = step
                lives.append([4 * size * size * width, step, step + 1])
                step += 1
            lives[joined][2] = step - 1
            channels += 32
        size, channels = size // 2, channels // 2
        lives[-1][2] = step
        lives.append([4 * size * size * channels, step, step + 1])
        step += 1
    return [Request(*life) for life in lives]


@pytest.mark.parametrize("net", [mobilenet_v2, resnet_50, densenet_121])
def test_the_arena_is_hardly_larger_than_what_lives_at_once(net):
    items = net()
    layout = plan_memory(items)
    assert not any(overlap(layout, items, i, j) for i, j in pairs_that_live_together(items))
    assert layout.total <= 1.05 * peak_of_live_sizes(items)


def test_random_inception_like_graphs_stay_close():
    rng = np.random.default_rng(7)
    for _ in range(20):
        items, step = [], 0
        for _ in range(8):
            branches = rng.integers(2, 5)
            start = step
            step += int(branches) * 2 + 1
            for b in range(branches):
                items.append(Request(int(rng.integers(1, 40)) * 4096, start + 2 * b + 1, start + 2 * b + 2))
                items.append(Request(int(rng.integers(1, 40)) * 4096, start + 2 * b + 2, step))
            items.append(Request(int(rng.integers(40, 80)) * 4096, step, step + int(branches)))
        assert plan_memory(items).total <= 1.1 * peak_of_live_sizes(items)
