"""``erm demo``: a robust additive model and an ERM, on data that ships with scikit-learn."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from exclusivity.cli import output

if TYPE_CHECKING:
    from exclusivity import RobustAdditiveClassifier
    from exclusivity._typing import Floats, Ints

SUMMARY = "certify predictions against broken columns, and compare an ERM with one SVM"
DESCRIPTION = (
    "Trains a robust additive model on half of the breast cancer data that ships with scikit-learn, and "
    "prints how many predictions provably survive broken columns; then the exclusivity regularised machine, "
    "by the paper's algorithm and to its certified optimum, next to one SVM of the same cost C and one of "
    "the matched cost C / members."
)

_MEMBERS, _COST = 10, 2.0


ARGUMENTS = ()


def run(_args: argparse.Namespace) -> None:
    """Train, print the table, explain it."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from exclusivity import ERMClassifier, RobustAdditiveClassifier

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    _certify(RobustAdditiveClassifier(max_broken=2).fit(X_train, y_train), X_test, y_test)
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    matched = _COST / _MEMBERS
    models = {
        f"ERM, {_MEMBERS} members, the paper's algorithm": ERMClassifier(_MEMBERS, C=_COST, solver="paper"),
        f"ERM, {_MEMBERS} members, certified": ERMClassifier(_MEMBERS, C=_COST),
        f"SVM at cost C = {_COST:g}": ERMClassifier(1, C=_COST),
        f"SVM at cost C/{_MEMBERS} = {matched:g}": ERMClassifier(1, C=matched),
    }
    rows = []
    for name, model in models.items():
        started = perf_counter()
        model.set_params(tol=1e-6).fit(X_train, y_train)
        seconds = perf_counter() - started
        error, objective, gap = 1 - model.score(X_test, y_test), model.objective_[0], model.dual_gap_[0]
        figures = f"{error:.1%}", f"{objective:.6g}", f"{gap:.1e}", f"{model.n_iter_[0]}"
        rows.append([name, *figures, f"{1000 * seconds:.0f} ms"])
    header = ["model", "test error", "objective", "duality gap", "iterations", "time"]
    output.print_table(header, rows)
    paper, certified, _, svm = models.values()
    same = int((certified.predict(X_test) == svm.predict(X_test)).sum())
    print(
        f"\nThe certified ERM is the SVM at cost C/{_MEMBERS}: {same} of {len(X_test)} test predictions "
        f"agree, objectives differ by the factor {certified.objective_[0] / svm.objective_[0]:.4f} = "
        f"{_MEMBERS}^2.\nThe paper's algorithm ends "
        f"{paper.objective_[0] / certified.objective_[0] - 1:.1%} above the optimum. The duality gap bounds "
        "that distance without knowing the optimum."
    )


def _certify(model: RobustAdditiveClassifier, X: Floats, y: Ints) -> None:
    """Print the share of rows that are right whatever some columns contain."""
    radii, right = model.certify(X), model.predict(X) == y
    header = ["broken columns, of 30", "right whatever they contain"]
    output.print_table(header, [[str(r), f"{(right & (radii >= r)).mean():.1%}"] for r in range(5)])
    print(
        f"\nRobustAdditiveClassifier(max_broken=2) on {len(X)} test rows: whatever so many columns "
        "contain, these predictions stay.\n"
        f"Half of all predictions survive {np.median(radii):.0f} columns or more.\n\n"
        "The paper: members that are kept apart by the exclusivity regulariser.\n"
    )
