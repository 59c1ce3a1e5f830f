"""What is no number in X, and parameters of the wrong kind: errors that say what to do."""

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import attack, corrupt
from exclusivity.tables import TableEncoder

NUMBERS, Y = np.array([[0.0], [0.5], [1.0], [2.0]]), [0, 0, 1, 1]
ROWS = {
    "NaN": np.array([[0.0], [np.nan], [1.0], [2.0]]),
    "None": np.array([[0.0], [None], [1.0], [2.0]], dtype=object),
    "NA": pd.DataFrame({"a": pd.array([0, None, 1, 2], dtype="Int64")}),
    "NA among objects": np.array([[0.0], [pd.NA], [1.0], [2.0]], dtype=object),
    "words": np.array([["red"], ["green"], ["red"], ["blue"]], dtype=object),
    "categories": pd.DataFrame({"a": pd.Categorical(["red", "green", "red", "blue"])}),
    "dates": np.array([[dt.date(2024, 1, 1)]] * 4, dtype=object),
    "dates and numbers": pd.DataFrame({"a": pd.to_datetime(["2024-01-01"] * 4), "b": [0.0, 1.0, 2.0, 3.0]}),
}


def partition(**parameters):
    return FeaturePartitionClassifier(LogisticRegression(), 1, **parameters)


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize(
    "use",
    [
        lambda rows: ERMClassifier().fit(rows, Y),
        lambda rows: ERMClassifierCV(cv=2).fit(rows, Y),
        lambda rows: erm_path(rows, Y),
        lambda rows: partition().fit(rows, Y),
    ],
    ids=["fit", "search", "path", "partition"],
)
def test_the_way_out_is_named(use, rows):
    with pytest.raises((TypeError, ValueError), match=r"exclusivity.tables.TableEncoder takes") as caught:
        use(rows)
    assert "RobustAdditiveClassifier" in str(caught.value)
    assert "HistGradient" not in str(caught.value)
    assert "sklearn" not in str(caught.value)
    assert len(str(caught.value)) < 450


@pytest.mark.parametrize("model", [ERMClassifier(), partition()], ids=["erm", "partition"])
def test_the_way_out_is_named_in_predict(model):
    model.fit(NUMBERS, Y)
    for name in ("NaN", "words"):
        with pytest.raises(
            ValueError, match=r"(NaN|'red')\. \w+ takes numbers; exclusivity.tables.TableEncoder"
        ):
            model.predict(ROWS[name])


def test_other_errors_are_left_alone():
    for X, y in ((np.empty((0, 1)), []), (NUMBERS, [0, 1, np.nan, 1]), (NUMBERS + np.inf, Y)):
        with pytest.raises(ValueError, match=r"0 sample|Input y contains NaN|infinity") as caught:
            ERMClassifier().fit(X, y)
        assert "TableEncoder" not in str(caught.value)


LINE = np.arange(400.0)[:, None]


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "count"), [(400, 51, 1), (400, 50, 0), (15, 15, 1), (10, 10, 0), (100, 60, 0)]
)
def test_targets_that_are_hardly_classes(n_rows, n_classes, count):
    """One warning at the caller's line; of more classes than half of the rows scikit-learn itself warns."""
    X, y = LINE[:n_rows], np.arange(n_rows) % n_classes
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ERMClassifier(tol=0.5, max_iter=1).fit(X, y)
    ours = [
        one for one in caught if f"y has {n_classes} different values in {n_rows} rows" in str(one.message)
    ]
    assert [one.filename for one in ours] == [__file__] * count
    assert any("greater than 50%" in str(one.message) for one in caught) == (n_classes == 60)


