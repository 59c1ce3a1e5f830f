"""Ways to choose a partition that were tried: each against random groups, in points.

Run ``python benchmarks/partition_tried.py [method ...]`` (all of them without a name; "finite" compares the
objective at finite exclusivity instead). Binary sets, K = 5 and 9, three splits, C = 0.1, otherwise as in
``partition.py``: balanced certified accuracy minus the mean of ten random partitions, averaged over K and
splits, then over the sets; seconds are processor seconds.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from time import process_time

import numpy as np

from exclusivity import ERMClassifier
from exclusivity.problem import DesignMatrix, ERMProblem, ExclusivityRegulariser, best_intercept
from exclusivity.solvers import ExclusiveOptions, solve_exclusive, solve_newton
from exclusivity.solvers.exclusive import find_partition
from exclusivity.solvers.exclusive.surrogate import PartitionSums
from exclusivity.solvers.exclusive.votes import Ballot
from partition import Data, data_sets, ensemble, measure, random_groups, split

C = 0.1
MEMBERS = (5, 9)
SPLITS = 3
SWEEPS = 3

Partition = np.ndarray
Method = Callable[[ERMProblem, int], Partition]


def as_problem(train: Data, K: int) -> ERMProblem:
    """The binary problem with balanced classes."""
    X, y = train
    labels = np.where(y == np.unique(y)[1], 1.0, -1.0)
    weights = np.where(labels > 0, 0.5 / np.mean(labels > 0), 0.5 / np.mean(labels < 0))
    return ERMProblem.build(X, labels, n_members=K, cost=C, exclusivity=np.inf, weights=weights)


def votes(**options: int) -> Method:
    """The package's search with these options."""

    def method(problem: ERMProblem, seed: int) -> Partition:
        groups = np.arange(problem.design.n_features)
        return find_partition(
            [problem], groups, ExclusiveOptions(**options), np.random.default_rng(seed), None
        )

    return method


def with_swaps(problem: ERMProblem, seed: int) -> Partition:
    """The package's search, then every pair of features of two members that gains by changing places."""
    owners, K = votes()(problem, seed), problem.n_members
    (surrogate,) = PartitionSums.in_memory([[problem]]).surrogates(np.random.default_rng(seed))
    ballot = Ballot(surrogate, [np.flatnonzero(owners == k) for k in range(K)], 3)
    value = ballot.value
    for one, other in combinations(range(len(owners)), 2):
        if owners[one] == owners[other]:
            continue
        before = owners.copy()
        owners[[one, other]] = owners[[other, one]]
        for member in owners[[one, other]]:
            ballot.change(member, np.flatnonzero(owners == member))
        if ballot.value < value - 1e-6:
            value = ballot.value
            continue
        owners = before
        for member in owners[[one, other]]:
            ballot.change(member, np.flatnonzero(owners == member))
    return owners


def losses(loss_of: Callable[[ERMProblem], Callable[[tuple[int, ...]], float]], power: float) -> Method:
    """Single moves that lower sum_k loss_k^power, from random groups."""

    def method(problem: ERMProblem, seed: int) -> Partition:
        rng, K, M = np.random.default_rng(seed), problem.n_members, problem.design.n_features
        owners = rng.permutation(np.arange(M) % K)
        loss = lru_cache(maxsize=None)(loss_of(problem))

        def value(member: int, owned: Partition) -> float:
            return loss(tuple(np.flatnonzero(owned == member).tolist())) ** power

        for _ in range(SWEEPS):
            before = owners.copy()
            for feature in rng.permutation(M):
                source = owners[feature]
                if np.sum(owners == source) > 1:
                    owners = _best_move(owners, feature, K, value)
            if np.array_equal(before, owners):
                break
        return owners

    return method


def _best_move(
    owners: Partition, feature: int, K: int, value: Callable[[int, Partition], float]
) -> Partition:
    source, best, gain = owners[feature], owners, 1e-9
    for receiver in set(range(K)) - {source}:
        after = owners.copy()
        after[feature] = receiver
        change = sum(value(k, owners) - value(k, after) for k in (source, receiver))
        if change > gain:
            best, gain = after, change
    return best


def ridge_loss(problem: ERMProblem) -> Callable[[tuple[int, ...]], float]:
    """1 - R^2 of a ridge regression on some columns, from one Gram matrix."""
    design, s, y = problem.design, problem.weights, problem.labels
    mean = design.mean(s)
    gram, centred = design.gram(s, mean), y - np.average(y, weights=s)
    moments, total = design.transposed_times(s * centred), float(s @ centred**2)

    def loss(columns: tuple[int, ...]) -> float:
        chosen = list(columns)
        system = gram[np.ix_(chosen, chosen)] + np.eye(len(chosen)) / (2 * problem.cost)
        return 1 - float(moments[chosen] @ np.linalg.solve(system, moments[chosen])) / total

    return loss


def hinge_loss(problem: ERMProblem) -> Callable[[tuple[int, ...]], float]:
    """The true objective of the member's SVM, relative to that of no feature at all."""

    def loss(columns: tuple[int, ...]) -> float:
        single = problem.changed(
            design=DesignMatrix(problem.design.X[:, list(columns)]),
            n_members=1,
            regulariser=ExclusivityRegulariser(0.0),
        )
        return solve_newton(single, tol=1e-3).objective / float(problem.cost * problem.weights.sum())

    return loss


