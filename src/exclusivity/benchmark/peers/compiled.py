"""Peers outside of scikit-learn: LIBLINEAR's own package, snapml, skglm, ReHLine; imported only to be run."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import numpy as np
from scipy import sparse

from exclusivity.benchmark.peers.base import (
    FREE,
    PENALISED,
    Action,
    Floats,
    Peer,
    Setting,
    Solution,
    binary_labels,
    with_constant,
)
from exclusivity.problem.arrays import Matrix

_MANY = 1_000_000


def _liblinear(X: Matrix, y: Floats, setting: Setting, *, method: str) -> Action:
    """Rows are converted to LIBLINEAR's own records before the clock starts: in its favour."""
    package = import_module("liblinear.liblinearutil")
    solver = {"tron": "2", "free": "2 -R", "dcd": {1: "3", 2: "1"}[setting.p]}[method]
    rows = X if sparse.issparse(X) else sparse.csr_matrix(X)
    tasks = [package.problem(labels, rows, 1.0) for labels in binary_labels(y)]
    options = f"-s {solver} -B 1 -c {setting.cost!r} -e {setting.step!r} -q"

    def fit() -> Solution:
        pairs = []
        for task in tasks:
            model = package.train(task, package.parameter(options))
            # Its own get_decfun builds a list, number by number.
            weights = np.ctypeslib.as_array(model.w, (X.shape[1] + 1,))
            weights = weights * (1.0 if model.get_labels()[0] > 0 else -1.0)
            pairs.append((weights[:-1], float(weights[-1])))
        return Solution.stack(pairs)

    return fit


def _snapml(X: object, y: Floats, setting: Setting, *, scaling: float) -> Action:
    """Its ``intercept_`` is the weight of the constant feature: the intercept is that times the feature."""
    machine = import_module("snapml").SupportVectorMachine
    tasks = binary_labels(y)

    def fit() -> Solution:
        pairs = []
        for labels in tasks:
            model = machine(
                loss={1: "hinge", 2: "squared_hinge"}[setting.p],
                regularizer=1 / setting.cost,
                fit_intercept=True,
                intercept_scaling=float(scaling),
                tol=setting.step,
                max_iter=_MANY,
                n_jobs=setting.threads,
                random_state=0,
            ).fit(X, labels)
            pairs.append((model.coef_, scaling * float(np.ravel(model.intercept_)[0])))
        return Solution.stack(pairs)

    return fit


def _skglm(X: Matrix, y: Floats, setting: Setting) -> Action:
    """It fits no intercept: the constant feature is appended for it, before the clock starts."""
    machine = import_module("skglm").LinearSVC
    rows = with_constant(X)
    rows = rows.tocsc() if sparse.issparse(rows) else rows
    tasks = binary_labels(y)

    def fit() -> Solution:
        pairs = []
        for labels in tasks:
            model = machine(
                C=setting.cost, tol=setting.step, max_iter=_MANY, max_epochs=_MANY, fit_intercept=False
            ).fit(rows, labels)
            weights = np.ravel(model.coef_)
            pairs.append((weights[:-1], float(weights[-1])))
        return Solution.stack(pairs)

    return fit


def _rehline(X: Matrix, y: Floats, setting: Setting) -> Action:
    """It fits no intercept: the constant feature is appended for it, before the clock starts."""
    machine = import_module("rehline").plqERM_Ridge
    rows, tasks = with_constant(X), binary_labels(y)
    loss = {"name": {1: "hinge", 2: "squared hinge"}[setting.p]}

    def fit() -> Solution:
        pairs = []
        for labels in tasks:
            model = machine(loss=loss, C=setting.cost, tol=setting.step, max_iter=_MANY).fit(rows, labels)
            pairs.append((model.coef_[:-1], float(model.coef_[-1])))
        return Solution.stack(pairs)

    return fit


COMPILED = (
    Peer(
        "liblinear-tron",
        "LIBLINEAR -s 2 -B 1",
        "liblinear",
        PENALISED.format(1),
        partial(_liblinear, method="tron"),
        powers=(2,),
    ),
    Peer(
        "liblinear-free",
        "LIBLINEAR -s 2 -B 1 -R",
        "liblinear",
        FREE,
        partial(_liblinear, method="free"),
        powers=(2,),
    ),
    Peer(
        "liblinear-dcd",
        "LIBLINEAR -s 1 (p = 2) or -s 3 (p = 1), -B 1",
        "liblinear",
        PENALISED.format(1),
        partial(_liblinear, method="dcd"),
    ),
    *(
        Peer(
            f"snapml-{scaling}",
            f"snapml SupportVectorMachine(intercept_scaling={scaling})",
            "snapml",
            PENALISED.format(scaling),
            partial(_snapml, scaling=scaling),
            ladder=(1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8),
        )
        for scaling in (1, 10)
    ),
    Peer("skglm", "skglm LinearSVC", "skglm", PENALISED.format(1), _skglm, powers=(1,)),
    Peer("rehline", "ReHLine's plqERM_Ridge", "rehline", PENALISED.format(1), _rehline),
)
