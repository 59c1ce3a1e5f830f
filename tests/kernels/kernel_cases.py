"""Sparse problems, and ways to solve them, that the tests of the compiled kernels share."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from exclusivity.kernels import compiled
from exclusivity.objective.losses import PowerHinge, SmoothHinge
from exclusivity.solvers import NewtonOptions, newton as solver_module

ITERATIVE = NewtonOptions("iterative")
LOSSES = [PowerHinge(1), PowerHinge(2), SmoothHinge()]
TALL, WIDE = (60, 30, 3), (24, 60, 5)

ENDINGS = () if compiled is None else (compiled.CONVERGED, compiled.STALLED, compiled.STEP_LIMIT)

needs_compiled = pytest.mark.skipif(compiled is None, reason="the package was installed without its kernels")
by_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def sparse_rows(n_rows, n_features, per_row, seed=0):
    """So many numbers per row, a tenth of them all at most; labels by a noisy plane; both classes occur."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([rng.choice(n_features, per_row, replace=False) for _ in range(n_rows)])
    starts = np.arange(n_rows + 1) * per_row
    X = sparse.csr_array(
        (rng.normal(size=len(columns)), columns.astype(np.int32), starts.astype(np.int32)),
        shape=(n_rows, n_features),
    )
    scores = X @ rng.normal(size=n_features) + 0.5 * rng.normal(size=n_rows) + 0.2
    y = np.where(scores > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@contextmanager
def counted_runs():
    """A list of the types of rows and indices of every run of the kernel."""
    runs = []

    def start(numbers, columns, *others):
        runs.append((numbers.dtype, columns.dtype))
        return original(numbers, columns, *others)

    with pytest.MonkeyPatch.context() as patch:
        original = compiled.new_solver
        patch.setattr(compiled, "new_solver", start)
        yield runs


@contextmanager
def only_python():
    """No compiled kernel, as where no compiler was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver_module, "has_kernel", lambda problem: False)
        yield


def endless(n_rows=200_000, n_features=1000, per_row=10):
    """Rows of noise: at a high cost no method of products gets far."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_features, size=n_rows * per_row, dtype=np.int32)
    starts = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=len(columns)), columns, starts), shape=(n_rows, n_features))
    return X, rng.choice([-1.0, 1.0], size=n_rows)
