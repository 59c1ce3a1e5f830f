"""ERMClassifier on Dask collections."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exclusivity._errors import ParameterError
from exclusivity._typing import Ints
from exclusivity.classifier import (
    MINIMISED,
    ClassWeight,
    ProblemMonitor,
    RandomState,
    StoredPoint,
    contrasts,
    exclusive_options,
    fitting_threads,
    former_partition,
    objective_of,
    problem_seeds,
    warm_starts,
)
from exclusivity.dask.blocks import Collection, column_names
from exclusivity.dask.checkpoint import Checkpoint, read_checkpoint
from exclusivity.dask.engine import Engine
from exclusivity.dask.prediction import DaskPredictions
from exclusivity.dask.rounds import CountVotes, DistributedSet, distributed_set
from exclusivity.objective.objective import Contrast
from exclusivity.rows.source import Question
from exclusivity.solvers import SOLVERS, SolverResult, Start, parse_options, resolve_solver
from exclusivity.solvers.blocks import (
    Settings,
    Target,
    TotalLoss,
    solve_targets,
)
from exclusivity.solvers.exclusive import solve_exclusive_targets
from exclusivity.solvers.newton import NewtonOptions


class ERMClassifier(DaskPredictions):
    """:class:`exclusivity.ERMClassifier` for Dask arrays and DataFrames: the same certified optimum.

    Rows stay with the workers; what travels are sums over blocks of rows, a few numbers per feature and one
    matrix per Newton step. Parameters and attributes are those of the classifier in memory. It differs in
    these:

    Parameters
    ----------
    n_estimators : int, default=10
        As in memory.
    C : float, default=2.0
        As in memory.
    loss : {"hinge", "logistic", "smooth_hinge"}, default="hinge"
        As in memory.
    p : float, default=2
        As in memory.
    exclusivity : float, default=1.0
        Up to 1, or ``inf``; values between need rows in memory.
    sparsity : float, default=0.0
        As in memory.
    coef_bounds : pair (lower, upper) or dict, default=None
        As in memory.
    monotonic_cst : array-like of shape (n_features,) or dict, default=None
        As in memory.
    voting : {"soft", "hard", "runoff"}, default="soft"
        As in memory.
    feature_groups : sequence of labels, callable or None, default=None
        As in memory.
    partition : {"learned", "random"} or sequence of labels, default="learned"
        As in memory.
    solver : {"auto", "newton", "exclusive"}, default="auto"
        As in memory; "paper" and "alm" keep vectors of all rows and all members, and need rows in memory.
    solver_options : dict, default=None
        As in memory.
    tol : float, default=1e-4
        As in memory.
    max_iter : int, default=None
        As in memory.
    fit_intercept : bool, default=True
        As in memory.
    class_weight : dict or "balanced", default=None
        As in memory.
    multi_class : {"ovr", "ovo"}, default="ovr"
        As in memory.
    warm_start : bool, default=False
        As in memory; but an interior point (p = 1 where bands do not do) begins anew, at the same weights.
    random_state : int, RandomState or None, default=None
        As in memory.
    n_jobs : None
        The cluster decides how many rows are worked on at a time; all classes share each pass.
    verbose : int, default=0
        As in memory.
    persist : bool or "auto", default="auto"
        Whether the workers keep the rows in memory. "auto": if they fill no more than 40 % of it. Else every
        pass reads them anew, from wherever the collection has them.
    checkpoint : path-like or None, default=None
        A file for the iterates. A fit that broke off goes on from there when it is repeated; the file is
        removed when a fit is over.

    See Also
    --------
    exclusivity.ERMClassifier : The classifier for rows in memory, with all attributes described.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity.dask import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X / X.max(axis=0), chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> clf = ERMClassifier(30).fit(X, y)
    >>> bool(clf.dual_gap_[0] <= 1e-4)
    True
    >>> clf.predict(X)[:5].compute()
    array([0, 0, 0, 0, 0])
    >>> type(clf.to_local()).__module__
    'exclusivity.classifier.erm'
    """

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        C: float = 2.0,
        loss: str = "hinge",
        p: float = 2,
        exclusivity: float = 1.0,
        sparsity: float = 0.0,
        coef_bounds: Any = None,
        monotonic_cst: Any = None,
        voting: str = "soft",
        feature_groups: object = None,
        partition: ArrayLike = "learned",
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        multi_class: str = "ovr",
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        persist: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.C = C
        self.loss = loss
        self.p = p
        self.exclusivity = exclusivity
        self.sparsity = sparsity
        self.coef_bounds = coef_bounds
        self.monotonic_cst = monotonic_cst
        self.voting = voting
        self.feature_groups = feature_groups
        self.partition = partition
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.persist = persist
        self.checkpoint = checkpoint

    def _training_tasks(
        self, X: Collection, y: Collection, sample_weight: Collection | None
    ) -> tuple[DistributedSet, Sequence[Contrast], dict[str, Any]]:
        self._check_supported()
        names = column_names(X)
        engine = Engine.current()
        data = distributed_set(engine, X, y, sample_weight, self.class_weight, self.persist)
        self.n_features_in_ = data.rows.n_features
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        shown = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        return data, contrasts(data.classes, self.multi_class), shown

    def _solve(
        self,
        data: DistributedSet,
        tasks: Sequence[Contrast],
        groups: Ints,
        watchers: Sequence[ProblemMonitor],
    ) -> Sequence[SolverResult]:
        objective = objective_of(self, data.rows.n_features, data.dtype, len(tasks))
        targets = [Target(objective, task) for task in tasks]
        # Of this process: its own systems, and the products of a scheduler of threads.
        with fitting_threads(data.rows.n_rows, data.rows.n_features):
            if self.exclusivity > 1:
                results = self._solve_exclusive(data, targets, groups, watchers)
            else:
                results = self._solve_convex(data, targets, tasks, watchers)
            return results if data.dtype == np.float64 else self._as_stored(data, targets, results)

    def _as_stored(
        self, data: DistributedSet, targets: list[Target], results: Sequence[SolverResult]
    ) -> Sequence[SolverResult]:
        """The results as a model of float32 rows holds them: one pass for all of them."""
        points = [StoredPoint.of(*pair) for pair in zip([t.objective for t in targets], results, strict=True)]
        answers = data.rows.ask(
            [
                Question(TotalLoss(replace(target, objective=at.objective), at.weights, at.intercepts))
                for target, at in zip(targets, points, strict=True)
            ]
        )
        totals = [answer.total.tolist() for answer in answers]
        return [
            at.certified(result, self.tol, loss, cost, data.rows.row_scale, data.rows.n_rows)
            for at, result, (loss, cost) in zip(points, results, totals, strict=True)
        ]

    def _solve_convex(
        self,
        data: DistributedSet,
        targets: list[Target],
        tasks: Sequence[Contrast],
        watchers: Sequence[ProblemMonitor],
    ) -> Sequence[SolverResult]:
        options = parse_options(NewtonOptions, self.solver_options)
        settings = Settings(self.tol, self.max_iter, options.regime)
        starts: list[Start | None] = [None] * len(tasks)
        if self.warm_start and self.__sklearn_is_fitted__():
            starts = [start.for_objective(targets[0].objective) for start in warm_starts(self, len(tasks))]
        callbacks: list[Any] = list(watchers) or [None] * len(tasks)
        if self.checkpoint is None:
            return solve_targets(data.rows, targets, settings, starts, callbacks)
        checkpoint = Checkpoint(self.checkpoint, self._fingerprint(data))
        starts = [checkpoint.start(number) or start for number, start in enumerate(starts)]
        results = solve_targets(data.rows, targets, settings, starts, checkpoint.watched(callbacks))
        checkpoint.remove()
        return results

    def _training_votes(self, data: DistributedSet) -> Ints:
        counts: Ints = data.rows.total(CountVotes(self.to_local()))
        return counts

    def _solve_exclusive(
        self, data: DistributedSet, targets: list[Target], groups: Ints, watchers: Sequence[ProblemMonitor]
    ) -> Sequence[SolverResult]:
        is_warm = self.warm_start and self.__sklearn_is_fitted__()
        seed = problem_seeds(self, len(targets))[0]
        return solve_exclusive_targets(
            data.rows,
            targets,
            groups=groups,
            tol=self.tol,
            options=exclusive_options(self, groups, seed),
            random_state=seed,
            start=former_partition(self, groups) if is_warm else None,
            callback=watchers[0] if watchers else None,
        )

    def _fingerprint(self, data: DistributedSet) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in MINIMISED},
            "shape": [data.rows.n_rows, data.rows.n_features],
            "classes": data.classes.tolist(),
        }

    def _check_supported(self) -> None:
        if SOLVERS[resolve_solver(self.solver, self.exclusivity)].keeps_members:
            raise ParameterError(
                "solver",
                f"solver={self.solver!r} keeps vectors of all rows for all members and needs rows in memory; "
                "on Dask collections use solver='auto', or exclusivity.ERMClassifier on a sample.",
            )
        if 1 < self.exclusivity < np.inf:
            raise ParameterError(
                "exclusivity",
                f"exclusivity={self.exclusivity!r}: between 1 and infinity members are fitted against each "
                "other row by row, which needs rows in memory; on Dask collections use exclusivity=np.inf "
                "for members on different features, or at most 1.",
            )
        if self.exclusivity > 1 and self.checkpoint is not None:
            raise ValueError(
                "checkpoint needs exclusivity <= 1: members on features of their own are fitted in one go."
            )
        if self.checkpoint is not None:
            read_checkpoint(self.checkpoint)  # whether it can be used, before any work is done
        if self.n_jobs is not None:
            raise ParameterError(
                "n_jobs",
                f"n_jobs={self.n_jobs!r} has no meaning here: the workers of the cluster share the blocks of "
                "rows; leave n_jobs=None.",
            )
        if not (isinstance(self.persist, (bool, np.bool_)) or self.persist == "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")
