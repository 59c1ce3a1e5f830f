import pytest
import sklearn

import exclusivity


def test_versions_are_told(capsys):
    exclusivity.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["exclusivity"] == exclusivity.__version__
    assert lines["scikit-learn"] == sklearn.__version__
    assert {"python", "kernels", "numpy", "dask"} <= lines.keys()


@pytest.mark.parametrize(("module", "said"), [(None, "not compiled"), (exclusivity, "compiled")])
def test_it_is_told_whether_there_are_compiled_kernels(capsys, monkeypatch, module, said):
    monkeypatch.setattr("exclusivity.versions.compiled", module)
    exclusivity.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["kernels"] == said


def test_what_is_missing_is_said(capsys, monkeypatch):
    monkeypatch.setattr("exclusivity.versions._PACKAGES", ("no-such-package",))
    exclusivity.show_versions()
    assert "not installed" in capsys.readouterr().out
