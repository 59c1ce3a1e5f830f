"""What the paper says in passing: other regularisers, splitting the data, the small constant eps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from exclusivity.diversity import mean_over_pairs, pairwise_diversity
from exclusivity.experiments.published import COST, N_TRAIN
from exclusivity.experiments.sets import ExperimentSet
from exclusivity.experiments.splits import generator, random_split
from exclusivity.experiments.tasks import Result
from exclusivity.problem import ERMProblem, ExclusivityRegulariser
from exclusivity.problem.arrays import Floats
from exclusivity.solvers import PaperOptions, solve_newton, solve_paper

_K = 10
# The optimal face is explored within this factor of the optimum: LP solvers are accurate to about 1e-9.
_FACE = 1e-7
_NO_CHANGE = 1e-12


def regularisers(data: ExperimentSet, seed: int) -> Result:
    """Whether members differ with |W|_F^2 or |W|_1 instead of the exclusivity regulariser.

    ``frobenius``: largest distance of a member from the one SVM of the same cost, relative, for members
    started at random, by p. ``l1_width``: how far apart, relative, two optima of the L1-regularised SVM
    (p = 1) can be on these rows along random directions; 0 means that there is only one. ``l1_twins``: the
    same after one feature was given twice.
    """
    n_train = min(N_TRAIN, len(data.y) // 2)
    split = random_split(data.X, data.y, n_train, generator(seed, f"regularisers {data.name}"))
    found = {}
    for p in (1, 2):
        options = PaperOptions(start="random", change=_NO_CHANGE, rho=1.0, mu0=COST, w_step="exact")
        joint = ERMProblem.build(split.X_train, split.y_train, n_members=_K, cost=COST, p=p, exclusivity=0.0)
        members = solve_paper(joint, options=options, max_iter=10_000, random_state=seed).weights
        single = ERMProblem.build(split.X_train, split.y_train, cost=COST, p=p)
        svm = solve_newton(single, tol=1e-10).weights[:, 0]
        found[str(p)] = float(np.linalg.norm(members - svm[:, None], axis=0).max() / np.linalg.norm(svm))
    rng = generator(seed, "directions")
    used = int(np.abs(_l1_svm(split.X_train, split.y_train)[0]).argmax())
    twins = np.column_stack([split.X_train, split.X_train[:, used]])
    return {
        "frobenius": found,
        "l1_width": _face_width(split.X_train, split.y_train, rng.standard_normal((3, data.shape[1]))),
        "l1_twins": _face_width(twins, split.y_train, np.eye(data.shape[1] + 1)[[used]]),
    }


def _face_width(X: Floats, y: Floats, directions: Floats) -> float:
    """The largest distance between the two ends of the optimal face along each direction, relative."""
    best, value = _l1_svm(X, y)
    widths = [np.linalg.norm(_l1_svm(X, y, d, value)[0] - _l1_svm(X, y, -d, value)[0]) for d in directions]
    return float(max(widths) / np.linalg.norm(best))


def _l1_svm(
    X: Floats, y: Floats, direction: Floats | None = None, optimum: float = 0.0
) -> tuple[Floats, float]:
    """Min |w|_1 + C sum_i max(0, 1 - y_i (x_i . w + b)) as a linear programme.

    With a direction, the point of (nearly) the optimal face that lies farthest along it.
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


def splitting(data: ExperimentSet, seed: int) -> Result:
    """One SVM on each of ten parts of N rows: how often two of them disagree on other rows.

    ``rows``: N, from the paper's 150 up. ``disagreement``: the mean over pairs, in %.
    """
    largest = len(data.y) * 9 // 10
    sizes = [min(N_TRAIN, largest), *(size for size in (600, 2400, 9600, 38_400) if size <= largest)]
    rng = generator(seed, f"splitting {data.name}")
    found = []
    for size in sizes:
        rows, rest = _stratified(data.y, size, rng)
        members = []
        for k in range(_K):
            part = rows[k::_K]
            problem = ERMProblem.build(data.X[part], data.y[part], cost=COST, p=2)
            result = solve_newton(problem, tol=1e-6)
            members.append(data.X[rest] @ result.weights[:, 0] + result.intercepts[0] > 0)
        predictions = np.column_stack(members).astype(int)
        labels = (data.y[rest] > 0).astype(int)
        found.append(100 * mean_over_pairs(pairwise_diversity(predictions, labels)))
    return {"rows": sizes, "disagreement": found}


def _stratified(y: Floats, size: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """``size`` random rows, sorted by class so that every tenth row is a part with both, and the others."""
    order = rng.permutation(len(y))
    positive, negative = order[y[order] > 0], order[y[order] < 0]
    share = int(np.clip(round(size * len(positive) / len(y)), _K, size - _K))
    rows = np.concatenate([positive[:share], negative[: size - share]])
    return rows, np.concatenate([positive[share:], negative[size - share :]])


def eps_footnote(data: ExperimentSet, seed: int) -> Result:
    """What Algorithm 1 minimises for eps > 0, and where that goes as eps -> 0.

    1/2 |w + eps|_1^2 = 1/2 |w|_1^2 + K eps |w|_1 + const, so the footnote's W step is known exactly too:
    sparsity K eps. For every ``eps``: ``to_claim``, the distance of Algorithm 1's limit from that minimiser,
    and ``to_exact``, from the minimiser without eps.
    """
    point = generator(seed, "eps").standard_normal((max(data.shape[1], 50), _K))
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
