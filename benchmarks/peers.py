"""The solvers that are compared: one small class each, with its ladder of tolerances.

To add one, subclass ``Peer``, return from ``prepare`` the call that is timed, and add it to ``PEERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone

from exclusivity import ERMClassifier
from exclusivity.objective.losses import LOSSES
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import solve_alm, solve_newton

Floats = NDArray[np.float64]
HINGES = ("hinge", "squared_hinge")
POWER = {"hinge": 1, "squared_hinge": 2}
FREE = "free, not penalised"
PENALISED = "a constant feature of value {}, penalised with the weights"
MANY = 10_000_000  # the tolerance ends a run, or the time limit; never the number of iterations


class Solution(NamedTuple):
    """Weights of shape (n_features, n_problems) and intercepts of shape (n_problems,)."""

    weights: Floats
    intercepts: Floats

    @classmethod
    def of(cls, *models: Any) -> Solution:
        """Return what ``coef_`` and ``intercept_`` say, of one model for all classes or one per class."""
        coefs = [model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_ for model in models]
        weights = np.vstack([np.atleast_2d(np.asarray(coef, dtype=float)) for coef in coefs]).T
        intercepts = np.concatenate([np.ravel(model.intercept_) for model in models]).astype(float)
        return cls(weights, np.array(np.broadcast_to(intercepts, weights.shape[1:])))

    @classmethod
    def with_constant(cls, vectors: Sequence[Floats]) -> Solution:
        """Return weights whose last entry is that of an appended constant feature."""
        columns = np.column_stack([np.ravel(vector) for vector in vectors]).astype(float)
        return cls(columns[:-1], columns[-1])


Action = Callable[[], Solution]


class Setting(NamedTuple):
    """One run: the loss, the cost C, the step of the ladder, and how many threads it may use."""

    loss: str
    cost: float
    step: float
    threads: int = 1


class Peer:
    """A solver. ``ladder`` goes from coarse to fine; ``step`` says what its numbers are."""

    module = "sklearn"
    intercept = FREE
    losses: tuple[str, ...] = HINGES
    ladder: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    quick_ladder: tuple[float, ...] = (1e-1, 1e-2, 1e-4, 1e-6)
    step = "tol"
    ours = False

    def __init__(self, name: str, scaling: float = 1) -> None:
        self.name, self.scaling = name, scaling

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        """Return what is timed; it starts from nothing every time.

        Only conversions that a user of the package would not pay for again may happen before.
        """
        raise NotImplementedError

    def duals(self, X: Any, y: Floats, setting: Setting) -> list[Floats] | None:
        """Return one dual vector per binary problem, outside of the timing; None where there are none."""
        return None

    def absence(self) -> str | None:
        """Return why it cannot run here; None where it can."""
        package, _, inner = self.module.partition(".")
        if find_spec(package) is None or (inner and find_spec(self.module) is None):
            return f"{self.module} is not installed (pip install '.[bench]')"
        return None


class Ours(Peer):
    """``ERMClassifier`` with one member, validation and all."""

    module = "exclusivity"
    losses = (*HINGES, "logistic")
    ladder = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
    quick_ladder = (1e-2, 1e-4, 1e-6, 1e-8)
    ours = True

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        p = POWER.get(setting.loss)
        loss = {"loss": "logistic"} if p is None else {"p": p}
        model = ERMClassifier(1, C=setting.cost, solver=self.name, tol=setting.step, **loss)
        return lambda: Solution.of(model.fit(X, y))

    def duals(self, X: Any, y: Floats, setting: Setting) -> list[Floats] | None:
        """Run the solver again: the estimator keeps no dual vectors. Any dual vector bounds any weights."""
        solve = {"newton": solve_newton, "alm": solve_alm}[self.name]
        p = POWER.get(setting.loss)
        loss = {"loss": LOSSES["logistic"]()} if p is None else {"p": p}
        problems = (ERMProblem.build(X, labels, cost=setting.cost, **loss) for labels in binary_labels(y))
        return [solve(problem, tol=setting.step).dual for problem in problems]


class PSVM(Peer):
    """The paper's single SVM, one per class; dense rows only."""

    module = "reproduction.psvm"
    ladder = Ours.ladder[:-1]
    ours = True

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        if sparse.issparse(X):
            raise ValueError("psvm takes dense rows only")
        machine = import_module(self.module).PSVMClassifier
        model = machine(C=setting.cost, p=POWER[setting.loss], tol=setting.step, max_iter=100_000)
        return lambda: Solution.of(*(clone(model).fit(X, labels) for labels in binary_labels(y)))


