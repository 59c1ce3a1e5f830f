"""How many files a reader of ``fit`` has to open, and that no two of them call each other both ways."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import exclusivity
from exclusivity import ERMClassifier

ROOT = str(Path(exclusivity.__file__).parent) + "/"


def data(n, m):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1, 0)


def fit_sparse():
    X = sparse.random(900, 700, 0.02, random_state=0, format="csr")
    ERMClassifier(5, p=1).fit(X, data(900, 2)[1])


def fit_dask(p):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    from exclusivity.dask import ERMClassifier as DaskClassifier

    X, y = data(21_000, 8)
    with dask.config.set(scheduler="synchronous"):
        DaskClassifier(5, p=p).fit(da.from_array(X, chunks=(7_000, 8)), da.from_array(y, chunks=7_000))


FITS = {
    "dense": (10, lambda: ERMClassifier(5).fit(*data(300, 8))),
    "many rows": (12, lambda: ERMClassifier(5, p=1).fit(*data(21_000, 8))),
    "sparse": (11, fit_sparse),
    "exclusive": (
        13,
        lambda: ERMClassifier(3, exclusivity=np.inf, voting="hard", random_state=0).fit(*data(300, 8)),
    ),
    "dask, p = 2": (13, lambda: fit_dask(2)),
    "dask, p = 1": (16, lambda: fit_dask(1)),
}


def walk(fit):
    """The files that a fit visits, and the pairs of files (from, to) between which it calls."""
    files, calls = set(), set()

    def watch(frame, event, _):
        here = frame.f_code.co_filename
        if event == "call" and here.startswith(ROOT):
            files.add(here)
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            if caller.startswith(ROOT) and caller != here:
                calls.add((caller.removeprefix(ROOT), here.removeprefix(ROOT)))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return files, calls


@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_a_reader_opens_few_files(name):
    most, fit = FITS[name]
    fit()  # imports and caches are not part of the walk
    files, calls = walk(fit)
    assert 5 < len(files) <= most
    assert not {pair for pair in calls if pair[::-1] in calls}, "calls both ways"
