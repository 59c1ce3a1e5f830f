"""Draw the picture of the README: accuracy while an adversary breaks columns, and what is proven.

    pip install -e '.[plot]' lightgbm interpret-core
    python scripts/readme_picture.py [docs/images/broken-columns.png]

Half of the breast cancer data train, the others are attacked: in each row the adversary picks the columns and
replaces their cells, one after the other, by those of nine quantiles of the training rows that hurt most (a
greedy search: the true worst case can only be lower). The solid line is what the robust additive model
proves for any values whatsoever.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from exclusivity import RobustAdditiveClassifier

plt.switch_backend("Agg")
MOST = 5
STYLES = {"robust additive": "#0072b2", "random forest": "#009e73", "LightGBM": "#e69f00"}
STYLES |= {"EBM": "#cc79a7", "one SVM": "#777777"}


def models() -> dict[str, Any]:
    """Return the models; those that are not installed are left out."""
    found: dict[str, Any] = {
        "robust additive": RobustAdditiveClassifier(max_broken=3),
        "random forest": RandomForestClassifier(500, random_state=0),
        "one SVM": make_pipeline(StandardScaler(), SVC(kernel="linear", C=0.1)),
    }
    try:
        from interpret.glassbox import ExplainableBoostingClassifier  # noqa: PLC0415 -- optional peer
        from lightgbm import LGBMClassifier  # noqa: PLC0415 -- optional peer
    except ImportError as error:
        sys.stdout.write(f"without {error.name}" + "\n")
        return found
    found["LightGBM"] = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
    found["EBM"] = ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0)
    return found


def scores_of(model: Any, X: Any) -> Any:
    """Return the score of the second class; it is predicted where that is positive."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1] - 0.5


def worst_case(model: Any, X: Any, y: Any, values: Any) -> list[float]:
    """Return the accuracy after 0, 1, ... greedy changes of a cell in every row."""
    X, n_columns = X.copy(), X.shape[1]
    sign = np.where(y == 1, 1.0, -1.0)
    accuracies, rows = [], np.arange(len(X))
    for _ in range(MOST + 1):
        accuracies.append(float(np.mean((scores_of(model, X) > 0) == (y == 1))))
        trials = np.repeat(X[:, None, :], n_columns * len(values), axis=1)
        columns = np.repeat(np.arange(n_columns), len(values))
        trials[:, np.arange(len(columns)), columns] = values.T.ravel()
        leads = sign[:, None] * scores_of(model, trials.reshape(-1, n_columns)).reshape(len(X), -1)
        X = trials[rows, leads.argmin(axis=1)]
    return accuracies


def main(path: str = "docs/images/broken-columns.png") -> None:
    """Train, attack, draw; print the figures."""
    warnings.simplefilter("ignore")
    X, y = load_breast_cancer(return_X_y=True)
    X, rows, y, truth = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    values = np.quantile(X, np.linspace(0, 1, 9), axis=0)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    broken = np.arange(MOST + 1)
    for name, model in models().items():
        model.fit(X, y)
        curve = worst_case(model, rows, truth, values)
        sys.stdout.write(f"{name}: attacked {np.round(curve, 3)}" + "\n")
        axes.plot(broken, curve, "--", marker="o", color=STYLES[name], label=f"{name}, attacked")
        if hasattr(model, "certify"):
            radii, right = model.certify(rows), model.predict(rows) == truth
            proven = [float(np.mean(right & (radii >= r))) for r in broken]
            sys.stdout.write(f"{name}: proven   {np.round(proven, 3)}" + "\n")
            axes.plot(broken, proven, color=STYLES[name], linewidth=3, label=f"{name}, proven for any values")
    axes.set(xlabel="broken columns of 30, chosen by an adversary", ylabel="accuracy", ylim=(0, 1))
    axes.set_title("breast cancer: accuracy while columns break")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:])
