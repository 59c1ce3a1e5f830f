"""``n_jobs`` counts threads: what joblib says of its own processes does not matter."""

import multiprocessing
import warnings

import numpy as np
import pytest
from joblib import parallel_config

from exclusivity import ERMClassifier
from exclusivity.classifier import _erm as fitting


@pytest.fixture
def threads_of(monkeypatch):
    """Fit to four classes, and give how many threads the solver was offered."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(80, 3)), np.arange(80) % 4
    offered = []
    solve = fitting.solve_all

    def watched(*arguments, **settings):
        offered.append(settings["n_threads"])
        return solve(*arguments, **settings)

    monkeypatch.setattr(fitting, "solve_all", watched)

    def fit(n_jobs):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ERMClassifier(2, n_jobs=n_jobs).fit(X, y)
        return offered[-1]

    return fit


def test_in_a_child_of_multiprocessing(threads_of, monkeypatch):
    """Such a child may start no processes; threads it may."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert threads_of(2) == 2
    assert threads_of(None) == 1


def test_the_default_of_joblib_counts(threads_of):
    with parallel_config(n_jobs=3):
        assert threads_of(None) == 3
        assert threads_of(2) == 2
