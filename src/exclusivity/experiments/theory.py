"""The paper's statements as measurements: each check gives numbers, the verdicts are drawn elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sklearn.svm import SVC

from exclusivity.experiments.footnotes import eps_footnote, regularisers, splitting
from exclusivity.experiments.published import COST, N_TRAIN
from exclusivity.experiments.sets import ExperimentSet
from exclusivity.experiments.splits import Split, generator, random_split
from exclusivity.experiments.tasks import Result, Sets, pick
from exclusivity.experiments.trials import error_percent
from exclusivity.problem import ERMProblem, ExclusivityRegulariser, weighted_total
from exclusivity.problem.arrays import Floats
from exclusivity.solvers import Algorithm2, PaperOptions, make_system, solve_alm, solve_newton, solve_paper

_K = 10
# mu = 1.1^300 = 2.6e12: past the point where nothing moves any more.
_LONG = 300
_TIGHT = 1e-9
_N_STARTS = 5
# With constant mu the objective settles; this is rounding, for objectives of the order of 100.
_NO_CHANGE = 1e-12


def run_check(sets: Sets, *, check: str, dataset: str, fingerprint: str, seed: int) -> Result:
    """The numbers of one check on one data set."""
    return CHECKS[check](pick(sets, dataset, fingerprint), seed)


def training_rows(data: ExperimentSet, seed: int, name: str) -> Split:
    """The paper's 150 rows, or half of a smaller set."""
    n_train = min(N_TRAIN, len(data.y) // 2)
    return random_split(data.X, data.y, n_train, generator(seed, f"{name} {data.name}"))


def proposition1(data: ExperimentSet, seed: int) -> Result:
    """Prop. 1: the loss of the mean member against the mean loss of the members.

    Members differ only when the algorithm starts at random and is stopped, so that is what is measured; equal
    members would make it an equation. ``slack``: (mean loss - loss of the mean) / mean loss, by p.
    """
    split = training_rows(data, seed, "proposition 1")
    slack = {}
    for p in (1, 2):
        problem = _problem(split, p)
        run = solve_paper(problem, options=PaperOptions(start="random"), random_state=seed)
        scores = problem.scores(run.weights, run.intercepts)
        losses = [_loss(problem, scores[:, k]) for k in range(_K)]
        slack[str(p)] = float(1 - _loss(problem, scores.mean(axis=1)) / np.mean(losses))
    return {"slack": slack}


def _loss(problem: ERMProblem, scores: Floats) -> float:
    return weighted_total(problem.weights, problem.loss.value(1 - problem.labels * scores))


def theorem1(data: ExperimentSet, seed: int) -> Result:
    """Thm. 1: Algorithm 1 against the exact W step, on random rows; ``error`` after so many inner steps.

    ``from_ones`` is the paper's start, ``from_zeros`` one with half of its entries zero.
    """
    rng = generator(seed, "theorem 1")
    point = rng.standard_normal((max(data.shape[1], 50), _K))
    regulariser, mu = ExclusivityRegulariser(), 1.0
    exact = regulariser.prox(point, mu)
    ones = np.ones_like(point)
    zeros = ones * (np.arange(_K) % 2)
    found: Result = {"steps": [10, 100, 1000, 3000, 10_000]}
    for name, start in (("from_ones", ones), ("from_zeros", zeros)):
        found[name] = [
            float(
                np.abs(regulariser.reweighted(point, mu, start, eps=1e-12, max_iter=q, tol=0.0) - exact).max()
            )
            for q in found["steps"]
        ]
    return found


def lemma2(data: ExperimentSet, seed: int) -> Result:
    """Lemma 2: the largest multiplier in the first and in the second half of a long run, by p."""
    split = training_rows(data, seed, "lemma 2")
    found = {}
    for p in (1, 2):
        problem = _problem(split, p)
        algorithm = Algorithm2(problem, PaperOptions(), make_system(problem), np.random.default_rng(seed))
        largest = []
        for iteration in range(1, _LONG + 1):
            algorithm.iterate(iteration)
            largest.append([float(np.abs(algorithm.Z).max()), float(np.abs(algorithm.Q).max())])
        sizes = np.array(largest)
        first, second = sizes[: _LONG // 2].max(axis=0), sizes[_LONG // 2 :].max(axis=0)
        found[str(p)] = {
            "Z": [float(first[0]), float(second[0])],
            "Q": [float(first[1]), float(second[1])],
            "mu": float(algorithm.mu),
        }
    return {"largest": found}


def theorem2(data: ExperimentSet, seed: int) -> Result:
    """Thm. 2: how far above the optimum Algorithm 2 ends, and how fast it gets to where it ends.

    ``growing``, ``constant``: relative excess of the objective after a long run with mu <- 1.1 mu and with
    constant mu. ``to_optimum``, ``to_limit``: mu (F - F*) / F* and mu |F - F_end| / F* after 50 and 150
    iterations. A rate of o(1/mu) means that these go to zero.
    """
    split = training_rows(data, seed, "theorem 2")
    found = {}
    for p in (1, 2):
        problem = _problem(split, p)
        best = solve_newton(problem, tol=_TIGHT).objective
        run = solve_paper(problem, options=PaperOptions(change=0.0), max_iter=_LONG)
        steady = solve_paper(
            problem,
            options=PaperOptions(change=_NO_CHANGE, rho=1.0, mu0=COST, w_step="exact"),
            max_iter=10_000,
        )
        objective, mu = run.history.objective, run.history.mu
        found[str(p)] = {
            "growing": float(objective[-1] / best - 1),
            "constant": float(abs(steady.objective / best - 1)),
            "to_optimum": [float(mu[t] * (objective[t] / best - 1)) for t in (50, 150)],
            "to_limit": [float(mu[t] * abs(objective[t] - objective[-1]) / best) for t in (50, 150)],
        }
    return {"runs": found}


def equivalence(data: ExperimentSet, seed: int) -> Result:
    """The equivalence theorem without using it: all members by the ALM against LIBSVM at cost C/K, p = 1.

    ``weights``: relative distance of the mean member from LIBSVM's weights. ``objective``: relative
    difference of F and K^2 times LIBSVM's objective.
    """
    split = training_rows(data, seed, "equivalence")
    problem = _problem(split, 1)
    run = solve_alm(problem, tol=1e-8, max_iter=50_000)
    svm = SVC(kernel="linear", C=COST / _K, tol=1e-10).fit(split.X_train, split.y_train)
    weights = svm.coef_[0]
    hinge = np.maximum(0, 1 - split.y_train * svm.decision_function(split.X_train)).sum()
    single = weights @ weights / 2 + COST / _K * hinge
    return {
        "weights": float(np.linalg.norm(run.weights.mean(axis=1) - weights) / np.linalg.norm(weights)),
        "objective": float(abs(run.objective / (_K**2 * single) - 1)),
        "gap": float(run.gap),
        "members": _K,
    }


def random_starts(data: ExperimentSet, seed: int) -> Result:
    """Diversity by not converging: Algorithm 2 from random starts, over a few splits.

    ``cosine``: mean cosine of two members. ``excess``: relative excess of the objective over the optimum.
    ``error``, ``optimum_error``: mean test errors in % of that ensemble and of the optimum, by p.
    """
    found = {}
    for p in (1, 2):
        rows = []
        for trial in range(_N_STARTS):
            n_train = min(N_TRAIN, len(data.y) // 2)
            split = random_split(data.X, data.y, n_train, generator(seed, f"starts {data.name}", trial))
            problem = _problem(split, p)
            run = solve_paper(problem, options=PaperOptions(start="random"), random_state=split.seed)
            best = solve_newton(problem, tol=1e-6)
            rows.append(
                [
                    _mean_cosine(run.weights),
                    run.objective / best.objective - 1,
                    _mean_error(split, run.weights, run.intercepts),
                    _mean_error(split, best.weights, best.intercepts),
                ]
            )
        means = np.mean(rows, axis=0)
        found[str(p)] = dict(
            zip(("cosine", "excess", "error", "optimum_error"), map(float, means), strict=True)
        )
    return {"starts": found}


def _mean_cosine(weights: Floats) -> float:
    unit = weights / np.linalg.norm(weights, axis=0)
    cosines = unit.T @ unit
    return float(cosines[~np.eye(len(cosines), dtype=bool)].mean())


def _mean_error(split: Split, weights: Floats, intercepts: Floats) -> float:
    scores = split.X_test @ weights.mean(axis=1) + intercepts.mean()
    return error_percent(np.where(scores > 0, 1.0, -1.0), split.y_test)


def _problem(split: Split, p: int) -> ERMProblem:
    return ERMProblem.build(split.X_train, split.y_train, n_members=_K, cost=COST, p=p)


CHECKS: Mapping[str, Callable[[ExperimentSet, int], Result]] = {
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
