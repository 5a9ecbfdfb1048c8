"""The folder of compiled kernels does not grow without end."""

import os
import threading
import time

import pytest

from runtime.native import object_cache
from runtime.native.object_cache import KernelObject, ObjectCache

ITEM = KernelObject(("a",), bytes(1000))
SIZE = len(object_cache.pack_object(ITEM))
DAY = 24 * 3600


@pytest.fixture
def room_for_three(monkeypatch):
    monkeypatch.setattr(object_cache, "LARGEST", 3 * SIZE)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def make_older(folder, key, days):
    """As if the file had been used so many days ago."""
    then = time.time() - days * DAY
    os.utime(folder / f"{key}.xnnobj", (then, then))


def filled(folder, ages):
    for key, days in ages.items():
        ObjectCache(folder).store(key, ITEM)  # of a process each: none keeps what others have used
        make_older(folder, key, days)


def test_what_was_used_longest_ago_goes_first(tmp_path, room_for_three):
    filled(tmp_path, {"b": 5, "a": 9, "c": 2})
    ObjectCache(tmp_path).store("d", ITEM)
    assert names(tmp_path) == ["b.xnnobj", "c.xnnobj", "d.xnnobj"]
    assert ObjectCache(tmp_path).load("b") == ITEM  # marks it as used
    ObjectCache(tmp_path).store("e", ITEM)
    assert names(tmp_path) == ["b.xnnobj", "d.xnnobj", "e.xnnobj"]
    assert ObjectCache(tmp_path).load("c") is None


def test_what_a_process_uses_stays(tmp_path, room_for_three):
    filled(tmp_path, {"a": 9, "b": 5, "c": 2})
    cache = ObjectCache(tmp_path)
    cache.load("a")
    make_older(tmp_path, "a", 30)
    for key in "defgh":
        cache.store(key, ITEM)
        make_older(tmp_path, key, 20)
    assert names(tmp_path) == [f"{key}.xnnobj" for key in "adefgh"]


def test_only_files_of_the_cache_are_removed(tmp_path, room_for_three):
    (tmp_path / "notes.txt").write_bytes(bytes(10 * SIZE))
    (tmp_path / ".other.tmp").touch()
    (tmp_path / "folder.xnnobj").mkdir()
    for name, age in ((".xnn-old.tmp", 2 * DAY), (".xnn-new.tmp", 1), (".other.tmp", 2 * DAY)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    filled(tmp_path, {"a": 9, "b": 5, "c": 2, "d": 1})
    expected = [".other.tmp", ".xnn-new.tmp", "b.xnnobj", "c.xnnobj", "d.xnnobj", "folder.xnnobj", "notes.txt"]
    assert names(tmp_path) == expected


@pytest.mark.parametrize("function", ["unlink", "scandir", "utime"])
def test_what_cannot_be_removed_is_no_error(tmp_path, room_for_three, monkeypatch, caplog, function):
    filled(tmp_path, {"a": 9, "b": 5, "c": 2})

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, function, refuse)
    cache = ObjectCache(tmp_path)
    assert cache.load("b") == ITEM
    cache.store("d", ITEM)
    assert cache.load("d") == ITEM
    assert not caplog.records


def test_processes_that_make_room_at_the_same_time(tmp_path, room_for_three):
    """Threads with caches of their own: a file is there, whole, or it is not."""
    wrong = []

    def work(seed):
        try:
            for i in range(60):
                cache, key = ObjectCache(tmp_path), f"{(seed + i) % 12}"
                cache.store(key, ITEM)
                for other in range(12):
                    if cache.load(str(other)) not in (None, ITEM):
                        wrong.append(other)
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    ObjectCache(tmp_path).store("last", ITEM)
    assert len(names(tmp_path)) == 3