def annealed(problem: ERMProblem, gammas: np.ndarray, seed: int, mu: float) -> np.ndarray:
    """W of the ADMM with the exact W step, one step for each of the growing exclusivities."""
    rng, X, y, K = np.random.default_rng(seed), problem.design.X, problem.labels[:, None], problem.n_members
    s, M = problem.weights, X.shape[1]
    mean = problem.design.mean(s)
    system = np.eye(M) + problem.design.gram(s, mean)
    P, b = rng.normal(size=(M, K)) / np.sqrt(M), np.zeros(K)
    W, U, V = P.copy(), np.zeros((M, K)), np.zeros((len(y), K))
    for gamma in gammas:
        W = ExclusivityRegulariser(gamma).prox(P + U, mu)
        shortfall = 1 - y * (X @ P + b)
        E = problem.loss.prox(shortfall + V, problem.cost / mu)
        U, V = U + P - W, V + shortfall - E
        target = y * (1 - E + V)
        centre = s @ target / s.sum()
        P = np.linalg.solve(system, W - U + (X - mean).T @ (s[:, None] * (target - centre)))
        b = centre - mean @ P
    return W


def annealed_admm(problem: ERMProblem, seed: int) -> Partition:
    """Exclusivity grows from 1 to 1000; the largest |W_jk| owns feature j, starved members get one."""
    W = annealed(problem, np.geomspace(1.0, 1000.0, 400), seed, mu=10.0)
    owners = np.abs(W).argmax(axis=1)
    for member in set(range(problem.n_members)) - set(owners.tolist()):
        owners[np.flatnonzero(owners == np.bincount(owners).argmax())[0]] = member
    return owners


def finite_objectives(sets: dict[str, Data]) -> None:
    """F at finite exclusivity, K = 5: block descent from the searched partition, from random ones, ADMM."""
    print(
        "| set | exclusivity | exclusive | from random groups: mean, lowest of 4 | annealed ADMM, best mu |"
    )
    print("|---|---|---|---|---|")
    for name in ("breast cancer", "sonar", "german"):
        single = as_problem(split(sets[name], 0)[0], 5)
        for gamma in (1.5, 10.0, 100.0, 1000.0):
            problem = dataclasses.replace(single, regulariser=ExclusivityRegulariser(gamma))
            ours = solve_exclusive([problem], random_state=0)[0].objective
            starts = [np.random.default_rng(i).permutation(problem.design.n_features) % 5 for i in range(4)]
            fixed = [ExclusiveOptions(restarts=0, partition=start) for start in starts]
            others = [solve_exclusive([problem], options=options)[0].objective for options in fixed]
            gammas = np.append(np.geomspace(1.0, gamma, 300), np.full(300, gamma))
            admm = min(_objective(problem, annealed(problem, gammas, 0, mu)) for mu in (1.0, 10.0, 100.0))
            figures = f"{ours:.2f} | {np.mean(others):.2f}, {min(others):.2f} | {admm:.2f}"
            print(f"| {name} | {gamma:g} | {figures} |", flush=True)


def _objective(problem: ERMProblem, W: np.ndarray) -> float:
    """F with the best intercepts."""
    single = problem.changed(n_members=1, regulariser=ExclusivityRegulariser(0.0))
    intercepts = [best_intercept(single, problem.design.X @ w) for w in W.T]
    return problem.value(W, np.array(intercepts))


METHODS: dict[str, Method] = {
    "dealt by strength, no search": votes(restarts=0),
    "annealed ADMM, gamma 1 to 1000": annealed_admm,
    "sum of ridge losses": losses(ridge_loss, 1),
    "fairness, ridge losses ^ 4": losses(ridge_loss, 4),
    "fairness, true hinge objectives ^ 4": losses(hinge_loss, 4),
    "vote margin, 1 start": votes(restarts=1),
    "vote margin, 2 starts (kept)": votes(),
    "vote margin, 8 starts": votes(restarts=8),
    "vote margin, 2 starts, then swaps": with_swaps,
    "vote margin, radius 0": votes(radius=0),
}
FINITE = {"finite exclusivity 100": 100.0, "finite exclusivity 1000": 1000.0}


def fit(name: str, train: Data, K: int, seed: int) -> tuple[ERMClassifier, float]:
    """The ensemble of a method, and the processor seconds of its partition."""
    start = process_time()
    if name in FINITE:
        clf = ensemble(K, C, seed, None).set_params(exclusivity=FINITE[name]).fit(*train)
        return clf, process_time() - start
    owners = METHODS[name](as_problem(train, K), seed)
    seconds = process_time() - start
    return ensemble(K, C, seed, {"partition": owners, "restarts": 0}).fit(*train), seconds


def main() -> None:
    sets = {name: data for name, data in data_sets().items() if len(np.unique(data[1])) == 2}
    if sys.argv[1:] == ["finite"]:
        finite_objectives(sets)
        return
    cases = []
    for name, data in sets.items():
        for K in MEMBERS:
            for seed in range(SPLITS if data[0].shape[1] >= 2 * K else 0):
                train, test = split(data, seed)
                others = [measure(random_groups(K)(*train, C, 1000 * seed + i), *test) for i in range(10)]
                cases.append((name, K, seed, train, test, np.mean(others, axis=0)))
    print("| method | clean accuracy | r = 1 | r = 2 | r = 3 | lowest set, mean of r = 1, 2, 3 | seconds |")
    print("|---|---|---|---|---|---|---|")
    for method in sys.argv[1:] or [*METHODS, *FINITE]:
        gains: dict[str, list[np.ndarray]] = {name: [] for name in sets}
        seconds = []
        for name, K, seed, train, test, others in cases:
            clf, used = fit(method, train, K, seed)
            gains[name].append(measure(clf, *test) - others)
            seconds.append(used)
        rows = np.array([np.mean(values, axis=0) for values in gains.values()])
        overall, lowest = rows.mean(axis=0), rows[:, 2:].mean(axis=1).min()
        figures = " | ".join(f"{value:+.1f}" for value in (overall[0], *overall[2:], lowest))
        print(f"| {method} | {figures} | {np.mean(seconds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
