"""``erm demo``: a robust additive model while columns break, and an ERM, on data of scikit-learn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from exclusivity.cli import output
from exclusivity.cli.files import file_errors

SUMMARY = "break two columns of a real table and see which predictions stand"
DESCRIPTION = (
    "Trains a robust additive model on half of the breast cancer data that ships with scikit-learn, breaks "
    "two columns of the other half, names them, and says which predictions provably stand. Then shows that "
    "the exclusivity regularised machine of the paper is one SVM of cost C / members. Writes a picture and "
    "an HTML report into the folder erm-demo (the picture needs matplotlib)."
)
ARGUMENTS = ()

_FOLDER = Path("erm-demo")
_EMPTY, _UNIT = "worst texture", "worst area"
_MEMBERS, _COST = 10, 2.0


def run(_args: argparse.Namespace) -> None:
    """Train, break, prove; then compare an ERM with one SVM."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    from exclusivity import RobustAdditiveClassifier
    from exclusivity.inspection import model_report

    data = load_breast_cancer()
    names = list(data.feature_names)
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, data.target, test_size=0.5, random_state=0, stratify=data.target
    )
    model = RobustAdditiveClassifier(max_broken=3).fit(X_train, y_train)
    print(
        f"Breast cancer, 30 measurements, {len(X_test)} test rows: RobustAdditiveClassifier(max_broken=3)\n"
    )
    radii, right = model.certify(X_test), model.predict(X_test) == y_test
    header = ["broken columns, of 30", "right whatever they contain"]
    output.print_table(header, [[str(r), f"{(right & (radii >= r)).mean():.1%}"] for r in range(5)])
    _break(model, X_test, y_test, names)
    ensemble, svm = _compare(X_train, X_test, y_train)
    with file_errors(str(_FOLDER)):
        _FOLDER.mkdir(exist_ok=True)
    report = model_report(model, X_test, y_test, feature_names=names, title="Report of erm demo")
    output.write_whole(str(_FOLDER / "report.html"), [report.encode()])
    print(f"\nReport: {_FOLDER / 'report.html'}")
    try:
        import matplotlib as mpl
    except ImportError:
        print("Picture: needs matplotlib (pip install 'exclusivity[plot]').")
        return
    mpl.use("Agg")
    _draw(model, X_test, y_test, ensemble, svm)
    print(f"Picture: {_FOLDER / 'picture.png'}")


def _break(model: Any, X: Any, y: Any, names: list[str]) -> None:
    """Empty a column, change the unit of another one, and print what is found and what stands."""
    broken = X.copy()
    broken[:, names.index(_EMPTY)] = np.nan
    broken[:, names.index(_UNIT)] *= 1000
    found = model.suspects(broken).flagged
    stands, right = model.stands(broken, found), model.predict(broken) == y
    print(
        f"\nNow {_EMPTY!r} arrives empty and {_UNIT!r} in another unit (x 1000).\n"
        f"Columns that look broken:  {', '.join(names[int(name[1:])] for name in found)}\n"
        f"Predictions that stand:    {stands.mean():.1%} provably, whatever these columns should contain;\n"
        f"                           {right[stands].mean():.1%} of them are right"
    )


def _compare(X: Any, X_test: Any, y: Any) -> tuple[Any, Any]:
    """Print that an ERM is one SVM, and return both."""
    from sklearn.preprocessing import StandardScaler

    from exclusivity import ERMClassifier

    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    matched = _COST / _MEMBERS
    ensemble = ERMClassifier(_MEMBERS, C=_COST, tol=1e-6).fit(X, y)
    svm = ERMClassifier(1, C=matched, tol=1e-6).fit(X, y)
    paper = ERMClassifier(_MEMBERS, C=_COST, solver="paper").fit(X, y)
    same = int((ensemble.predict(X_test) == svm.predict(X_test)).sum())
    print(
        f"\nThe paper, X. Guo's exclusivity regularised machine: {_MEMBERS} SVMs that are kept apart, "
        f"C = {_COST:g}.\nAt its optimum (duality gap {ensemble.dual_gap_[0]:.0e}) it is one SVM of cost "
        f"C/{_MEMBERS} = {matched:g}:\n"
        f"{same} of {len(X_test)} test predictions agree, and the objectives differ by the factor "
        f"{ensemble.objective_[0] / svm.objective_[0]:.4f} = {_MEMBERS}^2.\n"
        f"The paper's own algorithm ends {paper.objective_[0] / ensemble.objective_[0] - 1:.1%} above that "
        "optimum.\nEverything else of the paper, its tables included: make reproduce."
    )
    return ensemble, svm


def _draw(model: Any, X: Any, y: Any, ensemble: Any, svm: Any) -> None:
    """Draw certified accuracy, and the weights of the ERM against those of the SVM."""
    import matplotlib.pyplot as plt

    from exclusivity.inspection import CertifiedAccuracyDisplay

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    CertifiedAccuracyDisplay.from_estimator(model, X, y, ax=left)
    left.set_title("robust additive model")
    right.axline((0, 0), slope=1, color="0.6", linewidth=1)
    right.plot(svm.coef_[0], ensemble.coef_[0], "o")
    right.set(
        title=f"ERM of {_MEMBERS} members = one SVM at C/{_MEMBERS}",
        xlabel=f"weights of one SVM, C = {_COST / _MEMBERS:g}",
        ylabel=f"mean weights of the ERM, C = {_COST:g}",
    )
    figure.savefig(_FOLDER / "picture.png", dpi=120)
    plt.close(figure)
