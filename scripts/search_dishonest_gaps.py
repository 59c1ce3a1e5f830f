"""Look for problems whose reported gap is smaller than the truth; none may be found.

    python scripts/search_dishonest_gaps.py --problems 10000 --seed 1

Every problem is small and drawn at random: shape, scales over up to eight decades, features up to a million
spreads from zero, sample weights, p, C, penalties, dense or CSR; two of the regimes that can solve it. Each
answer is then judged in extended precision (``numpy.longdouble``) against the best point that anybody found:
both regimes, the same rows centred, and Newton steps in extended precision from there. That point exists, so
its objective is no less than the optimum: an answer whose excess over it is larger than its gap is
dishonest, whatever the accuracy of the reference.

Prints the dishonest problems (exit code 1), and how many answers reached their tolerance; how far it came,
to the error stream: a search that is stopped has still seen those seeds.
"""

# ruff: noqa: T201 -- a command talks to its user

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import NewtonOptions, SolverResult, solve_alm, solve_newton

POWERS = (1.0, 1.0001, 1.005, 1.01, 1.1, 1.5, 2.0, 2.0, 3.0, 6.0)
TOLERANCES = (1e-4, 1e-6, 1e-9)
MAX_ITER = 60
POLISH_STEPS = 8
PROGRESS_EVERY = 100
# The reference itself is off by a few units of extended precision.
EXTENDED = 64 * float(np.finfo(np.longdouble).eps)

Extended = np.ndarray[Any, np.dtype[np.longdouble]]


@dataclass(frozen=True, eq=False)
class Case:
    """One random problem with the tolerance to reach."""

    problem: ERMProblem
    rows: Extended
    tol: float
    regimes: tuple[str, ...]

    @property
    def costs(self) -> Extended:
        """The cost of every row of one member's SVM."""
        problem = self.problem
        share = np.longdouble(problem.cost) / np.longdouble(problem.kappa)
        return np.asarray(problem.weights.astype(np.longdouble) * share)

    def objective(self, weights: Extended, intercept: np.longdouble, side: int) -> np.longdouble:
        """Return the objective of one member's SVM (all are equal), in extended precision.

        With ``side`` 1 no less than the truth, with -1 no more: even these numbers are not exact.
        """
        problem = self.problem
        error = EXTENDED * (np.abs(self.rows) @ np.abs(weights) + np.abs(intercept) + 1)
        missed = 1 - problem.labels * (self.rows @ weights + intercept) + side * error
        missed = np.maximum(missed, np.longdouble(0))
        penalty = np.longdouble(problem.regulariser.sparsity) / np.longdouble(problem.kappa)
        value = weights @ weights / 2 + penalty * np.abs(weights).sum()
        return value + self.costs @ missed ** np.longdouble(problem.loss.p)


def random_case(seed: int) -> Case:
    """Make a problem of any kind, always the same for a seed."""
    rng = np.random.default_rng(seed)
    n_rows, n_features = int(rng.integers(2, 40)), int(rng.integers(1, 30))
    X = rng.normal(size=(n_rows, n_features))
    X *= rng.random(X.shape) < rng.choice([0.2, 1.0, 1.0])
    y = np.where(
        X @ rng.normal(size=n_features) + rng.choice([0, 0.5, 5]) * rng.normal(size=n_rows) > 0, 1.0, -1.0
    )
    y[:2] = 1, -1
    X += rng.choice([0, 0, 1, 1e2, 1e4, 1e6]) * rng.normal(size=n_features)
    X *= 10 ** (rng.choice([0, 0, 4]) * rng.uniform(-1, 1, size=n_features) + rng.choice([0, 0, -6, 6]))
    problem = ERMProblem.build(
        sparse.csr_array(X) if rng.random() < 0.4 else X,
        y,
        n_members=int(rng.integers(1, 4)),
        cost=float(10 ** rng.uniform(-6, 9)),
        p=float(rng.choice(POWERS)),
        exclusivity=float(rng.choice([0, 0.5, 1])),
        sparsity=float(rng.choice([0, 0, 0, 0.1])),
        weights=10 ** rng.uniform(-2, 2, size=n_rows) if rng.random() < 0.3 else None,
        fit_intercept=bool(rng.random() < 0.85),
    )
    possible = ["interior", "alm"]
    if not problem.regulariser.sparsity:
        possible += ["iterative"] if problem.loss.p == 1 else ["iterative", "semismooth"]
    regimes = tuple(str(name) for name in rng.choice(possible, size=2, replace=False))
    return Case(problem, X.astype(np.longdouble), float(rng.choice(TOLERANCES)), regimes)


def answers(case: Case) -> Iterator[tuple[str, SolverResult]]:
    """Solve the problem by two of the regimes that can."""
    for regime in case.regimes:
        with np.errstate(all="ignore"):
            if regime == "alm":
                yield regime, solve_alm(case.problem, tol=case.tol, max_iter=MAX_ITER)
            else:
                options = NewtonOptions(regime)  # type: ignore[arg-type]
                yield regime, solve_newton(case.problem, tol=case.tol, max_iter=MAX_ITER, options=options)


