"""Write the golden files of the model format: small models with the scores that they must give for ever.

    python scripts/golden_models.py          # write those that are missing; never touch one that is there

Each ``name.erm`` comes with ``name.json``: rows, with the labels and scores of the model when it was new.
A change of the format gets a new version number and new files beside these, which must keep loading.
"""

# ruff: noqa: T201 -- a command talks to its user

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.io import save_model
from exclusivity.tables import TableEncoder

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "persistence" / "golden"

# Members that differ: a random start, ended early.
DIVERSE: dict[str, Any] = {
    "solver": "paper",
    "solver_options": {"start": "random", "change": 1e6},
    "random_state": 0,
}


def rows(n_features: int = 4, n_rows: int = 30) -> Any:
    """Rows that every model of a width is trained on."""
    return np.random.default_rng(n_features).standard_normal((n_rows, n_features)).round(3)


def classes(n_classes: int, X: Any) -> Any:
    """Class numbers that the first columns decide."""
    edges = np.quantile(X[:, 0] + X[:, 1], np.linspace(0, 1, n_classes + 1)[1:-1])
    return np.digitize(X[:, 0] + X[:, 1], edges)


def binary_soft() -> Any:
    """Fit the default classifier."""
    X = rows()
    return ERMClassifier(3).fit(X, classes(2, X))


def binary_hard_float32() -> Any:
    """Members that differ, votes, single precision, truth values as labels."""
    X = rows().astype(np.float32)
    return ERMClassifier(4, voting="hard", **DIVERSE).fit(X, classes(2, X) == 1)


def ovr_text() -> Any:
    """Python strings as labels, weights of classes, names of features, a weak regulariser."""
    import pandas as pd  # noqa: PLC0415 -- one model needs it

    X = rows()
    y = np.array(["ebb", "flow", "größer"], dtype=object)[classes(3, X)]
    model = ERMClassifier(2, exclusivity=0.5, class_weight={"ebb": 2.0, "flow": 1}, sparsity=0.01)
    return model.fit(pd.DataFrame(X, columns=["a", "b", "c", "day"]), y)


def ovo_hard() -> Any:
    """Pairs of classes and votes; labels as text of a fixed width."""
    X = rows()
    y = np.array(["a", "bb", "ccc", "dddd"])[classes(4, X)]
    return ERMClassifier(3, voting="hard", multi_class="ovo", **DIVERSE).fit(X, y)


def runoff() -> Any:
    """Two rounds of votes among classes, members on features of their own."""
    X = rows()
    model = ERMClassifier(3, voting="runoff", exclusivity=np.inf, random_state=0)
    return model.fit(X, classes(4, X))


def standard_pipeline() -> Any:
    """Fit the usual pipeline; floating point labels."""
    X = rows()
    return make_pipeline(StandardScaler(), ERMClassifier(5, p=1)).fit(X, classes(2, X) * 2.0 - 1)


def scalers_pipeline() -> Any:
    """All other scalers, one after the other, and a step that does nothing."""
    X = rows()
    steps = (
        MinMaxScaler((-1, 1), clip=True),
        "passthrough",
        MaxAbsScaler(),
        RobustScaler(with_centering=False),
    )
    return make_pipeline(*steps, ERMClassifier(2, multi_class="ovo", max_iter=50)).fit(X, classes(3, X))


def exclusive_groups() -> Any:
    """Members that compete for groups of features, and more of them than there are groups."""
    X = rows(6)
    groups = ["left", "left", "right", "top", "top", "right"]
    model = ERMClassifier(4, exclusivity=np.inf, voting="hard", feature_groups=groups, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, classes(3, X))


def search() -> Any:
    """C chosen by cross-validation, in a pipeline."""
    X = rows()
    return make_pipeline(StandardScaler(), ERMClassifierCV(2, Cs=[0.1, 1, 10], cv=3)).fit(X, classes(2, X))


def target_column() -> Any:
    """Fit a pipeline that knows the column of its classes, as ``erm fit`` writes it."""
    model = standard_pipeline()
    model.target_column_ = "größe"
    return model


def table() -> Any:
    """Fit a table of numbers, categories and dates with missing values and unused columns."""
    import pandas as pd  # noqa: PLC0415 -- one model needs it

    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(60).round(2),
            "colour": rng.choice(["red", "größer", "blue"], 60),
            "visits": rng.poisson(1, 60),
            "constant": 1.0,
            "code": rng.integers(0, 3, 60),
            "day": [f"2024-0{month}-1{day} 0{day}:30" for month, day in rng.integers(1, 9, (60, 2))],
            "seen": np.where(rng.random(60) < 0.5, "once", None),
        }
    )
    frame.loc[:2, "colour"] = ["rare", None, None]
    frame.loc[5, "size"] = np.nan
    y = np.where(np.abs(frame["size"].fillna(0)) + (frame["colour"] == "red") > 0.9, "large", "small")
    voters = ERMClassifier(3, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0)
    steps = [("encoder", TableEncoder(categorical=["code"])), ("classifier", voters)]
    return Pipeline(steps).fit(frame, y)


def logistic() -> Any:
    """Probabilities of several classes, with weights between bounds."""
    X = rows()
    return ERMClassifier(3, loss="logistic", coef_bounds=(-0.5, 2.0)).fit(X, classes(3, X))


def monotonic() -> Any:
    """Scores that rise with one column and fall with another; a loss that is not a power of the hinge."""
    X = rows()
    model = ERMClassifier(2, loss="smooth_hinge", monotonic_cst=[1, 0, -1, 0])
    return make_pipeline(StandardScaler(), model).fit(X, classes(2, X))


def rows_of(model: Any) -> list[list[Any]]:
    """Five rows that the model takes."""
    X = np.random.default_rng(1).standard_normal((5, model.n_features_in_)).round(3).tolist()
    if "colour" in getattr(model, "feature_names_in_", []):
        texts = ["red", "rare", None, "unseen", "größer"]
        days = ["2024-01-01 05:00", "2023-12-31", None, "2024-05-05 23:59", "2030-01-01"]
        for row, colour, day, code in zip(X, texts, days, [0, 1, 2, None, 7], strict=True):
            row[1], row[4], row[5], row[6] = colour, code, day, "once" if code else None
    return X


MODELS: dict[str, Callable[[], Any]] = {
    "v1-binary-soft": binary_soft,
    "v1-binary-hard-float32": binary_hard_float32,
    "v1-ovr-text": ovr_text,
    "v1-ovo-hard": ovo_hard,
    "v1-exclusive-groups": exclusive_groups,
    "v1-search": search,
    "v1-standard-pipeline": standard_pipeline,
    "v1-scalers-pipeline": scalers_pipeline,
    "v1-target-column": target_column,
    "v1-table": table,
    "v1-runoff": runoff,
    "v1-logistic": logistic,
    "v1-monotonic": monotonic,
}


def main() -> None:
    """Write what is missing."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        path = GOLDEN / f"{name}.erm"
        if path.exists():
            continue
        model = make()
        X = rows_of(model)
        named = getattr(model, "feature_names_in_", None)
        shown = X if named is None else _frame(X, named)
        expected = {
            "rows": X,
            "labels": model.predict(shown).tolist(),
            "scores": np.asarray(model.decision_function(shown), dtype=float).tolist(),
        }
        save_model(model, path)
        path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size} bytes")


def _frame(X: Any, names: Any) -> Any:
    import pandas as pd  # noqa: PLC0415 -- one model needs it

    return pd.DataFrame(X, columns=names)


if __name__ == "__main__":
    main()