def test_a_target_is_doubted_once_behind_an_encoder():
    model = make_pipeline(TableEncoder(), ERMClassifier(tol=0.5, max_iter=1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(LINE, np.arange(400) % 51)
    assert sum("Are they classes" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("n_jobs", ["a", 0, 1.5, True, [2]])
@pytest.mark.parametrize(
    "use",
    [
        lambda n_jobs: ERMClassifier(n_jobs=n_jobs).fit(NUMBERS, Y),
        lambda n_jobs: ERMClassifierCV(n_jobs=n_jobs, cv=2).fit(NUMBERS, Y),
        lambda n_jobs: erm_path(NUMBERS, Y, n_jobs=n_jobs),
        lambda n_jobs: partition(n_jobs=n_jobs).fit(NUMBERS, Y),
    ],
    ids=["fit", "search", "path", "partition"],
)
def test_jobs_are_a_number(use, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer"):
        use(n_jobs)


def test_jobs_of_numpy():
    assert ERMClassifier(n_jobs=np.int64(1)).fit(NUMBERS, Y).score(NUMBERS, Y) == 1


@pytest.mark.parametrize("groups", [{"a": "money", "z": 1}, {"a"}, "a", 3])
@pytest.mark.parametrize(
    "use",
    [
        lambda groups: ERMClassifier(2, exclusivity=np.inf, feature_groups=groups).fit(NUMBERS, Y),
        lambda groups: ERMClassifierCV(2, exclusivity=np.inf, feature_groups=groups, cv=2).fit(NUMBERS, Y),
        lambda groups: erm_path(NUMBERS, Y, exclusivity=np.inf, feature_groups=groups),
        lambda groups: partition(feature_groups=groups).fit(NUMBERS, Y),
        lambda groups: TableEncoder(feature_groups=groups).fit(NUMBERS),
        lambda groups: corrupt(NUMBERS, 1, feature_groups=groups),
        lambda groups: attack(LogisticRegression().fit(NUMBERS, Y), NUMBERS, 1, feature_groups=groups),
    ],
    ids=["fit", "search", "path", "partition", "encoder", "corrupt", "attack"],
)
def test_groups_are_one_label_per_column(use, groups):
    is_dict = isinstance(groups, dict)
    error = ValueError if is_dict else TypeError
    words = r"goes by column names, but X has none" if is_dict else r"a dict of labels by column name, or a"
    with pytest.raises(error, match=words):
        use(groups)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("n_estimators", {"n_estimators": 0}),
        ("n_estimators", {"n_estimators": "many"}),
        ("C", {"C": -1.0}),
        ("C", {"C": np.inf}),
        ("loss", {"loss": "square"}),
        ("p", {"loss": "logistic", "p": 1}),
        ("tol", {"tol": 0.0}),
        ("max_iter", {"max_iter": 0}),
        ("n_jobs", {"n_jobs": 0}),
        ("voting", {"voting": "fair"}),
        ("exclusivity", {"exclusivity": -1.0}),
        ("solver", {"solver": "exclusive"}),
        ("solver_options", {"solver_options": 3}),
        ("partition", {"partition": "random"}),
        ("feature_groups", {"feature_groups": ["a"]}),
        ("feature_groups", {"feature_groups": ["a", "b"], "exclusivity": np.inf}),
        ("class_weight", {"class_weight": "fair"}),
        ("coef_bounds", {"coef_bounds": (1.0, 0.0)}),
        ("coef_bounds", {"coef_bounds": (0.0, 1.0), "exclusivity": 2.0}),
        ("monotonic_cst", {"monotonic_cst": [2]}),
        ("monotonic_cst", {"monotonic_cst": {"b": 1}}),
    ],
    ids=repr,
)
def test_errors_carry_the_name_of_the_parameter(name, parameters):
    with pytest.raises((TypeError, ValueError)) as caught:
        ERMClassifier(**parameters).fit(NUMBERS, Y)
    assert caught.value.parameter == name
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 -- as between processes
    assert (type(copy), copy.parameter, str(copy)) == (type(caught.value), name, str(caught.value))


@pytest.mark.parametrize(("name", "parameters"), [("Cs", {"Cs": [-1.0]}), ("Cs", {"Cs": "many"})])
def test_errors_of_a_search_carry_the_name_of_the_parameter(name, parameters):
    with pytest.raises((TypeError, ValueError)) as caught:
        ERMClassifierCV(cv=2, **parameters).fit(NUMBERS, Y)
    assert caught.value.parameter == name
