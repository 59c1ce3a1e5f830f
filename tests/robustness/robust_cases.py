"""Data sets and classifiers that the tests of robustness share."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from exclusivity import ERMClassifier
from exclusivity.io import load_dataset
from exclusivity.voting._changes import radius_of
from exclusivity.voting.preferences import MemberPreferences
from exclusivity.voting.rules import RULES

PLAIN = {"breast cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}
BINARY = ["german", "diabetes", "liver", "heart", "ionosphere", "sonar", "splice", "breast cancer"]
SETS = [*BINARY, "digits", "iris", "wine"]


@cache
def split(name):
    """Standardised training rows, labels, test rows and labels."""
    if name in PLAIN:
        X, y = PLAIN[name](return_X_y=True)
    else:
        table = load_dataset(name)
        X, y = table.data, table.target
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return X[::2], y[::2], X[1::2], y[1::2]


@cache
def fitted(name, n_estimators=9, exclusivity=np.inf, n_groups=None, **parameters):
    """An exclusive ensemble on the training rows; never more members than features."""
    X, y, _, _ = split(name)
    groups = None if n_groups is None else tuple(np.arange(X.shape[1]) % n_groups)
    clf = ERMClassifier(
        min(n_estimators, n_groups or X.shape[1]),
        C=0.1,
        exclusivity=exclusivity,
        voting="hard",
        feature_groups=groups,
        random_state=0,
        tol=1e-2,
        # The search among ten classes takes seconds, and any partition will do to test certificates.
        solver_options={"restarts": 0} if name == "digits" else None,
        **parameters,
    )
    return clf.fit(X, y)


def certified_radius(votes, supports, n_classes):
    """As ``certify`` counts hard votes, and the same if every class is counted to the end."""
    quick = RULES["hard"].min_changes(MemberPreferences(votes), supports, n_classes, all_classes=False)
    radius = radius_of(quick, supports.shape[1])
    assert np.array_equal(
        radius,
        radius_of(
            RULES["hard"].min_changes(MemberPreferences(votes), supports, n_classes), supports.shape[1]
        ),
    )
    return radius
