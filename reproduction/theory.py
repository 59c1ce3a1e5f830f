"""The paper's statements as measurements: each check gives numbers, the verdicts are drawn in ``claims``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.svm import SVC

from exclusivity.objective.objective import ERMProblem, ExclusivityRegulariser
from exclusivity.solvers import PaperOptions, solve_alm, solve_newton, solve_paper
from exclusivity.solvers.paper import Algorithm2, make_system
from reproduction.data import DataSet, Floats, Split, generator, training_split
from reproduction.published import COST, N_TRAIN
from reproduction.tables import error_percent

Numbers = dict[str, Any]

_K = 10
# mu = 1.1^300 = 2.6e12: past the point where nothing moves any more.
_LONG = 300
_N_STARTS = 5
# With constant mu the objective settles; this is rounding, for objectives of the order of 100.
_CONSTANT_MU = PaperOptions(change=1e-12, rho=1.0, mu0=COST, w_step="exact")
# The optimal face is explored within this factor of the optimum: LP solvers are accurate to about 1e-9.
_FACE = 1e-7


def _problem(split: Split, p: int) -> ERMProblem:
    return ERMProblem.build(split.X_train, split.y_train, n_members=_K, cost=COST, p=p)


def proposition1(data: DataSet, seed: int) -> Numbers:
    """Compare the loss of the mean member with the mean loss of the members (Prop. 1).

    Members differ only when the algorithm starts at random and is stopped, so that is what is measured; equal
    members would make it an equation. ``slack``: (mean loss - loss of the mean) / mean loss, by p.
    """
    split = training_split(data, seed, "proposition 1")
    slack = {}
    for p in (1, 2):
        run = solve_paper(_problem(split, p), options=PaperOptions(start="random"), random_state=seed)
        scores = split.X_train @ run.weights + run.intercepts
        members = np.maximum(0, 1 - split.y_train[:, None] * scores) ** p
        mean = np.maximum(0, 1 - split.y_train * scores.mean(axis=1)) ** p
        slack[f"p{p}"] = float(1 - mean.sum() / members.sum(axis=0).mean())
    return {"slack": slack}


def theorem1(data: DataSet, seed: int) -> Numbers:
    """Compare Algorithm 1 with the exact W step, on random rows, after so many inner ``steps`` (Thm. 1).

    ``from_ones`` is the paper's start, ``from_zeros`` one with half of its entries zero.
    """
    point = generator(seed, "theorem 1").standard_normal((max(data.X.shape[1], 50), _K))
    regulariser, mu = ExclusivityRegulariser(), 1.0
    exact = regulariser.prox(point, mu)
    ones = np.ones_like(point)
    found: Numbers = {"steps": [10, 100, 1000, 3000, 10_000]}
    for name, start in (("from_ones", ones), ("from_zeros", ones * (np.arange(_K) % 2))):
        ends = (
            regulariser.reweighted(point, mu, start, eps=1e-12, max_iter=q, tol=0.0) for q in found["steps"]
        )
        found[name] = [float(np.abs(end - exact).max()) for end in ends]
    return found


def lemma2(data: DataSet, seed: int) -> Numbers:
    """Find the largest multipliers in the first and in the second half of a long run, by p (Lemma 2)."""
    split = training_split(data, seed, "lemma 2")
    found = {}
    for p in (1, 2):
        problem = _problem(split, p)
        algorithm = Algorithm2(problem, PaperOptions(), make_system(problem), np.random.default_rng(seed))
        largest = np.empty((_LONG, 2))
        for iteration in range(_LONG):
            algorithm.iterate(iteration + 1)
            largest[iteration] = np.abs(algorithm.Z).max(), np.abs(algorithm.Q).max()
        halves = largest.reshape(2, -1, 2).max(axis=1)
        found[f"p{p}"] = {"Z": halves[:, 0].tolist(), "Q": halves[:, 1].tolist()}
    return {"largest": found}


def theorem2(data: DataSet, seed: int) -> Numbers:
    """Measure how far above the optimum Algorithm 2 ends, and how fast it gets to where it ends (Thm. 2).

    ``growing``, ``constant``: relative excess of the objective after a long run with mu <- 1.1 mu and with
    constant mu. ``to_limit``: mu |F - F_end| / F* after 50 and 150 iterations. A rate of o(1/mu) means that
    it goes to zero.
    """
    split = training_split(data, seed, "theorem 2")
    found = {}
    for p in (1, 2):
        problem = _problem(split, p)
        best = solve_newton(problem, tol=1e-9).objective
        run = solve_paper(problem, options=PaperOptions(change=0.0), max_iter=_LONG)
        steady = solve_paper(problem, options=_CONSTANT_MU, max_iter=10_000)
        objective, mu = run.history.objective, run.history.mu
        found[f"p{p}"] = {
            "growing": float(objective[-1] / best - 1),
            "constant": float(abs(steady.objective / best - 1)),
            "to_limit": [float(mu[t] * abs(objective[t] - objective[-1]) / best) for t in (50, 150)],
        }
    return {"runs": found}


def equivalence(data: DataSet, seed: int) -> Numbers:
    """Check that K members at cost C are one SVM at C/K: the ALM against LIBSVM, p = 1.

    ``weights``: relative distance of the mean member from LIBSVM's weights. ``objective``: relative
    difference of F and K^2 times LIBSVM's objective.
    """
    split = training_split(data, seed, "equivalence")
    run = solve_alm(_problem(split, 1), tol=1e-8, max_iter=50_000)
    svm = SVC(kernel="linear", C=COST / _K, tol=1e-10).fit(split.X_train, split.y_train)
    weights = svm.coef_[0]
    hinge = np.maximum(0, 1 - split.y_train * svm.decision_function(split.X_train)).sum()
    single = weights @ weights / 2 + COST / _K * hinge
    return {
        "weights": float(np.linalg.norm(run.weights.mean(axis=1) - weights) / np.linalg.norm(weights)),
        "objective": float(abs(run.objective / (_K**2 * single) - 1)),
    }


def random_starts(data: DataSet, seed: int) -> Numbers:
    """Measure what members that differ are worth: Algorithm 2 from random starts, over a few splits.

    By p: ``cosine``, mean cosine of two members; ``excess`` of the objective over the optimum, relative;
    ``error``, ``optimum_error``, mean test errors in % of that ensemble and of the optimum.
    """
    found = {}
    for p in (1, 2):
        rows = []
        for trial in range(_N_STARTS):
            split = training_split(data, seed, "starts", trial)
            problem = _problem(split, p)
            run = solve_paper(problem, options=PaperOptions(start="random"), random_state=split.seed)
            best = solve_newton(problem, tol=1e-6)
            errors = [_mean_error(split, end.weights, end.intercepts) for end in (run, best)]
            rows.append([_mean_cosine(run.weights), run.objective / best.objective - 1, *errors])
        names = ("cosine", "excess", "error", "optimum_error")
        found[f"p{p}"] = dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
    return {"starts": found}


def _mean_cosine(weights: Floats) -> float:
    unit = weights / np.linalg.norm(weights, axis=0)
    cosines = unit.T @ unit
    return float(cosines[~np.eye(len(cosines), dtype=bool)].mean())


def _mean_error(split: Split, weights: Floats, intercepts: Floats) -> float:
    scores = split.X_test @ weights.mean(axis=1) + intercepts.mean()
    return error_percent(np.where(scores > 0, 1.0, -1.0), split.y_test)


def regularisers(data: DataSet, seed: int) -> Numbers:
    """Measure how members differ with |W|_F^2 or |W|_1 instead of the exclusivity regulariser.

    ``frobenius``: largest distance of a member from the one SVM of the same cost, relative, for members
    started at random, by p. ``l1_width``: how far apart, relative, two optima of the L1-regularised SVM
    (p = 1) can be on these rows along random directions; 0 means that there is only one. ``l1_twins``: the
    same after one feature was given twice.
    """
    split = training_split(data, seed, "regularisers")
    X, y = split.X_train, split.y_train
    found = {}
    for p in (1, 2):
        joint = ERMProblem.build(X, y, n_members=_K, cost=COST, p=p, exclusivity=0.0)
        options = replace(_CONSTANT_MU, start="random")
        members = solve_paper(joint, options=options, max_iter=10_000, random_state=seed).weights
        svm = solve_newton(ERMProblem.build(X, y, cost=COST, p=p), tol=1e-10).weights
        found[f"p{p}"] = float(np.linalg.norm(members - svm, axis=0).max() / np.linalg.norm(svm))
    rng = generator(seed, "directions")
    used = int(np.abs(_l1_svm(X, y)[0]).argmax())
    twins = np.column_stack([X, X[:, used]])
    return {
        "frobenius": found,
        "l1_width": _face_width(X, y, rng.standard_normal((3, X.shape[1]))),
        "l1_twins": _face_width(twins, y, np.eye(X.shape[1] + 1)[[used]]),
    }


def _face_width(X: Floats, y: Floats, directions: Floats) -> float:
    """Return the largest distance between the two ends of the optimal face along each direction, relative."""
    best, value = _l1_svm(X, y)
    widths = [np.linalg.norm(_l1_svm(X, y, d, value)[0] - _l1_svm(X, y, -d, value)[0]) for d in directions]
    return float(max(widths) / np.linalg.norm(best))


def _l1_svm(
    X: Floats, y: Floats, direction: Floats | None = None, optimum: float = 0.0
) -> tuple[Floats, float]:
    """Minimise |w|_1 + C sum_i max(0, 1 - y_i (x_i . w + b)) as a linear programme.

    With a direction, find the point of (nearly) the optimal face that lies farthest along it.
    """
    n_rows, n_features = X.shape
    signed = X * y[:, None]
    # Variables: w+, w-, b, xi.
    cost = np.concatenate([np.ones(2 * n_features), [0.0], np.full(n_rows, COST)])
    rows = np.hstack([-signed, signed, -y[:, None], -np.eye(n_rows)])
    limits = -np.ones(n_rows)
    goal = cost
    if direction is not None:
        goal = np.concatenate([-direction, direction, np.zeros(1 + n_rows)])
        rows, limits = np.vstack([rows, cost]), np.append(limits, optimum * (1 + _FACE))
    bounds = [(0, None)] * (2 * n_features) + [(None, None)] + [(0, None)] * n_rows
    solution = linprog(goal, rows, limits, bounds=bounds, method="highs")
    if solution.x is None:
        raise ValueError(f"The linear programme of the L1-regularised SVM failed: {solution.message}")
    return solution.x[:n_features] - solution.x[n_features : 2 * n_features], float(cost @ solution.x)


def splitting(data: DataSet, seed: int) -> Numbers:
    """Train one SVM on each of ten parts of N rows, and measure how often two of them disagree.

    ``rows``: N, from the paper's 150 up. ``disagreement`` on other rows: the mean over pairs, in %.
    """
    largest = len(data.y) * 9 // 10
    sizes = [min(N_TRAIN, largest), *(size for size in (600, 2400, 9600, 38_400) if size <= largest)]
    rng = generator(seed, f"splitting {data.name}")
    found = []
    for size in sizes:
        rows, rest = _stratified(data.y, size, rng)
        votes = np.zeros(len(rest))
        for k in range(_K):
            part = rows[k::_K]
            result = solve_newton(ERMProblem.build(data.X[part], data.y[part], cost=COST, p=2), tol=1e-6)
            votes += data.X[rest] @ result.weights[:, 0] + result.intercepts[0] > 0
        pairs_apart = votes * (_K - votes)
        found.append(100 * float(np.mean(pairs_apart)) / (_K * (_K - 1) / 2))
    return {"rows": sizes, "disagreement": found}


def _stratified(y: Floats, size: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw ``size`` rows, sorted by class so that every tenth row is a part with both; return the others too.

    Both classes get at least ten rows.
    """
    order = rng.permutation(len(y))
    positive, negative = order[y[order] > 0], order[y[order] < 0]
    share = int(np.clip(round(size * len(positive) / len(y)), _K, size - _K))
    rows = np.concatenate([positive[:share], negative[: size - share]])
    return rows, np.concatenate([positive[share:], negative[size - share :]])


