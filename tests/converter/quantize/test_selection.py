from converter.quantize.selection import HELPS, TRIALS, choose


def measured(gains, log=None):
    def measure(changes):
        if log is not None:
            log.append(list(changes))
        return 20 + sum(gains[c] for c in changes)

    return measure


def test_all_are_kept_at_once_where_they_help():
    log = []
    chosen = choose("abc", measured({"a": 3, "b": -1, "c": 1}, log))
    assert (chosen.kept, chosen.before, chosen.after, chosen.together) == (["a", "b", "c"], 20, 23, 23)
    assert log == [[], ["a", "b", "c"]]
    assert chosen.gain == 3


def test_parts_that_hurt_are_left_out():
    chosen = choose("abcdefgh", measured(dict.fromkeys("abdefgh", 1) | {"c": -20}))
    assert (chosen.kept, chosen.after) == (list("abdefgh"), 27)
    chosen = choose("abcd", measured({"a": -9, "b": 2, "c": 1, "d": 1}))
    assert (chosen.kept, chosen.before, chosen.after, chosen.together) == (["b", "c", "d"], 20, 24, 15)


def test_nothing_is_kept_where_nothing_helps():
    chosen = choose("ab", measured({"a": HELPS / 2, "b": -1}))
    assert (chosen.kept, chosen.gain, chosen.after) == ([], 0, 20)
    assert choose([], measured({})).kept == []


def test_measurements_are_limited():
    log = []
    choose(range(1000), measured(dict.fromkeys(range(1000), -1), log))
    assert len(log) == TRIALS + 1
