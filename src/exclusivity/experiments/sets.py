"""The paper's data sets as the experiments use them: dense, labels -1/+1, with what is missing named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from exclusivity import datasets
from exclusivity.experiments.published import TABLE1_DATASETS
from exclusivity.problem.arrays import Floats

LARGE = "ijcnn1"
"""The set of Figure 1, panels 3 and 4."""

SWEEP = "sonar"
"""The set of Figure 1, panels 1 and 2."""

ALL_DATASETS = (*TABLE1_DATASETS, LARGE)


@dataclass(frozen=True, eq=False)
class ExperimentSet:
    """One data set in memory.

    Attributes
    ----------
    name : str
        As in the registry of data sets.
    X : ndarray of shape (n_rows, n_features)
        Rows, dense and scaled.
    y : ndarray of shape (n_rows,)
        Labels -1 and +1.
    source : str
        Where the rows come from.
    fingerprint : str
        Of the rows and labels; a checkpoint of other data is not used.
    """

    name: str
    X: Floats
    y: Floats
    source: str
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        digest = sha256(np.ascontiguousarray(self.X).tobytes() + np.ascontiguousarray(self.y).tobytes())
        object.__setattr__(self, "fingerprint", digest.hexdigest()[:16])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return (self.X.shape[0], self.X.shape[1])


@dataclass(frozen=True)
class Collection:
    """The sets at hand, and for every other one why it is not.

    Attributes
    ----------
    sets : dict of ExperimentSet
        By name.
    missing : dict of str
        Name of a set -> why it is missing.
    """

    sets: Mapping[str, ExperimentSet]
    missing: Mapping[str, str]

    def table1(self) -> list[str]:
        """The sets of Table 1 that are there, in its order."""
        return [name for name in TABLE1_DATASETS if name in self.sets]

    def large(self) -> ExperimentSet | None:
        """ijcnn1, or the set with most rows in its place."""
        if LARGE in self.sets:
            return self.sets[LARGE]
        return max(self.sets.values(), key=lambda data: data.shape[0], default=None)


def collect(names: Iterable[str] = ALL_DATASETS, **how: Any) -> Collection:
    """Load what can be loaded.

    A set that is nowhere to be found is a note in the report; a file that is there and broken is an error,
    and so is a data folder that does not exist.

    Parameters
    ----------
    names : iterable of str
        Names of the registry.
    **how
        For ``load_dataset``.

    Returns
    -------
    collection : Collection

    Examples
    --------
    >>> from exclusivity.experiments import collect
    >>> collect(["sonar", "heart"]).table1()
    ['sonar', 'heart']
    """
    datasets.data_folder()
    sets, missing = {}, {}
    for name in names:
        try:
            bunch = datasets.load_dataset(name, scaled=True, **how)
        except OSError as error:
            missing[name] = _impersonal(str(error))
        else:
            sets[name] = from_bunch(name, bunch)
    return Collection(sets, missing)


def _impersonal(text: str) -> str:
    """Without the folders of the person who runs this: reports are made to be passed on."""
    for folder in (datasets.data_folder(), datasets.cache_folder()):
        if folder is not None:
            text = text.replace(f"{folder}{os.sep}", "")
    return text.replace(str(Path.home()), "~")


def from_bunch(name: str, bunch: Any) -> ExperimentSet:
    """Dense rows and labels -1/+1 from what the registry gives."""
    X = bunch.data.toarray() if sparse.issparse(bunch.data) else np.asarray(bunch.data)
    y = np.asarray(bunch.target)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"{name} must have two classes; got {len(classes)}.")
    source = _impersonal(str(getattr(bunch, "source", "unknown")))
    return ExperimentSet(name, X.astype(float), np.where(y == classes[1], 1.0, -1.0), source)
