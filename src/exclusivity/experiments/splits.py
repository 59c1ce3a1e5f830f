"""One seeded random split per (data set, trial), the same for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from exclusivity.problem.arrays import Floats

_SEED_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows, and the seed that random methods start from."""

    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats
    seed: int


def generator(seed: int, name: str, trial: int = 0) -> np.random.Generator:
    """The random numbers of one trial; no trial shares its stream with another, whatever runs beside it."""
    return np.random.default_rng([seed, crc32(name.encode()), trial])


def random_split(X: Floats, y: Floats, n_train: int, rng: np.random.Generator) -> Split:
    """``n_train`` rows drawn without replacement for training, the rest for testing.

    Rows are drawn without regard to their class, as the paper has it; a draw with one class only is repeated.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(6.0)[:, None], np.array([1.0, -1, 1, -1, 1, -1])
    >>> split = random_split(X, y, 4, np.random.default_rng(0))
    >>> len(split.y_train), len(split.y_test)
    (4, 2)
    """
    if not 2 <= n_train < len(y):
        raise ValueError(f"Cannot draw {n_train} training rows from {len(y)} and leave some for testing.")
    if np.all(y == y[0]):
        raise ValueError("All rows have the same label; there is nothing to learn.")
    train, test = _draw(y, n_train, rng)
    return Split(X[train], y[train], X[test], y[test], int(rng.integers(_SEED_LIMIT)))


def _draw(y: Floats, n_train: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    while True:
        order = rng.permutation(len(y))
        train = order[:n_train]
        if np.ptp(y[train]) > 0:
            return train, order[n_train:]
