"""Data for the solver tests: what scikit-learn brings along, and the paper's sets where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_svmlight_file


def scaled(X):
    """Every feature mapped to [-1, 1], as in the paper's sets."""
    low, high = X.min(axis=0), X.max(axis=0)
    return -1 + 2 * (X - low) / (high - low)


@pytest.fixture(scope="session")
def raw_cancer():
    """150 rows of wdbc as they are: features from 1e-3 to 4e3."""
    X, target = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(target))[:150]
    return X[rows], 2.0 * target[rows] - 1


@pytest.fixture(scope="session")
def cancer(raw_cancer):
    """The same 150 rows scaled to [-1, 1]."""
    X, y = raw_cancer
    return scaled(X), y


@pytest.fixture(scope="session")
def paper_set():
    """A function from a file name to (X, y); it skips where the file is not at hand."""

    def load(name):
        folder = os.environ.get("EXCLUSIVITY_DATA")
        if not folder:
            pytest.skip("EXCLUSIVITY_DATA is not set: the paper's data sets are not at hand")
        path = Path(folder) / name
        if not path.is_file():
            pytest.skip(f"EXCLUSIVITY_DATA has no file {name}")
        X, y = load_svmlight_file(str(path))
        return X.toarray(), y

    return load
