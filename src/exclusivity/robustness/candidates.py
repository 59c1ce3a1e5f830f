"""What is tried in a search for members: models, their parameters, and the values of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.classifier import ClassWeight, ERMClassifier, RandomState
from exclusivity.tables import InteractionFeatures, TableEncoder, interactions_for, make_robust_classifier

COSTS = (0.01, 0.1, 1.0, 10.0)
EXCLUSIVITIES = (np.inf,)
_STEP = "interactions"


@dataclass(frozen=True, eq=False)
class Candidate:
    """One combination to try.

    Attributes
    ----------
    record : dict
        What is tried, by the names of the arguments of ``choose_members``.
    model : estimator
        With everything set that comes before the classifier, not fitted.
    last : dict
        Parameters of the classifier, the last step of a pipeline.
    key : tuple
        Candidates of one key differ in ``last`` alone.
    """

    record: dict[str, Any]
    model: BaseEstimator
    last: dict[str, Any]
    key: tuple[Any, ...]

    def complete(self) -> BaseEstimator:
        """The model with all parameters set, not fitted."""
        model = clone(self.model)
        last_step(model).set_params(**self.last)
        return model


def last_step(model: BaseEstimator) -> BaseEstimator:
    """The classifier."""
    return model[-1] if isinstance(model, Pipeline) else model


def candidates(
    model: BaseEstimator,
    n_estimators: Sequence[int],
    C: Sequence[float],
    exclusivity: Sequence[float],
    numeric: Sequence[str] | None,
    interactions: Sequence[bool] | None,
) -> list[Candidate]:
    """All combinations; ``numeric`` and ``interactions`` of None: what the model has."""
    to_try = {"n_estimators": n_estimators, "C": C, "exclusivity": exclusivity, "numeric": numeric or ()}
    if interactions is None:
        return _combined(model, to_try, {}, numeric)
    _check_interactions(model, exclusivity, interactions)
    found = []
    for wanted in interactions:
        kind = _with_interactions(model) if wanted else _without_interactions(model)
        found += _combined(kind, to_try, {"interactions": bool(wanted)}, numeric)
    return found


def _combined(
    model: BaseEstimator,
    to_try: dict[str, Sequence[Any]],
    known: dict[str, Any],
    numeric: Sequence[str] | None,
) -> list[Candidate]:
    """The combinations of one kind of model."""
    names = _tuned(model, to_try["C"], to_try["exclusivity"], numeric)
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    found = []
    for values in product(*(to_try[name] for name in names)):
        record = dict(zip(names, values, strict=True))
        setting = {parameter: record[name] for name, own in names.items() for parameter in own}
        last = {name: value for name, value in setting.items() if name.startswith(prefix)}
        first = {name: value for name, value in setting.items() if name not in last}
        key = (*known.values(), *first.values())
        shorter = {name.removeprefix(prefix): value for name, value in last.items()}
        found.append(Candidate(record | known, clone(model).set_params(**first), shorter, key))
    return found


def _check_interactions(
    model: BaseEstimator, exclusivity: Sequence[float], interactions: Sequence[bool]
) -> None:
    """Refuse models and values that have no interactions."""
    if any(each not in (False, True) for each in interactions):
        raise ValueError(f"interactions must be a sequence of True and False; got {interactions!r}.")
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else []
    encodes = any(isinstance(step, TableEncoder) for step in steps)
    if not encodes or not isinstance(last_step(model), ERMClassifier):
        raise ValueError(
            f"interactions was given, and {type(model).__name__} is no Pipeline of a TableEncoder and an "
            "ERMClassifier; leave interactions out, or give one."
        )
    if any(interactions) and not np.all(np.isinf(exclusivity)):
        raise ValueError(
            "members with interactions own their columns: leave exclusivity out, or interactions=[True]."
        )


def _without_interactions(model: Pipeline) -> Pipeline:
    model = clone(model)
    model.steps = [pair for pair in model.steps if not isinstance(pair[1], InteractionFeatures)]
    return model


def _with_interactions(model: Pipeline) -> Pipeline:
    """The model with a step of interactions; its own where it has one."""
    model = clone(model)
    if not any(isinstance(step, InteractionFeatures) for _, step in model.steps):
        model[-1].set_params(exclusivity=np.inf)
        model.steps.insert(-1, (_STEP, interactions_for(model[-1])))
    return model


def template(
    estimator: BaseEstimator,
    class_weight: ClassWeight,
    random_state: RandomState,
    *,
    encodes: bool,
) -> BaseEstimator:
    """The estimator to tune, one that counts votes; where none is given, with or without an encoder."""
    if estimator is not None:
        model = clone(estimator)
    elif encodes:
        model = make_robust_classifier(class_weight=None)
    else:
        model = make_pipeline(StandardScaler(), ERMClassifier())
    last = last_step(model)
    if isinstance(last, ERMClassifier):
        last.set_params(voting="hard" if last.voting == "soft" else last.voting)
    elif not isinstance(last, FeaturePartitionClassifier):
        raise TypeError(
            "estimator must be an ERMClassifier, a FeaturePartitionClassifier, or a Pipeline that ends in "
            f"one; got {estimator!r}."
        )
    _balance(last, class_weight)
    if last.random_state is None:
        last.set_params(random_state=random_state)
    return model


def _balance(last: BaseEstimator, class_weight: object) -> None:
    """Give the class weight to a classifier, or to the members that take one, unless they have their own."""
    is_partition = isinstance(last, FeaturePartitionClassifier)
    if is_partition and class_weight not in (None, "balanced"):
        raise ValueError(
            "members of a FeaturePartitionClassifier see numbers in place of the classes: class_weight must "
            f"be 'balanced' or None; got {class_weight!r}."
        )
    params = last.get_params()
    names = [name for name in params if name.split("__")[-1] == "class_weight" and params[name] is None]
    last.set_params(**dict.fromkeys(names, class_weight))


def _tuned(
    model: BaseEstimator, C: Sequence[float], exclusivity: Sequence[float], numeric: Sequence[str] | None
) -> dict[str, list[str]]:
    """What is tuned, and the parameters of the model that it is."""
    is_pipeline = isinstance(model, Pipeline)
    last = last_step(model)
    prefix = f"{model.steps[-1][0]}__" if is_pipeline else ""
    found = {name: [f"{prefix}{parameter}"] for name, parameter in _voting(last, C, exclusivity).items()}
    steps = model.steps if is_pipeline else []
    # Who divides the columns has as many members as the classifier that gets them.
    dividing = [name for name, step in steps if isinstance(step, InteractionFeatures)]
    found["n_estimators"] += [f"{name}__voters__n_estimators" for name in dividing]
    if numeric is None:
        return found
    encoders = [name for name, step in steps if isinstance(step, TableEncoder)]
    if len(encoders) != 1:
        raise ValueError(
            f"numeric was given, and {type(model).__name__} has {len(encoders)} TableEncoder steps, not one; "
            "leave numeric out, or give a Pipeline with one."
        )
    return found | {"numeric": [f"{encoders[0]}__numeric"]}


def _voting(last: BaseEstimator, C: Sequence[float], exclusivity: Sequence[float]) -> dict[str, str]:
    """What is tuned of the classifier, and its parameters."""
    if isinstance(last, ERMClassifier):
        return {"n_estimators": "n_estimators", "C": "C", "exclusivity": "exclusivity"}
    if exclusivity is not EXCLUSIVITIES:
        raise ValueError(
            "members of a FeaturePartitionClassifier never share features: leave exclusivity out."
        )
    inner = [name for name in last.get_params() if name.startswith("estimator__") and name.endswith("__C")]
    if len(inner) == 1:
        return {"n_estimators": "n_estimators", "C": inner[0]}
    if C is not COSTS:
        raise ValueError(
            f"C was given, and {last.estimator!r} has {len(inner)} parameters of that name, not one; leave C "
            "out, or tune them by a search of their own inside the FeaturePartitionClassifier."
        )
    return {"n_estimators": "n_estimators"}


def members_to_try(r: int, n_columns: int) -> list[int]:
    """Numbers of members for r broken features."""
    if 2 * r + 1 > n_columns:
        raise ValueError(
            f"To survive {r} broken features a vote needs {2 * r + 1} members on different ones, and X has "
            f"{n_columns} columns; choose a smaller r."
        )
    return sorted({min(n, n_columns) for n in (2 * r + 1, 3 * r + 2, 5 * r + 4)})