def eps_footnote(data: DataSet, seed: int) -> Numbers:
    """Measure what Algorithm 1 minimises for eps > 0, and where that goes as eps -> 0.

    1/2 |w + eps|_1^2 = 1/2 |w|_1^2 + K eps |w|_1 + const, so the footnote's W step is known exactly too:
    sparsity K eps. For every ``eps``: ``to_claim``, the distance of Algorithm 1's limit from that minimiser,
    and ``to_exact``, from the minimiser without eps.
    """
    point = generator(seed, "eps").standard_normal((max(data.X.shape[1], 50), _K))
    mu, plain = 1.0, ExclusivityRegulariser()
    exact, start = plain.prox(point, mu), np.ones_like(point)
    sizes = [1e-1, 1e-2, 1e-4, 1e-6, 1e-8]
    to_claim, to_exact = [], []
    for eps in sizes:
        limit = plain.reweighted(point, mu, start, eps=eps, max_iter=20_000, tol=1e-13)
        claimed = ExclusivityRegulariser(1.0, _K * eps).prox(point, mu)
        to_claim.append(float(np.abs(limit - claimed).max()))
        to_exact.append(float(np.abs(limit - exact).max()))
    return {"eps": sizes, "to_claim": to_claim, "to_exact": to_exact}


CHECKS: dict[str, Callable[[DataSet, int], Numbers]] = {
    "proposition1": proposition1,
    "theorem1": theorem1,
    "lemma2": lemma2,
    "theorem2": theorem2,
    "equivalence": equivalence,
    "random_starts": random_starts,
    "regularisers": regularisers,
    "splitting": splitting,
    "eps": eps_footnote,
}
"""Every check by name."""


def run_check(data: DataSet, check: str, seed: int) -> Numbers:
    """Return the numbers of one check on one data set."""
    return CHECKS[check](data, seed)
