"""The registry of workloads, and their files on disk: plain arrays, no pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from exclusivity.benchmark.generators import (
    Floats,
    class_rows,
    one_hot_rows,
    overlapping_rows,
    text_rows,
)
from exclusivity.benchmark.library_text import SMALL_MODULES, Analyzer, library_rows
from exclusivity.datasets import load_dataset
from exclusivity.problem.arrays import Matrix

Kind = Literal["paper", "ijcnn1", "one-hot", "dense", "sparse", "classes", "text"]
PAPER_ROWS = 150
# The last is the paper's C = 2 with 30 members.
COSTS = (2.0, 0.2, 1 / 15)
TEXT_COSTS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Workload:
    """Training rows with a name.

    Attributes
    ----------
    name : str
        What ``--only`` calls it.
    title : str
        What it is.
    kind : str
        Its group; ``--only`` takes groups too.
    make : callable
        Gives X (an array or a CSR matrix, float64) and y: -1 and +1, or one number per class.
    small : bool
        Whether it belongs to ``--quick`` alone.
    costs : tuple of float
        The costs of a full run.
    """

    name: str
    title: str
    kind: Kind
    make: Callable[[], tuple[Any, Floats]]
    small: bool = False
    costs: tuple[float, ...] = COSTS


def paper_rows(name: str) -> tuple[Floats, Floats]:
    """150 random rows of one of the paper's sets, both classes among them."""
    bunch = load_dataset(name, download=False)
    rows = np.random.default_rng(0).permutation(len(bunch.target))[:PAPER_ROWS]
    return bunch.data[rows], bunch.target[rows]


def _ijcnn1() -> tuple[Floats, Floats]:
    bunch = load_dataset("ijcnn1", download=False)
    return bunch.data, bunch.target


_PAPER_SETS = ("sonar", "german", "australian", "heart", "ionosphere", "diabetes", "liver", "splice")

_ANALYZERS: dict[Analyzer, str] = {"words": "words", "chars": "character 2- to 4-grams"}

_TEXT = (
    *(
        Workload(
            f"text-{analyzer}",
            f"the standard library's functions and classes, {what}, its largest module against the rest",
            "text",
            partial(library_rows, analyzer, classes=False),
            costs=TEXT_COSTS,
        )
        for analyzer, what in _ANALYZERS.items()
    ),
    *(
        Workload(
            f"text-{analyzer}-classes",
            f"the standard library's functions and classes, {what}, every module against the rest",
            "text",
            partial(library_rows, analyzer, classes=True),
            costs=TEXT_COSTS,
        )
        for analyzer, what in _ANALYZERS.items()
    ),
    Workload(
        "small-text",
        "functions and classes of five modules of the standard library, words, one-vs-rest",
        "text",
        partial(library_rows, "words", classes=True, modules=SMALL_MODULES),
        small=True,
    ),
)

_ALL = (
    *(
        Workload(f"paper-{name}", f"150 rows of {name}", "paper", partial(paper_rows, name))
        for name in _PAPER_SETS
    ),
    Workload("ijcnn1", "the paper's largest set, ijcnn1", "ijcnn1", _ijcnn1),
    Workload("one-hot", "32,000 x 123 of 0 and 1, 14 ones per row", "one-hot", partial(one_hot_rows, 32_000)),
    Workload(
        "dense-500k",
        "500,000 x 50, dense, overlapping classes",
        "dense",
        partial(overlapping_rows, 500_000, 50),
    ),
    Workload(
        "dense-2m",
        "2,000,000 x 28, dense, overlapping classes",
        "dense",
        partial(overlapping_rows, 2_000_000, 28),
    ),
    Workload(
        "sparse-wide",
        "20,000 x 1,000,000, text-like, 400 words per row",
        "sparse",
        partial(text_rows, 20_000, 1_000_000, 400),
    ),
    Workload(
        "sparse-long",
        "200,000 x 50,000, text-like, 75 words per row",
        "sparse",
        partial(text_rows, 200_000, 50_000, 75),
    ),
    Workload(
        "classes-10",
        "20,000 x 256, ten classes, one-vs-rest",
        "classes",
        partial(class_rows, 20_000, 256, 10),
    ),
    Workload(
        "small-dense",
        "20,000 x 20, dense, overlapping classes",
        "dense",
        partial(overlapping_rows, 20_000, 20),
        small=True,
    ),
    Workload(
        "small-sparse",
        "2,000 x 20,000, text-like, 75 words per row",
        "sparse",
        partial(text_rows, 2_000, 20_000, 75),
        small=True,
    ),
    Workload(
        "small-classes",
        "2,000 x 32, five classes, one-vs-rest",
        "classes",
        partial(class_rows, 2_000, 32, 5),
        small=True,
    ),
    *_TEXT,
)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}

QUICK = ("paper-heart", "small-dense", "small-sparse", "small-classes", "small-text")


def find_workloads(wanted: Sequence[str] | None, *, quick: bool) -> tuple[Workload, ...]:
    """The workloads with these names or of these kinds; None means all that --quick or the full run takes.

    Examples
    --------
    >>> [workload.name for workload in find_workloads(["dense", "ijcnn1"], quick=False)]
    ['dense-500k', 'dense-2m', 'ijcnn1']
    >>> [workload.name for workload in find_workloads(["dense", "ijcnn1"], quick=True)]
    ['small-dense', 'ijcnn1']
    """
    if wanted is None:
        names = QUICK if quick else tuple(name for name, each in WORKLOADS.items() if not each.small)
        return tuple(WORKLOADS[name] for name in names)
    found: dict[str, Workload] = {}
    for word in wanted:
        matches = [each for each in _ALL if each.name == word]
        group = [each for each in _ALL if each.kind == word]
        # A group without small workloads is small itself, or meant: it was named.
        matches = matches or [each for each in group if each.small == quick] or group
        if not matches:
            kinds = dict.fromkeys(each.kind for each in _ALL)
            raise ValueError(
                f"there is no workload {word!r}; "
                f"choose from {', '.join(WORKLOADS)}, or a group of them: {', '.join(kinds)}."
            )
        found |= {each.name: each for each in matches}
    return tuple(found.values())


def save_rows(folder: Path, X: Matrix, y: Floats) -> None:
    """Write X and y as .npy files."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "y.npy", y)
    if sparse.issparse(X):
        for part in ("data", "indices", "indptr"):
            np.save(folder / f"{part}.npy", getattr(X, part))
    else:
        np.save(folder / "X.npy", X)
    (folder / "rows.json").write_text(json.dumps({"shape": X.shape, "sparse": sparse.issparse(X)}))


def load_rows(folder: Path) -> tuple[Any, Floats]:
    """Read what ``save_rows`` wrote."""
    facts = json.loads((folder / "rows.json").read_text())
    y = np.load(folder / "y.npy", allow_pickle=False)
    if not facts["sparse"]:
        return np.load(folder / "X.npy", allow_pickle=False), y
    parts = (np.load(folder / f"{part}.npy", allow_pickle=False) for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(tuple(parts), shape=facts["shape"]), y
