"""Tables 1 and 2 from the raw trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity.experiments.methods import METHODS, certified_name, erm_name
from exclusivity.experiments.published import (
    AVERAGE_RANKS,
    MEMBERS,
    PAPER_METHODS,
    TABLE1,
    TABLE2,
)
from exclusivity.experiments.ranks import critical_difference, friedman, groups, rank_if_added, ranks
from exclusivity.experiments.tasks import Result

Trials = Mapping[str, Sequence[Result]]
"""Data set -> the results of its trials, in order."""

Document = dict[str, Any]

COMPETITORS = ("AdaBoost", "Bagging", "DRM")


def table1(trials: Trials, large: Sequence[Result] = ()) -> Document:
    """Cells, ranks and average ranks; ijcnn1 apart, as the paper keeps it out of the ranks.

    Parameters
    ----------
    trials : mapping
        The sets of Table 1 that were run.
    large : sequence of dict
        Trials on ijcnn1.

    Returns
    -------
    document : dict
        ``cells``: one per (data set, method); ``rank`` is among the paper's ten methods, for other methods
        the rank they would take as an eleventh, and ``rank_all`` is among all. ``average_ranks``,
        ``friedman``, ``critical_difference``, ``groups``: of the ten. ``ijcnn1``: cells without ranks.
        ``diagnostics``: what the trials tell of members and optima.
    """
    cells = [cell for dataset, results in trials.items() for cell in _ranked_cells(dataset, results)]
    average = {
        method: float(np.mean([cell["rank"] for cell in cells if cell["method"] == method]))
        for method in dict.fromkeys(cell["method"] for cell in cells)
    }
    ten = [method for method in PAPER_METHODS if method in average]
    by_cell = {(cell["dataset"], cell["method"]): cell["rank"] for cell in cells}
    matrix = np.array([[by_cell[dataset, method] for method in ten] for dataset in trials])
    test = friedman(matrix) if trials else None
    distance = critical_difference(len(ten), len(trials)) if len(ten) > 1 else None
    return {
        "cells": cells,
        "average_ranks": [
            {"method": name, "rank": rank, "paper_rank": AVERAGE_RANKS.get(name)}
            for name, rank in average.items()
        ],
        "friedman": None if test is None else {"statistic": test.statistic, "p_value": test.p_value},
        "critical_difference": distance,
        "groups": [] if distance is None else groups({name: average[name] for name in ten}, distance),
        "ijcnn1": [_cell("ijcnn1", method, large) for method in _methods(large)],
        "diagnostics": _diagnostics(trials),
    }


def _methods(results: Sequence[Result]) -> list[str]:
    return [name for name in METHODS if results and name in results[0]["errors"]]


def _cell(dataset: str, method: str, results: Sequence[Result]) -> Document:
    errors = [float(result["errors"][method]) for result in results]
    published = TABLE1.get((dataset, method))
    return {
        "dataset": dataset,
        "method": method,
        "mean": float(np.mean(errors)),
        "std": float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0,
        "paper_mean": None if published is None else published.mean,
        "paper_std": None if published is None else published.std,
        "rank": None,
        "paper_rank": None if published is None else published.rank,
        "rank_all": None,
        "trials": errors,
    }


def _ranked_cells(dataset: str, results: Sequence[Result]) -> list[Document]:
    cells = [_cell(dataset, method, results) for method in _methods(results)]
    means = {cell["method"]: cell["mean"] for cell in cells}
    ten = {method: means[method] for method in PAPER_METHODS if method in means}
    among_ten, among_all = ranks(ten), ranks(means)
    for cell in cells:
        name = cell["method"]
        cell["rank"] = among_ten.get(name) or rank_if_added(means[name], list(ten.values()))
        cell["rank_all"] = among_all[name]
    return cells


def _diagnostics(trials: Trials) -> Document:
    """Over all trials: spread of members, agreement with the matched SVM, excess of Algorithm 2."""
    found: Document = {}
    for name, summary in (("spread", max), ("agreement", min), ("excess", max)):
        values: dict[str, list[float]] = {}
        for result in (result for results in trials.values() for result in results):
            for method, value in result[name].items():
                values.setdefault(method, []).append(float(value))
        found[name] = {
            method: {"mean": float(np.mean(series)), "extreme": float(summary(series))}
            for method, series in values.items()
        }
    complaints = [text for results in trials.values() for result in results for text in result["warnings"]]
    found["warnings"] = {text: complaints.count(text) for text in dict.fromkeys(complaints)}
    return found


def table2(trials: Trials) -> Document:
    """Mean CPU seconds of training over all sets and trials, and the competitors' ratios to ERM."""
    series: dict[str, dict[str, list[float]]] = {}
    for dataset, results in trials.items():
        for method in _methods(results):
            seconds = [float(result["seconds"][method]) for result in results]
            series.setdefault(method, {})[dataset] = seconds
    means = {method: _mean(by_set) for method, by_set in series.items()}
    rows = [
        {
            "method": method,
            "seconds": means[method],
            "paper_seconds": TABLE2.get(method),
            "trials": by_set,
        }
        for method, by_set in series.items()
    ]
    return {"rows": rows, "ratios": _ratios(means)}


def _mean(by_set: Mapping[str, Sequence[float]]) -> float:
    return float(np.mean([value for seconds in by_set.values() for value in seconds]))


def _ratios(seconds: Mapping[str, float]) -> list[Document]:
    """Competitor / ERM of the same size, for the paper's algorithm and for the certified optimum."""
    found = []
    for k in MEMBERS:
        for p in (1, 2):
            for competitor in (f"{name}{k}" for name in COMPETITORS):
                for erm in (erm_name(k, p), certified_name(k, p)):
                    published = TABLE2.get(erm)
                    found.append(
                        {
                            "members": k,
                            "p": p,
                            "competitor": competitor,
                            "erm": erm,
                            "ratio": seconds[competitor] / seconds[erm],
                            "paper_ratio": None if published is None else TABLE2[competitor] / published,
                        }
                    )
    return found
