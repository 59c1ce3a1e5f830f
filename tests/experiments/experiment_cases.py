"""Small data and made-up documents for the tests of the experiments."""

import numpy as np

from exclusivity.experiments.methods import METHODS
from exclusivity.experiments.published import (
    FIGURE_MEMBERS,
    PAPER_METHODS,
    TABLE1,
    TABLE1_DATASETS,
    TABLE2,
)
from exclusivity.experiments.sets import Collection, ExperimentSet


def toy_set(name, n_rows=170, n_features=3, seed=0):
    """Two overlapping clouds."""
    rng = np.random.default_rng([seed, n_rows])
    y = np.where(rng.random(n_rows) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((n_rows, n_features)) + 0.7 * y[:, None]
    return ExperimentSet(name, X / np.abs(X).max(), y, "made up")


def toy_collection(*names, missing=(), **how):
    return Collection(
        {name: toy_set(name, seed=number, **how) for number, name in enumerate(names)},
        {name: f"the data set {name!r} was not found, see https://example.org" for name in missing},
    )


def trial_result(errors, seconds=None):
    """A trial as run_trial gives it."""
    return {
        "errors": errors,
        "seconds": seconds or dict.fromkeys(errors, 0.01),
        "spread": {},
        "agreement": {},
        "excess": {},
        "warnings": [],
    }


def published_trials(shift=0.0, spread=1.0, datasets=TABLE1_DATASETS):
    """Three trials whose means are the paper's, ERM's moved by ``shift`` points."""
    found = {}
    for dataset in datasets:
        means = {
            method: TABLE1[dataset, method].mean + (shift if "ERM" in method else 0.0)
            for method in PAPER_METHODS
        }
        found[dataset] = [
            trial_result({method: mean + step for method, mean in means.items()})
            for step in (-spread, 0.0, spread)
        ]
    return found


def published_times(**changes):
    """One trial with the paper's training times; changed ones by method."""
    seconds = {name: TABLE2.get(name, 0.001) for name in METHODS} | changes
    return {"heart": [trial_result(dict.fromkeys(METHODS, 10.0), seconds)]}


def sweep_document(*, erm=None, matched=None, single=30.0, std=2.0, slope=0.0, spread=0.0):
    """A sweep of five costs; testing and training errors by number of members."""
    costs = [0.05, 1.0, 2.0, 3.0, 4.0]
    erm = erm or {5: 28.0, 10: 26.0, 30: 24.0}
    matched = matched or erm
    curves = []
    for p in (2, 1):
        curves.append(_curve(p, "PSVM", 1, costs, test=single, train=1.0, std=std, slope=slope))
        for k in FIGURE_MEMBERS:
            for system, level in (("ERM", erm[k]), ("optimum", matched[k]), ("SVM", matched[k])):
                curve = _curve(p, system, k, costs, test=level, train=2.0 + k / 10, std=std, slope=slope)
                curves.append({**curve, "spread": spread if system == "ERM" else 0.0})
    return {"dataset": "sonar", "costs": costs, "curves": curves}


def _curve(p, system, members, costs, *, test, train, std, slope):
    curve = {"p": p, "system": system, "members": members, "spread": 0.0}
    for part, level in (("train", train), ("test", test)):
        mean = [level + slope * cost for cost in costs]
        curve[part] = {"mean": mean, "std": [std] * len(costs), "trials": [mean, mean]}
    return curve


def convergence_document(flat_after, rule, dataset="ijcnn1", n_iter=120, gap=0.1):
    """Objectives that fall in a straight line and are flat afterwards."""
    runs = []
    for p in (2, 1):
        for k in FIGURE_MEMBERS:
            values = [max(0.0, 1 - step / flat_after[p]) for step in range(n_iter)]
            runs.append(
                {
                    "p": p,
                    "members": k,
                    "objective": values,
                    "normalised": values,
                    "rule": rule[p],
                    "gap": gap,
                }
            )
    return {"dataset": dataset, "runs": runs}


def scaling_document(slopes, p_ratio=1.0, k_ratio=2.0, dataset="ijcnn1", each=None):
    """Times that grow as told with rows, p and members."""
    rows = [1000, 2000, 4000]
    curves = []
    for p in (1, 2):
        for number, k in enumerate(FIGURE_MEMBERS):
            base = k_ratio**number * (p_ratio if p == 1 else 1.0)
            slope = slopes[number]
            curves.append(
                {
                    "method": f"L{p}-ERM{k}",
                    "seconds": [base * size**slope for size in rows],
                    "iterations": [20.0, 20.0, 20.0],
                    "slope": slope,
                    "iteration_slope": 1.0 if each is None else each,
                    "trials": [],
                }
            )
        curves.append({"method": f"L{p}-PSVM", "seconds": [0.1] * 3, "slope": 0.0, "trials": []})
    return {"dataset": dataset, "rows": rows, "runs": 2, "curves": curves}
