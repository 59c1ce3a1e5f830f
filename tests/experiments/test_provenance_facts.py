"""What a result was made with."""

import builtins
from importlib.metadata import PackageNotFoundError

import pytest

from exclusivity import __version__
from exclusivity.experiments import provenance
from exclusivity.experiments.provenance import available_cpus, computing_versions, machine, versions
from exclusivity.experiments.tasks import pick
from experiments.experiment_cases import toy_set


def test_versions_leave_out_what_is_not_installed(monkeypatch):
    assert versions()["exclusivity"] == __version__

    def version(package):
        if package == "matplotlib":
            raise PackageNotFoundError
        return "1.0"

    monkeypatch.setattr("exclusivity.versions.version", version)
    assert "matplotlib" not in versions()
    assert versions()["numpy"] == "1.0"


def test_what_only_draws_does_not_decide_numbers():
    assert "matplotlib" not in computing_versions()
    assert "numpy" in computing_versions()


def test_cpus_without_affinity(monkeypatch):
    monkeypatch.delattr(provenance.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(provenance.os, "cpu_count", lambda: None)
    assert available_cpus() == 1


@pytest.mark.parametrize("lines", ["flags: none\n", None])
def test_machine_without_a_model_name(lines, monkeypatch, tmp_path):
    real = builtins.open

    def fake(path, *args, **kwargs):
        if str(path) != "/proc/cpuinfo":
            return real(path, *args, **kwargs)
        if lines is None:
            raise FileNotFoundError
        (tmp_path / "cpuinfo").write_text(lines)
        return real(tmp_path / "cpuinfo", encoding="utf-8")

    monkeypatch.setattr(builtins, "open", fake)
    monkeypatch.setattr(provenance.platform, "processor", lambda: "abacus")
    assert machine()["processor"] == "abacus"


def test_a_task_is_for_its_own_data():
    data = toy_set("heart")
    assert pick({"heart": data}, "heart", data.fingerprint) is data
    with pytest.raises(ValueError, match="heart is not the data"):
        pick({"heart": data}, "heart", "other")
