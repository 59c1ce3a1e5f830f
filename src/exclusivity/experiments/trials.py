"""One trial of Tables 1 and 2: every method on one split of one data set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from exclusivity.experiments.methods import METHODS, certified_name, erm_name, matched_name
from exclusivity.experiments.published import MEMBERS
from exclusivity.experiments.splits import Split, generator, random_split
from exclusivity.experiments.tasks import Result, Sets, pick
from exclusivity.problem.arrays import Floats

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def run_trial(
    sets: Sets, *, dataset: str, fingerprint: str, seed: int, trial: int, n_train: int, methods: Sequence[str]
) -> Result:
    """Test errors in %, CPU seconds of training, and what the members of the ensembles look like.

    Returns
    -------
    result : dict
        ``errors``, ``seconds``: by method. ``spread``: largest distance of a member from the mean member,
        relative to the latter, for methods with linear members. ``agreement``: share of test rows on which
        the certified optimum and the SVM of matched cost agree. ``excess``: how far above the optimum the
        paper's algorithm ends, relative. ``warnings``: what the methods complained about.
    """
    data = pick(sets, dataset, fingerprint)
    split = random_split(data.X, data.y, n_train, generator(seed, dataset, trial))
    warm_up(tuple(methods))
    models, seconds, complaints = {}, {}, []
    for name in methods:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            models[name], seconds[name] = timed_fit(METHODS[name].build(split.y_train, split.seed), split)
        complaints += [f"{name}: {warning.message}" for warning in caught]
    predictions = {name: model.predict(split.X_test) for name, model in models.items()}
    return {
        "errors": {name: error_percent(guess, split.y_test) for name, guess in predictions.items()},
        "seconds": seconds,
        "spread": {name: member_spread(model) for name, model in models.items() if has_members(model)},
        "agreement": _agreement(predictions),
        "excess": _excess(models),
        "warnings": complaints,
    }


def timed_fit(model: BaseEstimator, split: Split) -> tuple[Any, float]:
    """The fitted model and the CPU seconds it took; CPU time does not see what else the machine does."""
    started = process_time()
    model.fit(split.X_train, split.y_train)
    return model, process_time() - started


@cache
def warm_up(methods: tuple[str, ...]) -> None:
    """Train everything once per process on next to nothing: first calls import and allocate."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((20, 2)) + y[:, None]
    for name in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            METHODS[name].build(y, 0).fit(X, y)


def error_percent(predicted: Floats, true: Floats) -> float:
    """Share of wrong answers in %."""
    return 100 * float(np.mean(predicted != true))


def has_members(model: BaseEstimator) -> bool:
    """Whether the model is an ensemble of linear members."""
    return hasattr(model, "components_")


def member_spread(model: BaseEstimator) -> float:
    """max_k |w_k - w| / |w| with w the mean member; 0 for equal members."""
    members = np.asarray(model.components_)[0]
    mean = members.mean(axis=0)
    length = np.linalg.norm(mean)
    return float(np.linalg.norm(members - mean, axis=1).max() / length) if length else 0.0


def _pairs(found: Any) -> list[tuple[str, str, str]]:
    """(paper's row, certified row, matched row) wherever all three were trained."""
    triples = [(erm_name(k, p), certified_name(k, p), matched_name(k, p)) for k in MEMBERS for p in (1, 2)]
    return [triple for triple in triples if all(name in found for name in triple)]


def _agreement(predictions: dict[str, Floats]) -> dict[str, float]:
    return {
        erm: float(np.mean(predictions[certified] == predictions[matched]))
        for erm, certified, matched in _pairs(predictions)
    }


def _excess(models: dict[str, Any]) -> dict[str, float]:
    return {
        erm: float(models[erm].objective_[0] / models[certified].objective_[0] - 1)
        for erm, certified, _ in _pairs(models)
    }
