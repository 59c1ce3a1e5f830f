"""scikit-learn's linear SVMs: LIBLINEAR's TRON and DCD, LIBSVM, and stochastic gradients."""

from __future__ import annotations

from functools import partial

from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from exclusivity.benchmark.peers.base import (
    FREE,
    PENALISED,
    Action,
    Floats,
    Peer,
    Setting,
    Solution,
    binary_labels,
)
from exclusivity.problem.arrays import Matrix

_LOSS = {1: "hinge", 2: "squared_hinge"}
_MANY = 10_000_000  # the tolerance ends a run, or the time limit; never the number of iterations
_EPOCHS = (1, 3, 10, 30, 100, 300, 1000)


def _linear_svc(X: object, y: Floats, setting: Setting, *, dual: bool, scaling: float) -> Action:
    model = LinearSVC(
        C=setting.cost,
        loss=_LOSS[setting.p],
        dual=dual,
        tol=setting.step,
        intercept_scaling=scaling,
        max_iter=_MANY,
        random_state=0,
    )
    return lambda: Solution.of_estimator(model.fit(X, y))


def _svc(X: object, y: Floats, setting: Setting) -> Action:
    tasks = binary_labels(y)

    def fit() -> Solution:
        pairs = []
        for labels in tasks:
            model = SVC(C=setting.cost, kernel="linear", tol=setting.step).fit(X, labels)
            weights = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
            pairs.append((weights, float(model.intercept_[0])))
        return Solution.stack(pairs)

    return fit


def _sgd(X: Matrix, y: Floats, setting: Setting) -> Action:
    model = SGDClassifier(
        loss="hinge",
        alpha=1 / (setting.cost * X.shape[0]),
        max_iter=int(setting.step),
        tol=None,
        random_state=0,
    )
    return lambda: Solution.of_estimator(model.fit(X, y))


SCIKIT = (
    *(
        Peer(
            f"tron-{scaling}",
            f"LinearSVC(dual=False, intercept_scaling={scaling})",
            "sklearn",
            PENALISED.format(scaling),
            partial(_linear_svc, dual=False, scaling=scaling),
            powers=(2,),
        )
        for scaling in (1, 10)
    ),
    *(
        Peer(
            f"dcd-{scaling}",
            f"LinearSVC(dual=True, intercept_scaling={scaling})",
            "sklearn",
            PENALISED.format(scaling),
            partial(_linear_svc, dual=True, scaling=scaling),
        )
        for scaling in (1, 10)
    ),
    Peer("svc", "SVC(kernel='linear')", "sklearn", FREE, _svc, powers=(1,)),
    Peer(
        "sgd",
        "SGDClassifier, steps 1 / (alpha t) as in Pegasos",
        "sklearn",
        FREE + "; on sparse rows its steps are 100 times shorter",
        _sgd,
        ladder=_EPOCHS,
        quick_ladder=(1, 10, 100),
        step="epochs",
        powers=(1,),  # as Pegasos; steps of this length make the squared hinge diverge
    ),
)
