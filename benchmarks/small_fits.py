"""Small fits against LinearSVC: 150 rows of the paper's sets, and the search for C on 500 x 20.

    EXCLUSIVITY_DATA=DIR OPENBLAS_NUM_THREADS=1 python benchmarks/small_fits.py

Processor time of one process, medians of interleaved repeats. A single fit: ours to a certified 1e-4 and a
certified 1e-6, LinearSVC's fastest way (solver, tolerance, size of the constant feature) to a true excess of
as much, in the objective with a free intercept, at its own intercept or the best one for its weights. A
search: ten costs, five folds; GridSearchCV over either classifier at its defaults, and ERMClassifierCV over
the same costs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.benchmark import Solution
from exclusivity.benchmark.generators import overlapping_rows
from exclusivity.benchmark.measures import Judge
from exclusivity.benchmark.workloads import paper_rows
from exclusivity.datasets import DatasetNotFoundError

SETS = ("sonar", "german", "australian", "heart", "ionosphere", "diabetes", "liver", "splice")
LOSS = {1: "hinge", 2: "squared_hinge"}
LEVELS = (1e-4, 1e-6)
COST = 0.2
COSTS = np.logspace(-3, 1.5, 10)


def interleaved(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median processor seconds of every action, one call of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            start = time.process_time()
            action()
            times[name].append(time.process_time() - start)
    return {name: median(spent) for name, spent in times.items()}


def rivals(p: int) -> dict[str, LinearSVC]:
    return {
        f"dual={dual} tol={tol:g} scaling={scaling}": LinearSVC(
            C=COST,
            loss=LOSS[p],
            dual=dual,
            tol=tol,
            intercept_scaling=scaling,
            max_iter=1_000_000,
            random_state=0,
        )
        for dual in ((True,) if p == 1 else (True, False))
        for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
        for scaling in (1, 10)
    }


def single_fits(name: str, p: int, repeats: int) -> list[tuple[float, float, float]]:
    """(level, our seconds, LinearSVC's) where LinearSVC gets there."""
    X, y = paper_rows(name)
    judge = Judge(X, y, cost=COST, p=p)
    best = judge.value(Solution.of_estimator(ERMClassifier(1, C=COST, p=p, tol=1e-9).fit(X, y)))["objective"]
    excess, actions = {}, {}
    for words, rival in rivals(p).items():
        excess[words] = judge.value(Solution.of_estimator(rival.fit(X, y)))["objective"] / best - 1
        if excess[words] <= max(LEVELS):
            actions[words] = partial(rival.fit, X, y)
    for level in LEVELS:
        actions[f"{level}"] = partial(ERMClassifier(1, C=COST, p=p, tol=level).fit, X, y)
    seconds = interleaved(actions, repeats)
    found = []
    for level in LEVELS:
        near = [seconds[words] for words in excess if words in seconds and excess[words] <= level]
        if near:
            found.append((level, seconds[f"{level}"], min(near)))
    return found


def searches(p: int, repeats: int) -> dict[str, float]:
    X, y = overlapping_rows(500, 20)
    ours = GridSearchCV(ERMClassifier(1, p=p), {"C": COSTS}, cv=5)
    theirs = GridSearchCV(LinearSVC(loss=LOSS[p], dual=p == 1, max_iter=100_000), {"C": COSTS}, cv=5)
    shared = ERMClassifierCV(1, p=p, Cs=COSTS, cv=5)
    actions = {"ours": ours, "LinearSVC": theirs, "ERMClassifierCV": shared}
    return interleaved({name: partial(model.fit, X, y) for name, model in actions.items()}, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    for p in (1, 2):
        ratios = []
        for name in SETS:
            try:
                found = single_fits(name, p, repeats)
            except DatasetNotFoundError as error:
                print(f"without {name}: {error}")
                continue
            ratios += [ours / theirs for _, ours, theirs in found]
            cells = (
                f"to {level:g}: {1e3 * ours:.2f} / {1e3 * theirs:.2f} ms" for level, ours, theirs in found
            )
            print(f"p = {p}, {name}: {', '.join(cells) or 'no LinearSVC gets there'}")
        print(f"p = {p}: median ratio {median(ratios):.2f}, worst {max(ratios):.2f}, of {len(ratios)}")
    for p in (1, 2):
        seconds = searches(p, max(repeats // 3, 3))
        told = ", ".join(f"{name} {1e3 * spent:.0f} ms" for name, spent in seconds.items())
        theirs = seconds["LinearSVC"]
        print(
            f"p = {p}, ten costs, five folds: {told}; GridSearchCV takes {seconds['ours'] / theirs:.2f} of "
            f"LinearSVC's time, ERMClassifierCV is {theirs / seconds['ERMClassifierCV']:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
