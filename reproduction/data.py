"""The nine data sets of the paper, and its random splits.

Every random number of a trial comes from ``default_rng([seed, crc32(name), trial])``: the splits are the same
for all systems, and no trial depends on what else is run or in which order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets import data_folder, load_dataset
from reproduction.published import LARGE, N_TRAIN, TABLE1_DATASETS

Floats = NDArray[np.float64]

DATASETS = (*TABLE1_DATASETS, LARGE)
"""All nine."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Hold one data set: dense rows scaled to [-1, 1], labels -1 and +1."""

    name: str
    X: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class Split:
    """Hold training and test rows, and the seed that random systems start from."""

    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats
    seed: int


def load(
    names: Iterable[str] = DATASETS, *, download: bool = True
) -> tuple[dict[str, DataSet], dict[str, str]]:
    """Load the data sets that can be found, and say why the others cannot.

    A set that is nowhere to be found is left out. A broken file is an error, and so is a folder
    ``EXCLUSIVITY_DATA`` that does not exist.

    Examples
    --------
    >>> found, missing = load(["sonar", "heart"])
    >>> found["sonar"].X.shape, missing
    ((208, 60), {})
    """
    data_folder()
    found, missing = {}, {}
    for name in names:
        try:
            bunch = load_dataset(name, download=download)
        except OSError as error:
            missing[name] = str(error)
        else:
            found[name] = DataSet(name, np.asarray(bunch.data, dtype=float), np.asarray(bunch.target))
    return found, missing


def generator(seed: int, name: str, trial: int = 0) -> np.random.Generator:
    """Return the random numbers of one trial."""
    return np.random.default_rng([seed, crc32(name.encode()), trial])


def random_split(data: DataSet, n_train: int, rng: np.random.Generator) -> Split:
    """Draw ``n_train`` rows without replacement for training; the rest is for testing.

    Rows are drawn without regard to their class, as the paper has it; a draw of one class is repeated.

    Examples
    --------
    >>> data = DataSet("six", np.arange(6.0)[:, None], np.array([1.0, -1, 1, -1, 1, -1]))
    >>> split = random_split(data, 4, np.random.default_rng(0))
    >>> len(split.y_train), len(split.y_test)
    (4, 2)
    """
    X, y = data.X, data.y
    if not 2 <= n_train < len(y):
        raise ValueError(f"Cannot draw {n_train} training rows from {len(y)} and leave some for testing.")
    if np.all(y == y[0]):
        raise ValueError(f"All rows of {data.name} have the same label; there is nothing to learn.")
    while True:
        order = rng.permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        if np.ptp(y[train]) > 0:
            return Split(X[train], y[train], X[test], y[test], int(rng.integers(2**31 - 1)))


def training_split(data: DataSet, seed: int, name: str, trial: int = 0) -> Split:
    """Draw the paper's 150 training rows, or half of a smaller set."""
    n_train = min(N_TRAIN, len(data.y) // 2)
    return random_split(data, n_train, generator(seed, f"{name} {data.name}", trial))
