"""Sparse problems, and ways to walk them, that the tests of the compiled kernels share."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from exclusivity.kernels import compiled
from exclusivity.objective.losses import PowerHinge, SmoothHinge
from exclusivity.solvers import NewtonOptions
from exclusivity.solvers.newton import newton_cg

ITERATIVE = NewtonOptions("iterative")
LOSSES = [PowerHinge(1), PowerHinge(2), SmoothHinge()]
TALL, WIDE = (60, 30, 3), (24, 60, 5)

ENDINGS = (
    ()
    if compiled is None
    else (
        compiled.IS_CLOSE,
        compiled.SEEMS_CLOSE,
        compiled.IS_SLOW,
        compiled.IS_ON_ITS_WAY,
    )
)

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
def counted_walks():
    """A list of the types of rows and indices of every compiled walk that is started and goes on."""
    walks = []

    def start(numbers, columns, *others):
        walks.append((numbers.dtype, columns.dtype))
        return original(numbers, columns, *others)

    with pytest.MonkeyPatch.context() as patch:
        original = compiled.start_walk
        patch.setattr(compiled, "start_walk", start)
        yield walks


@contextmanager
def only_python():
    """No compiled walk, as where no compiler was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton_cg, "has_kernel", lambda problem: False)
        yield


def go_on(walk, goal, most_steps):
    """One walk goes on alone."""
    (place,) = compiled.go_on((walk,), (goal,), most_steps)
    return place


def endless(n_rows=200_000, n_features=1000, per_row=10):
    """Rows of noise: at a high cost no method of products gets far."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_features, size=n_rows * per_row, dtype=np.int32)
    starts = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=len(columns)), columns, starts), shape=(n_rows, n_features))
    return X, rng.choice([-1.0, 1.0], size=n_rows)
