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


@pytest.mark.parametrize("name", ["quickstart"])
def test_committed_notebook_matches_its_script(repository, name):
    assert main(["--check", str(repository / "colab" / f"{name}.py")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart"])
def test_notebook_runs_from_top_to_bottom(repository, tmp_path, monkeypatch, name):
    pytest.importorskip("tensorflow")
    pytest.importorskip("mlxtend")
    monkeypatch.setenv("XNN_QUICK", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repository), *filter(None, [os.environ.get("PYTHONPATH")])]))
    page = nbformat.read(repository / "colab" / f"{name}.ipynb", as_version=4)

    nbclient.NotebookClient(page, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()

    outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)
    accuracies = [float(number) for number in re.findall(r"(\d+\.\d+)%", printed)]
    keras, xnn_float, xnn_int8 = accuracies[-3:]
    assert keras > 85
    assert xnn_float == keras
    assert abs(xnn_int8 - keras) < 5  # pruned in three epochs; the full demo keeps it within one point
    ratios = [float(number) for number in re.findall(r"(\d+\.\d) x", printed)]
    assert ratios[-1] > 5
    assert any("image/png" in output.get("data", {}) for output in outputs)
