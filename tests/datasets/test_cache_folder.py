"""Where downloads go, on every system."""

import sys
from pathlib import Path

import pytest

from exclusivity.datasets import cache_folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in ("EXCLUSIVITY_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def test_variable(monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_CACHE", "/some/where")
    assert cache_folder() == Path("/some/where")


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", ".cache/exclusivity"),
        ("darwin", "Library/Caches/exclusivity"),
        ("win32", "AppData/Local/exclusivity/cache"),
    ],
)
def test_defaults(home, monkeypatch, platform, place):
    monkeypatch.setenv("EXCLUSIVITY_CACHE", "")
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == home / place
    assert not cache_folder().exists()


@pytest.mark.parametrize(
    ("platform", "variable", "place"),
    [("linux", "XDG_CACHE_HOME", "exclusivity"), ("win32", "LOCALAPPDATA", "exclusivity/cache")],
)
def test_variables_of_the_system(home, monkeypatch, platform, variable, place):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(home / "other"))
    assert cache_folder() == home / "other" / place


def test_relative_xdg_is_ignored(home, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == home / ".cache" / "exclusivity"