def best_known(case: Case, found: list[SolverResult]) -> np.longdouble:
    """Return the smallest objective found by any method."""
    starts = [
        (result.weights.mean(axis=1).astype(np.longdouble), np.longdouble(result.intercepts.mean()))
        for result in found
    ]
    starts.append((np.zeros(case.rows.shape[1], np.longdouble), np.longdouble(0)))
    starts += [_solved_otherwise(case)] if case.problem.fit_intercept else []
    with np.errstate(all="ignore"):
        values = [case.objective(*start, 1) for start in starts]
        values = [value for value in values if np.isfinite(value)]
        # A little longer weights have margins that are a little larger, for next to nothing.
        for w, b in starts:
            values += [
                case.objective(w * (1 + t), b * (1 + t), 1)
                for t in np.longdouble(10.0) ** np.arange(-18, -5, 2)
            ]
        order = np.argsort([case.objective(*start, 1) for start in starts])
        values += [_polished(case, *starts[place]) for place in order[:2]]
    return min(value for value in values if np.isfinite(value))


def _solved_otherwise(case: Case) -> tuple[Extended, np.longdouble]:
    """Centre the rows; the intercept makes up for the shift in extended precision."""
    problem = case.problem
    means = case.rows.mean(axis=0)
    moved = ERMProblem.build(
        np.ascontiguousarray((case.rows - means).astype(float)),
        problem.labels,
        cost=problem.cost / problem.kappa,
        p=problem.loss.p,
        sparsity=float(problem.regulariser.sparsity) / problem.kappa,
        weights=problem.weights,
    )
    result = solve_newton(moved, tol=1e-13, max_iter=MAX_ITER)
    weights = result.weights[:, 0].astype(np.longdouble)
    return weights, np.longdouble(result.intercepts[0]) - means @ weights


def _polished(case: Case, weights: Extended, intercept: np.longdouble) -> np.longdouble:
    """Return the smallest objective after Newton steps with gradients in extended precision."""
    problem, p = case.problem, case.problem.loss.p
    best = case.objective(weights, intercept, 1)
    if p == 1 or problem.regulariser.sparsity:
        return best
    bordered = np.column_stack([case.rows, np.ones(len(case.rows), np.longdouble)])
    if not problem.fit_intercept:
        bordered[:, -1] = 0
    ridge = np.append(np.ones(len(weights)), np.longdouble(0))
    point = np.append(weights, intercept)
    for _ in range(POLISH_STEPS):
        missed = np.maximum(1 - problem.labels * (bordered @ point), np.longdouble(0))
        slope = case.costs * p * missed ** np.longdouble(p - 1)
        bend = np.where(missed > 0, case.costs * p * (p - 1) * missed ** np.longdouble(p - 2), 0)
        gradient = ridge * point - bordered.T @ (problem.labels * slope)
        curved = np.diag(ridge) + (bordered.T * bend) @ bordered
        scale = 1 / np.sqrt(np.maximum(np.diagonal(curved), np.finfo(float).tiny))
        system = (curved * scale * scale[:, None]).astype(float)
        if not np.isfinite(system).all():
            break
        right = (scale * gradient).astype(float)
        step = scale * np.linalg.lstsq(system, right, rcond=1e-15)[0]
        lengths = np.longdouble(2.0) ** -np.arange(0, 12, 2)
        values = [case.objective((point - t * step)[:-1], (point - t * step)[-1], 1) for t in lengths]
        place = int(np.nanargmin(values)) if np.isfinite(values).any() else 0
        if not values[place] < best:
            break
        best, point = values[place], point - lengths[place] * step
    return best


def judge(seed: int) -> tuple[list[str], list[tuple[str, float, float]]]:
    """Return what is wrong with the answers to a problem; and regime, gap and tolerance of each."""
    case = random_case(seed)
    found = list(answers(case))
    best = best_known(case, [result for _, result in found])
    wrong, seen = [], []
    for regime, result in found:
        point = result.weights.mean(axis=1).astype(np.longdouble), np.longdouble(result.intercepts.mean())
        own = case.objective(*point, -1)
        excess = float((own - best) / own) if own > 0 else 0.0
        seen.append((regime, result.gap, case.tol))
        if not excess <= result.gap + EXTENDED:
            p, shape = case.problem.loss.p, case.rows.shape
            wrong.append(
                f"seed {seed}, {regime}, p={p:g}, {shape}: gap {result.gap:.3g}, excess {excess:.3g}"
            )
    return wrong, seen


def main() -> int:
    """Search, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the others follow")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong, reached, asked = [], Counter[str](), Counter[str]()
    for seed in range(arguments.seed, arguments.seed + arguments.problems):
        found, seen = judge(seed)
        for line in found:
            print(line, flush=True)
        wrong += found
        for regime, gap, tol in seen:
            asked[f"{regime} {tol:g}"] += 1
            reached[f"{regime} {tol:g}"] += gap <= tol
        if (done := seed + 1 - arguments.seed) % PROGRESS_EVERY == 0:
            said = f"{done} problems (seeds {arguments.seed} to {seed}), {len(wrong)} dishonest"
            print(said, file=sys.stderr, flush=True)
    for name in sorted(asked):
        print(f"{name}: {reached[name]} of {asked[name]} reached their tolerance")
    print(f"{arguments.problems} problems, {sum(asked.values())} answers, {len(wrong)} dishonest")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
