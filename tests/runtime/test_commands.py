"""`python -m runtime`: what each command prints, and one message with exit code 2 for everything wrong."""

import json
import subprocess
import sys

import numpy as np
import pytest

import schema
from runtime.__main__ import main
from schema import Graph, Model, Node, Tensor
from schema.ops import attributes as a


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    """m.xnn (left, right -> b = left + right, a = floor(left)), x.npy, y.npy in the working folder."""
    left, right = (Tensor(n, np.float32, (None, 4)) for n in ("left", "right"))
    total, floor = Tensor("s", np.float32), Tensor("f", np.float32)
    nodes = [
        Node("ADD", [left, right], [total], a.ArithmeticAttributes(), "sum_layer"),
        Node("FLOOR", [left], [floor], None, "floor_layer"),
    ]
    graph = Graph(nodes, [left, right], ["left", "right"], [total, floor], ["b", "a"])
    (tmp_path / "m.xnn").write_bytes(schema.write(Model([graph], producer="xnn test", metadata={"source": "demo"})))
    for name in ("x", "y"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((3, 4)).astype(np.float32))
    np.save(tmp_path / "wide.npy", np.zeros((3, 5), np.float32))
    np.save(tmp_path / "double.npy", np.zeros((3, 4)))
    np.save(tmp_path / "pickle.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", np.zeros(3))
    (tmp_path / "text.xnn").write_text("hello, I am no model at all")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_saves_outputs(files):
    assert main("run m.xnn --input left=x.npy --input right=y.npy --output a=a.npy --output out.npy".split()) == 0
    x, y = np.load("x.npy"), np.load("y.npy")
    np.testing.assert_array_equal(np.load("a.npy"), np.floor(x))
    np.testing.assert_array_equal(np.load("out.npy"), x + y)
    assert not list(files.glob(".*"))


def test_run_prints_outputs(files, capsys):
    assert main("run m.xnn --input x.npy --input y.npy --batch-size 2".split()) == 0
    printed = capsys.readouterr().out
    assert "b: float32 (3, 4)" in printed
    assert "a: float32 (3, 4)" in printed


def test_bench(files, capsys):
    assert main("bench m.xnn --runs 5 --threads 1 --json --input left=x.npy --input right=y.npy".split()) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["runs"] == 5
    assert result["shapes"] == {"left": [3, 4], "right": [3, 4]}
    assert 0 < result["min_ms"] <= result["median_ms"] <= result["p99_ms"]
    assert main("bench m.xnn --runs 5".split()) == 0
    assert "median" in capsys.readouterr().out


def test_profile_lists_nodes_and_kernels(files, capsys):
    assert main("profile m.xnn --runs 2 --json".split()) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [(n["layer"], n["kernel"]) for n in nodes] == [("sum_layer", "add_f32"), ("floor_layer", "reference")]
    assert main("profile m.xnn --runs 2".split()) == 0
    assert "sum_layer" in capsys.readouterr().out


def test_inspect(files, capsys):
    assert main("inspect m.xnn --json".split()) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["bytes"] == (files / "m.xnn").stat().st_size
    assert [n["layer"] for n in summary["nodes"]] == ["sum_layer", "floor_layer"]
    assert summary["besides"] == summary["bytes"]  # there are no weights
    assert main("inspect m.xnn".split()) == 0
    printed = capsys.readouterr().out
    assert "source: demo" in printed
    assert "input  left: float32 (?, 4)" in printed


def test_verify(files, capsys):
    assert main("verify m.xnn".split()) == 0
    assert "sound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("verify text.xnn", "no .xnn file"),
        ("verify nowhere.xnn", "there is no file nowhere.xnn"),
        ("verify .", "folder"),
        ("run m.xnn --input x.npy", "'right' is missing"),
        ("run m.xnn --input x.npy --input wide.npy", "input right: float32 (?, 4): the array has shape (3, 5)"),
        ("run m.xnn --input x.npy --input double.npy", "pass x.astype('float32')"),
        ("run m.xnn --input x.npy --input nowhere.npy", "there is no file nowhere.npy"),
        ("run m.xnn --input x.npy --input text.xnn", "text.xnn is not a .npy file"),
        ("run m.xnn --input x.npy --input pickle.npy", "pickle.npy is not a .npy file"),
        ("run m.xnn --input x.npy --input archive.npz", "archive.npz is an archive"),
        ("run m.xnn --input x.npy --input y.npy --input x.npy", "one input too many"),
        ("run m.xnn --input left=x.npy --input left=y.npy", "'left' is given twice"),
        ("run m.xnn --input x.npy --input y.npy --output c=c.npy", "no output is called 'c'"),
        ("run m.xnn --input x.npy --input y.npy --output nowhere/c.npy", "nowhere"),
        ("run m.xnn --input x.npy --input y.npy --batch-size 0", "--batch-size 0"),
    ],
)
def test_bad_input_is_one_message(files, capsys, command, message):
    assert main(command.split()) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("command", ["", "fly m.xnn", "run", "bench m.xnn --threads 0", "profile m.xnn --runs x"])
def test_usage_errors(files, capsys, command):
    with pytest.raises(SystemExit) as exit_:
        main(command.split())
    assert exit_.value.code == 2


def test_an_old_output_survives_a_failure(files):
    np.save("old.npy", np.arange(3))
    assert main("run m.xnn --input x.npy --input wide.npy --output old.npy".split()) == 2
    assert np.load("old.npy").tolist() == [0, 1, 2]


def test_as_a_process(files):
    """The real command line, from outside of the checkout."""
    done = subprocess.run([sys.executable, "-m", "runtime", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("xnn ")
