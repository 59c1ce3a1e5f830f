"""What the tests of data sets share."""

import pytest


@pytest.fixture
def isolated(tmp_path, monkeypatch):
    """No folder of the user's, an empty cache, and no proxy between the tests and their own server."""
    monkeypatch.delenv("EXCLUSIVITY_DATA", raising=False)
    monkeypatch.setenv("EXCLUSIVITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path
