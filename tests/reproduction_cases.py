"""Small data sets and made-up results for the tests of the reproduction."""

import numpy as np
import pandas as pd

from reproduction.data import DataSet
from reproduction.published import FIGURE_MEMBERS, PAPER_SYSTEMS, TABLE1, TABLE1_DATASETS, TABLE2
from reproduction.systems import SYSTEMS, erm_name


def toy_set(name, n_rows=170, n_features=3, seed=0):
    """Two overlapping clouds."""
    rng = np.random.default_rng([seed, n_rows])
    y = np.where(rng.random(n_rows) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((n_rows, n_features)) + 0.7 * y[:, None]
    return DataSet(name, X / np.abs(X).max(), y)


def trials_frame(errors, seconds=None):
    """Trials from {data set: [{system: error} for every trial]}, and seconds by system."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "trial": trial,
            "system": system,
            "error": error,
            "seconds": 0.01 if seconds is None else seconds[system],
            "spread": 0.0,
            "excess": 0.01,
            "agreement": 1.0,
            "warnings": "",
        }
        for dataset, results in errors.items()
        for trial, result in enumerate(results)
        for system, error in result.items()
    )


def published_trials(shift=0.0, spread=1.0, datasets=TABLE1_DATASETS):
    """Three trials whose means are the paper's, ERM's moved by ``shift`` points."""
    means = {
        dataset: {name: TABLE1[dataset, name].mean + shift * ("ERM" in name) for name in PAPER_SYSTEMS}
        for dataset in datasets
    }
    return trials_frame(
        {
            dataset: [{name: mean + step for name, mean in row.items()} for step in (-spread, 0.0, spread)]
            for dataset, row in means.items()
        }
    )


def published_times(**changes):
    """One trial with the paper's training times; changed ones by system."""
    seconds = {name: TABLE2.get(name, 0.001) for name in SYSTEMS} | changes
    return trials_frame({"heart": [dict.fromkeys(SYSTEMS, 10.0)]}, seconds)


def sweep_frame(*, erm=None, matched=None, single=30.0, std=2.0, slope=0.0, spread=0.0):
    """Two trials at five costs; testing errors by number of members, rising with ``slope``."""
    erm = erm or {5: 28.0, 10: 26.0, 30: 24.0}
    matched = matched or erm
    levels = {("PSVM", 1): (1.0, single)}
    for k in FIGURE_MEMBERS:
        levels["ERM", k] = 2.0 + k / 10, erm[k]
        levels["optimum", k] = levels["SVM", k] = 2.0 + k / 10, matched[k]
    return pd.DataFrame(
        {
            "trial": trial,
            "p": p,
            "system": system,
            "members": members,
            "lambda": cost,
            "train": train + slope * cost,
            "test": test + slope * cost + step,
            "spread": spread if system == "ERM" else 0.0,
        }
        for trial, step in enumerate((-std / np.sqrt(2), std / np.sqrt(2)))
        for p in (2, 1)
        for (system, members), (train, test) in levels.items()
        for cost in (0.05, 1.0, 2.0, 3.0, 4.0)
    )


def convergence_frame(flat_after, change, n_iter=120):
    """Objectives that fall in a straight line by ``change`` per step and are flat afterwards."""
    return pd.DataFrame(
        {
            "p": p,
            "members": k,
            "iteration": step + 1,
            "objective": change[p] * max(0.0, flat_after[p] - step),
            "gap": 0.1,
        }
        for p in (2, 1)
        for k in FIGURE_MEMBERS
        for step in range(n_iter)
    )


def scaling_frame(slopes, p_ratio=1.0, k_ratio=2.0, iteration_slope=0.0):
    """Times that grow as told with rows, p and members; iterations that grow with rows."""
    times = {
        erm_name(k, p): (k_ratio**number * (p_ratio if p == 1 else 1.0), slopes[number])
        for p in (1, 2)
        for number, k in enumerate(FIGURE_MEMBERS)
    }
    times |= {"L1-PSVM": (0.1, 3.0), "L2-PSVM": (0.1, 3.0)}
    return pd.DataFrame(
        {
            "rows": rows,
            "trial": trial,
            "system": system,
            "seconds": base * rows**slope,
            "iterations": 1e3 * rows**iteration_slope,
        }
        for trial in range(2)
        for rows in (1000, 2000, 4000)
        for system, (base, slope) in times.items()
    )
