"""The command of the compression figures, with few epochs and into a folder of the test's own."""

import json
import sys

import pytest

from benchmarks import compression
from benchmarks.compression_table import bytes_at


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_a_row_of_the_quick_net(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compression, "QUICK", (*compression.QUICK[:2], 1))
    monkeypatch.setattr(compression, "RESULTS", tmp_path / "compression.json")
    monkeypatch.setattr(compression, "TABLE", tmp_path / "COMPRESSION.md")
    made = []
    measured = compression.run
    monkeypatch.setattr(compression, "run", lambda *arguments: made.append(measured(*arguments)) or made[-1])
    monkeypatch.setattr(sys, "argv", ["compression.py", "--quick"])
    compression.main()
    (row,) = made
    assert row.bytes <= 1.05 * row.size and row.base_bytes > 30 * row.bytes
    assert 0.97 < row.base_test < 1 and row.test > 0.5
    assert f"{row.bytes:,}" in capsys.readouterr().out and not list(tmp_path.iterdir())  # nothing is kept

    monkeypatch.setattr(compression, "run", lambda *arguments: row)
    monkeypatch.setattr(sys, "argv", ["compression.py", "--net", row.net, "--sizes", str(row.size)])
    compression.main()
    assert json.loads((tmp_path / "compression.json").read_text()) == [json.loads(json.dumps(vars(row)))]
    assert f"{row.bytes:,}" in (tmp_path / "COMPRESSION.md").read_text()


def test_bytes_at_an_accuracy_of_a_curve():
    curve = [(80.0, 1000.0), (90.0, 4000.0), (89.0, 9000.0), (91.0, 16000.0)]
    assert bytes_at(85.0, curve) == (pytest.approx(2000), False)
    assert bytes_at(90.0, curve) == (pytest.approx(4000), False)
    assert bytes_at(90.5, curve) == (pytest.approx(12000), False)  # from 9,000, which needs not do worse than 4,000
    assert bytes_at(79.0, curve) == (1000.0, True) and bytes_at(91.1, curve) is None
