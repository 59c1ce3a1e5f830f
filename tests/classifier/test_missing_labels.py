"""Labels that are missing, in the words of every library: one clear error."""

import numpy as np
import pytest

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.partition import FeaturePartitionClassifier

X = np.random.default_rng(0).normal(size=(40, 3))
NAMES = np.where(X[:, 0] > 0, "a", "b").astype(object)


def fit(labels):
    return ERMClassifier(3).fit(X, labels)


def fit_cv(labels):
    return ERMClassifierCV(3, cv=2).fit(X, labels)


def path(labels):
    return erm_path(X, labels, n_estimators=3)


def fit_partition(labels):
    return FeaturePartitionClassifier(ERMClassifier(1), n_estimators=3).fit(X, labels)


def holed(values, hole):
    values = values.copy()
    values[5] = hole
    return values


@pytest.mark.parametrize("train", [fit, fit_cv, path, fit_partition])
@pytest.mark.parametrize("kind", ["string[pyarrow]", "string[python]", "str", "category", "object", "Int64"])
def test_missing_in_a_series(train, kind):
    pandas = pytest.importorskip("pandas")
    if kind.endswith("[pyarrow]"):
        pytest.importorskip("pyarrow")
    labels = pandas.Series((X[:, 0] > 0).astype(int) if kind == "Int64" else NAMES).astype(kind)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        train(holed(labels, None))


@pytest.mark.parametrize("hole", [None, np.nan, np.datetime64("NaT", "us")])
def test_missing_among_objects(hole):
    with pytest.raises(ValueError, match=r"Input y contains NaN: the label of row 5 is missing \("):
        fit(holed(NAMES, hole))
    with pytest.raises(ValueError, match="the label of row 5 is missing"):
        fit(holed(NAMES, hole).reshape(-1, 1))


@pytest.mark.parametrize("train", [fit, fit_cv, path, fit_partition])
def test_missing_dates(train):
    days = np.where(X[:, 0] > 0, np.datetime64("2024-01-01"), np.datetime64("2025-01-01"))
    with pytest.raises(ValueError, match="the label of row 5 is missing"):
        train(holed(days, np.datetime64("NaT")))


def test_missing_in_polars():
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="the label of row 5 is missing"):
        fit(polars.Series(holed(NAMES, None).tolist()))


def test_complete_columns_are_taken():
    pandas = pytest.importorskip("pandas")
    for kind in ("string", "category", "object"):
        assert fit(pandas.Series(NAMES).astype(kind)).classes_.tolist() == ["a", "b"]
