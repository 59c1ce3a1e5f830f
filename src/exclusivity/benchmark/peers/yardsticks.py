"""What else one would take: scikit-learn's logistic regression, by each of its solvers."""

from __future__ import annotations

from functools import partial

from sklearn.linear_model import LogisticRegression

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

_MANY = 100_000  # its tolerance ends a run, or the time limit
_DEFAULT_TOL = (1e-4,)
# newton-cholesky makes a matrix with as many rows and columns as there are weights: here it takes 800 MB.
_MOST_WEIGHTS = 10_000


def _model(setting: Setting, solver: str) -> LogisticRegression:
    return LogisticRegression(C=setting.cost, solver=solver, tol=setting.step, max_iter=_MANY, random_state=0)


def _logistic(X: Matrix, y: Floats, setting: Setting, *, solver: str) -> Action:
    """Multinomial where there are several classes."""
    weights = (X.shape[1] + 1) * len(binary_labels(y))
    if solver == "newton-cholesky" and weights > _MOST_WEIGHTS:
        raise ValueError(f"its Hessian would have {weights:,} rows and columns")
    model = _model(setting, solver)
    return lambda: Solution.of_estimator(model.fit(X, y))


def _liblinear(X: Matrix, y: Floats, setting: Setting) -> Action:
    """One class against the rest: it knows no other way."""
    model, tasks = _model(setting, "liblinear"), binary_labels(y)

    def fit() -> Solution:
        fitted = (model.fit(X, labels) for labels in tasks)
        return Solution.stack([(each.coef_, float(each.intercept_[0])) for each in fitted])

    return fit


YARDSTICKS = (
    *(
        Peer(
            f"logistic-{solver}",
            f"LogisticRegression(solver={solver!r})",
            "sklearn",
            FREE,
            partial(_logistic, solver=solver),
            ladder=_DEFAULT_TOL,
            quick_ladder=_DEFAULT_TOL,
            yardstick=True,
        )
        for solver in ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
    ),
    Peer(
        "logistic-liblinear",
        "LogisticRegression(solver='liblinear'), one class against the rest",
        "sklearn",
        PENALISED.format(1),
        _liblinear,
        ladder=_DEFAULT_TOL,
        quick_ladder=_DEFAULT_TOL,
        yardstick=True,
    ),
)
