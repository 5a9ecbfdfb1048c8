import os
import re

import nbclient
import nbformat
import pytest

from colab.notebook import main, notebook


def test_a_script_becomes_a_valid_notebook():
    text = notebook('# %% [markdown]\n# # Title\n#\n# Text\n\n# %%\nx = 1\n\n\ndef f():\n    return "# %"\n')

    made = nbformat.reads(text, as_version=4)
    nbformat.validate(made)
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        ("markdown", "# Title\n\nText"),
        ("code", 'x = 1\n\n\ndef f():\n    return "# %"'),
    ]


def test_check_reports_a_stale_notebook_and_leaves_it(tmp_path, capsys):
    script, made = tmp_path / "page.py", tmp_path / "page.ipynb"
    script.write_text("# %%\nx = 1\n")
    assert main([str(script)]) == 0
    assert main(["--check", str(script)]) == 0
    before = made.read_text()

    script.write_text("# %%\nx = 2\n")

    assert main(["--check", str(script)]) == 1
    assert "page.ipynb" in capsys.readouterr().err
    assert made.read_text() == before


@pytest.mark.parametrize("name", ["quickstart", "compress"])
def test_committed_notebook_matches_its_script(repository, name):
    assert main(["--check", str(repository / "colab" / f"{name}.py")]) == 0


@pytest.fixture
def run(repository, tmp_path, monkeypatch):
    """Runs a page, with little training, and returns what it printed and its outputs."""
    pytest.importorskip("tensorflow")
    pytest.importorskip("mlxtend")
    monkeypatch.setenv("XNN_QUICK", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repository), *filter(None, [os.environ.get("PYTHONPATH")])]))

    def execute(name):
        page = nbformat.read(repository / "colab" / f"{name}.ipynb", as_version=4)
        nbclient.NotebookClient(page, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
        outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
        return "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs), outputs

    return execute


@pytest.mark.slow
def test_quickstart_runs_from_top_to_bottom(run):
    printed, outputs = run("quickstart")
    accuracies = [float(number) for number in re.findall(r"(\d+\.\d+)%", printed)]
    keras, xnn_float, xnn_int8 = accuracies[-3:]
    assert keras > 85
    assert xnn_float == keras
    assert abs(xnn_int8 - keras) < 5  # pruned in three epochs; the full demo keeps it within one point
    ratios = [float(number) for number in re.findall(r"(\d+\.\d) x", printed)]
    assert ratios[-1] > 5
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.slow
def test_compress_runs_from_top_to_bottom(run, tmp_path):
    printed, outputs = run("compress")
    keras, *files = [float(number) for number in re.findall(r"(\d+\.\d+)%", printed)][-4:]
    assert keras > 80
    assert all(accuracy > keras - 5 for accuracy in files)
    int8, deep, xqueeze = [float(number) for number in re.findall(r"(\d+\.\d) x", printed)][-3:]
    assert int8 > 3.9 and deep >= 1 and xqueeze >= 1  # three epochs need not reach what was asked for
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert len(list(tmp_path.glob("out/compress/*/report.html"))) == 3