class LinearSVC(Peer):
    """scikit-learn's copy of LIBLINEAR: trust region Newton ("tron") or dual coordinate descent ("dcd")."""

    def __init__(self, name: str, scaling: float) -> None:
        super().__init__(name, scaling)
        self.dual = name.startswith("dcd")
        self.intercept = PENALISED.format(scaling)
        self.losses = HINGES if self.dual else ("squared_hinge",)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        model = svm.LinearSVC(C=setting.cost, loss=setting.loss, tol=setting.step, dual=self.dual)
        model.set_params(intercept_scaling=self.scaling, max_iter=MANY, random_state=0)
        return lambda: Solution.of(model.fit(X, y))


class SVC(Peer):
    """LIBSVM with a linear kernel."""

    losses = ("hinge",)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        models = [(svm.SVC(C=setting.cost, kernel="linear", tol=setting.step), t) for t in binary_labels(y)]
        return lambda: Solution.of(*(model.fit(X, labels) for model, labels in models))


class SGD(Peer):
    """Stochastic gradients with the steps of Pegasos, which make the squared hinge diverge."""

    intercept = FREE + "; on sparse rows its steps are 100 times shorter"
    losses = ("hinge",)
    ladder = (1, 3, 10, 30, 100, 300, 1000)
    quick_ladder = (1, 10, 100)
    step = "epochs"

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        alpha = 1 / (setting.cost * X.shape[0])
        model = linear_model.SGDClassifier(alpha=alpha, max_iter=int(setting.step), tol=None, random_state=0)
        return lambda: Solution.of(model.fit(X, y))


class LogisticRegression(Peer):
    """scikit-learn's logistic regression by one of its solvers, one class against the rest."""

    losses = ("logistic",)
    # newton-cholesky makes a matrix with as many rows and columns as there are weights: here it takes 800 MB.
    most_features = 10_000

    def __init__(self, solver: str) -> None:
        super().__init__(f"logistic-{solver}", 100 if solver == "liblinear" else 1)
        self.solver = solver
        self.intercept = PENALISED.format(100) if solver == "liblinear" else FREE

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        if self.solver == "newton-cholesky" and X.shape[1] > self.most_features:
            raise ValueError(f"its Hessian would have {X.shape[1] + 1:,} rows and columns")
        model = linear_model.LogisticRegression(C=setting.cost, tol=setting.step, solver=self.solver)
        model.set_params(intercept_scaling=self.scaling, max_iter=100_000, random_state=0)
        models = [(clone(model), labels) for labels in binary_labels(y)]
        return lambda: Solution.of(*(each.fit(X, labels) for each, labels in models))


class Liblinear(Peer):
    """LIBLINEAR's own package; rows are converted to its records before the clock starts, in its favour."""

    module = "liblinear"
    solvers: ClassVar = {"tron": "-s 2", "free": "-s 2 -R", "hinge": "-s 3", "squared_hinge": "-s 1"}

    def __init__(self, method: str) -> None:
        super().__init__(f"liblinear-{method}")
        self.method = method
        self.losses = HINGES if method == "dcd" else ("squared_hinge",)
        self.intercept = FREE if method == "free" else PENALISED.format(1)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        package = import_module("liblinear.liblinearutil")
        rows = X if sparse.issparse(X) else sparse.csr_matrix(X)
        tasks = [package.problem(labels, rows, 1.0) for labels in binary_labels(y)]
        solver = self.solvers[setting.loss if self.method == "dcd" else self.method]
        options = f"{solver} -B 1 -c {setting.cost!r} -e {setting.step!r} -q"

        def weights(task: Any) -> Floats:
            model = package.train(task, package.parameter(options))
            # Its own get_decfun builds a list, number by number.
            vector = np.ctypeslib.as_array(model.w, (X.shape[1] + 1,))
            return np.asarray(vector * (1.0 if model.get_labels()[0] > 0 else -1.0))

        return lambda: Solution.with_constant([weights(task) for task in tasks])


