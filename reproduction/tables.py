"""Tables 1 and 2: every system on random splits of every data set, with ranks and training times.

Ranks are compared as J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7,
2006, proposes: Friedman's test, and Nemenyi's critical difference.
"""

from __future__ import annotations

import warnings
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from reproduction.data import DataSet, Floats, generator, random_split
from reproduction.published import AVERAGE_RANKS, LARGE, MEMBERS, N_TRAIN, PAPER_SYSTEMS, TABLE1, TABLE2
from reproduction.systems import SYSTEMS, build, certified_name, erm_name, matched_name

COMPETITORS = ("AdaBoost", "Bagging", "DRM")


def run_trial(data: DataSet, seed: int, trial: int) -> list[dict[str, Any]]:
    """Train and test every system on one split; return one record per system.

    A record has the test ``error`` in %, the CPU ``seconds`` of training, ``warnings`` of the system, for
    ensembles of linear members their ``spread``, and for the paper's ERM the ``excess`` of its objective over
    the optimum, relative, and the ``agreement``: the share of test rows on which that optimum and the SVM of
    matched cost agree.
    """
    split = random_split(data, N_TRAIN, generator(seed, data.name, trial))
    _warm_up()
    records, predictions, objectives = {}, {}, {}
    for name in SYSTEMS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, seconds = timed_fit(build(name, split.y_train, split.seed), split.X_train, split.y_train)
        predictions[name] = model.predict(split.X_test)
        objectives[name] = float(model.objective_[0]) if hasattr(model, "objective_") else np.nan
        records[name] = {
            "dataset": data.name,
            "trial": trial,
            "system": name,
            "error": error_percent(predictions[name], split.y_test),
            "seconds": seconds,
            "spread": member_spread(model),
            "excess": np.nan,
            "agreement": np.nan,
            "warnings": "; ".join(str(warning.message) for warning in caught),
        }
    for k in MEMBERS:
        for p in (1, 2):
            erm, certified, matched = erm_name(k, p), certified_name(k, p), matched_name(k, p)
            records[erm]["excess"] = objectives[erm] / objectives[certified] - 1
            records[erm]["agreement"] = float(np.mean(predictions[certified] == predictions[matched]))
    return list(records.values())


def timed_fit(model: Any, X: Floats, y: Floats) -> tuple[Any, float]:
    """Fit; return the model and the CPU seconds, which do not see what else the machine does."""
    started = process_time()
    model.fit(X, y)
    return model, process_time() - started


@cache
def _warm_up() -> None:
    """Train everything once per process on next to nothing: first calls import and allocate."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((20, 2)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SYSTEMS:
            build(name, y, 0).fit(X, y)


def error_percent(predicted: Floats, true: Floats) -> float:
    """Return the share of wrong answers in %."""
    return 100 * float(np.mean(predicted != true))


def member_spread(model: Any) -> float:
    """Return max_k |w_k - w| / |w| with w the mean member; 0 for equal members, NaN without members."""
    if not hasattr(model, "components_"):
        return np.nan
    members = np.asarray(model.components_)[0]
    mean = members.mean(axis=0)
    length = np.linalg.norm(mean)
    return float(np.linalg.norm(members - mean, axis=1).max() / length) if length else 0.0


def table1(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation (n - 1) and rank of every (data set, system), beside the paper's.

    Ranks are among the paper's ten systems, ties share the mean of their ranks; another system gets the rank
    it would take as an eleventh. ijcnn1 has none, as the paper leaves it out.
    """
    errors = trials.groupby(["dataset", "system"], sort=False)["error"]
    table = errors.agg(["mean", "std"]).fillna({"std": 0.0})
    # Means of trials that are equal in exact arithmetic may differ in their last digit.
    means = table["mean"].round(9)
    for (dataset, system), mean in means.items():
        if dataset != LARGE:
            here = means[dataset]
            others = here[here.index.isin(PAPER_SYSTEMS) & (here.index != system)]
            table.loc[(dataset, system), "rank"] = 1 + (others < mean).sum() + (others == mean).sum() / 2
    published = pd.DataFrame(TABLE1.values(), index=pd.MultiIndex.from_tuples(TABLE1))
    return table.join(published.add_prefix("paper_").reindex(table.index))


def average_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the average rank of every system, beside the paper's."""
    ranks = table.dropna(subset="rank")["rank"].groupby("system", sort=False).mean()
    return pd.DataFrame({"rank": ranks, "paper_rank": ranks.index.map(AVERAGE_RANKS)})


def rank_statistics(table: pd.DataFrame) -> tuple[float, float]:
    """Return the p-value of Friedman's test of the paper's ten systems, and the critical difference."""
    means = table.drop(index=LARGE, level=0, errors="ignore")["mean"].round(9).unstack()
    means = means[list(PAPER_SYSTEMS)]
    p_value = stats.friedmanchisquare(*means.to_numpy().T).pvalue if len(means) > 1 else np.nan
    return float(p_value), critical_difference(len(PAPER_SYSTEMS), len(means))


def critical_difference(n_systems: int, n_sets: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's distance: average ranks closer than this are not significantly different.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1 - alpha, n_systems, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_systems * (n_systems + 1) / (6 * n_sets)))


def table2(trials: pd.DataFrame) -> pd.DataFrame:
    """Return mean CPU seconds of training over all sets and trials of Table 1, beside the paper's."""
    of_table1 = trials[trials["dataset"] != LARGE]
    seconds = of_table1.groupby("system", sort=False)["seconds"].mean()
    return pd.DataFrame({"seconds": seconds, "paper_seconds": seconds.index.map(TABLE2)})


def time_ratios(times: pd.DataFrame) -> pd.DataFrame:
    """Return competitor / ERM of the same size, for the paper's algorithm and for the certified optimum."""
    rows = [
        {
            "erm": erm,
            "competitor": f"{name}{k}",
            "ratio": times["seconds"][f"{name}{k}"] / times["seconds"][erm],
            "paper_ratio": TABLE2[f"{name}{k}"] / TABLE2.get(erm, np.nan),
        }
        for k in MEMBERS
        for p in (1, 2)
        for erm in (erm_name(k, p), certified_name(k, p))
        for name in COMPETITORS
    ]
    return pd.DataFrame(rows)
