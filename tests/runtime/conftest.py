"""Small graphs shared among threads as large ones are."""

import pytest

from runtime import sharing


@pytest.fixture(autouse=True)
def _shared(monkeypatch):
    monkeypatch.setattr(sharing, "LEAST", 0)