class Snapml(Peer):
    """IBM's snapml; its ``intercept_`` is the weight of the constant feature."""

    module = "snapml"
    ladder = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)

    def __init__(self, name: str, scaling: float) -> None:
        super().__init__(name, scaling)
        self.intercept = PENALISED.format(scaling)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        machine, tasks = import_module("snapml").SupportVectorMachine, binary_labels(y)
        parameters = {"fit_intercept": True, "intercept_scaling": float(self.scaling), "max_iter": 1_000_000}
        parameters |= {
            "n_jobs": setting.threads,
            "random_state": 0,
            "tol": setting.step,
            "loss": setting.loss,
        }

        def fit() -> Solution:
            models = [machine(regularizer=1 / setting.cost, **parameters).fit(X, labels) for labels in tasks]
            weights, intercepts = Solution.of(*models)
            return Solution(weights, self.scaling * intercepts)

        return fit


class Skglm(Peer):
    """skglm fits no intercept: the constant feature is appended for it, before the clock starts."""

    module = "skglm"
    intercept = PENALISED.format(1)
    losses = ("hinge",)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        machine, rows, tasks = import_module("skglm").LinearSVC, with_constant(X), binary_labels(y)
        rows = rows.tocsc() if sparse.issparse(rows) else rows
        model = machine(C=setting.cost, tol=setting.step, fit_intercept=False)
        model.set_params(max_iter=1_000_000, max_epochs=1_000_000)
        return lambda: Solution.with_constant([model.fit(rows, labels).coef_.copy() for labels in tasks])


class Rehline(Peer):
    """ReHLine fits no intercept: the constant feature is appended for it, before the clock starts."""

    module = "rehline"
    intercept = PENALISED.format(1)

    def prepare(self, X: Any, y: Floats, setting: Setting) -> Action:
        machine, rows, tasks = import_module("rehline").plqERM_Ridge, with_constant(X), binary_labels(y)
        loss, steps = {"name": setting.loss.replace("_", " ")}, {"tol": setting.step, "max_iter": 1_000_000}
        models = [(machine(loss=loss, C=setting.cost, **steps), labels) for labels in tasks]
        return lambda: Solution.with_constant([model.fit(rows, labels).coef_ for model, labels in models])


def with_constant(X: Any) -> Any:
    """Append a column of ones: dense, or CSR.

    >>> with_constant(np.array([[2.0], [3.0]])).tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


def binary_labels(y: Floats) -> list[Floats]:
    """Return -1/+1 labels of every binary problem: one for two classes, else each class against the rest.

    >>> binary_labels(np.array([0.0, 2.0, 1.0]))[2]
    array([-1.,  1., -1.])
    """
    classes = np.unique(y)
    return [np.where(y == each, 1.0, -1.0) for each in (classes[1:] if len(classes) == 2 else classes)]


_ALL: tuple[Peer, ...] = (
    Ours("newton"),
    Ours("alm"),
    PSVM("psvm"),
    *(LinearSVC(f"{name}-{scaling}", scaling) for name in ("tron", "dcd") for scaling in (1, 10)),
    SVC("svc"),
    SGD("sgd"),
    *(Liblinear(method) for method in ("tron", "free", "dcd")),
    *(Snapml(f"snapml-{scaling}", scaling) for scaling in (1, 10)),
    Skglm("skglm"),
    Rehline("rehline"),
    *(LogisticRegression(s) for s in ("lbfgs", "newton-cg", "newton-cholesky", "liblinear", "sag", "saga")),
)
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
QUICK = (
    "newton",
    "psvm",
    "tron-1",
    "dcd-1",
    "sgd",
    "liblinear-free",
    "snapml-1",
    "rehline",
    "logistic-lbfgs",
)
