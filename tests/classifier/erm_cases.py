"""Data and measures that the tests of the classifier share."""

from __future__ import annotations

import numpy as np

from exclusivity.solvers import SOLVERS

# Solvers for exclusivity <= 1; those of them that stop on the duality gap; those that can start anywhere.
CONVEX_SOLVERS = [name for name in SOLVERS if name != "exclusive"]
GAP_SOLVERS = [name for name in CONVEX_SOLVERS if name != "paper"]
WARM_SOLVERS = [name for name in CONVEX_SOLVERS if "start" in SOLVERS[name].keywords]

# Members that differ much: a random start, ended early. From the paper's own start they stay equal.
DIVERSE = {"solver": "paper", "solver_options": {"start": "random", "change": 1e6}, "random_state": 0}


def binary_data(n_rows=60, n_features=5, seed=0, noise=0.7):
    """Two overlapping classes, 0 and 1, not balanced."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    margin = X @ np.linspace(1, -1, n_features) + 0.4 + noise * rng.standard_normal(n_rows)
    return X, (margin > 0).astype(int)


def class_data(n_classes=3, n_rows=72, n_features=4, seed=0, spread=1.2):
    """Overlapping Gaussian classes 0, 1, ... in turn."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    centres = rng.standard_normal((n_classes, n_features)) * 2
    return centres[y] + spread * rng.standard_normal((n_rows, n_features)), y


def kappa(clf):
    """1 + gamma (K - 1)."""
    return 1 + clf.exclusivity * (clf.n_estimators - 1)


def radius(clf):
    """How far the mean member of each problem can be from the one optimum.

    F is at most gap F above its optimum, F >= K kappa f(mean member), and f is 1-strongly convex in w.
    """
    excess = clf.dual_gap_ * clf.objective_ / (clf.n_estimators * kappa(clf))
    return np.sqrt(2 * np.maximum(excess, 1e-15))


def assert_same_weights(first, second, coef=None, rtol=1e-6):
    """The averaged models agree as far as their certificates reach.

    ``coef`` is what ``first.coef_`` should be, if that is not ``second.coef_`` itself. The paper's algorithm
    does not reach the optimum, but it does the same steps: it has to agree up to rounding.
    """
    coef = second.coef_ if coef is None else coef
    norm = np.linalg.norm(coef, axis=1)
    if first.solver == "paper":
        allowed = rtol * norm
    else:
        assert first.converged_.all()
        assert second.converged_.all()
        allowed = radius(first) + radius(second)
        assert np.all(allowed < 0.05 * norm), f"the test says nothing: {allowed} against {norm}"
    difference = np.linalg.norm(first.coef_ - coef, axis=1)
    assert np.all(difference <= allowed), f"{difference} > {allowed}"
