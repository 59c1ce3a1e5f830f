"""Certificates through pipelines: which steps keep them, what they count, and which are refused."""

from __future__ import annotations

import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.robustness import (
    attack,
    certify,
    certify_set,
    elect,
    feature_groups_from_transformer,
)
from exclusivity.robustness.sources import column_sources, join_groups
from robustness.robust_cases import fitted, split

X, Y, ROWS, _ = split("heart")
SCALERS = [
    StandardScaler(),
    MinMaxScaler(),
    MaxAbsScaler(),
    RobustScaler(),
    QuantileTransformer(n_quantiles=20),
    PowerTransformer(),
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    SelectKBest(k=6),
    VarianceThreshold(),
    Binarizer(),
    FunctionTransformer(np.tanh),
    PolynomialFeatures(1, include_bias=False),
]


class RowsByLength(StandardScaler):
    """A scaler by its name that looks at whole rows."""

    def transform(self, X, copy=None):
        return super().transform(X) / np.linalg.norm(X, axis=1, keepdims=True)


class RowsInside(QuantileTransformer):
    """Its ``transform`` is the known one, and what that calls is not."""

    def _transform(self, X, inverse=False):
        return super()._transform(X, inverse) + X.sum(axis=1, keepdims=True)


class MixingPipeline(Pipeline):
    """A pipeline that does more than call its steps."""

    def transform(self, X):
        return super().transform(X) + X.sum(axis=1, keepdims=True)


class SumsRows(SelectKBest):
    """A selector whose columns are sums of rows."""

    def _transform(self, X):
        return super()._transform(X) + X.sum(axis=1, keepdims=True)


class Undecided(ERMClassifier):
    """A vote that predicts something else."""

    def predict(self, X):
        return self.classes_[np.zeros(len(X), dtype=int)]


def voters(n_estimators=5, **parameters):
    return ERMClassifier(n_estimators, C=0.1, exclusivity=np.inf, voting="hard", random_state=0, **parameters)


@pytest.mark.parametrize("step", SCALERS, ids=lambda step: type(step).__name__)
def test_column_wise_steps_pass(step):
    model = make_pipeline(step, voters()).fit(X, Y)
    assert np.array_equal(certify(model, ROWS), model[-1].certify(model[:-1].transform(ROWS)))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PCA(5), "PCA makes every new column from all old ones"),
        (TruncatedSVD(5), "TruncatedSVD makes every new column"),
        (Normalizer(), "Normalizer divides every value by the length of the whole row"),
        (PolynomialFeatures(2), "PolynomialFeatures multiplies columns"),
        (FunctionTransformer(lambda rows: rows), "FunctionTransformer may do anything"),
        (FunctionTransformer(np.tanh, kw_args={"where": True}), "FunctionTransformer may do anything"),
        (KNNImputer(), "KNNImputer fills a missing value from the other columns"),
        (FeatureUnion([("a", StandardScaler()), ("b", PCA(2))]), "PCA makes"),
        (PolynomialFeatures(1), "PolynomialFeatures .* adds a constant one"),
        (RowsByLength(), "RowsByLength is derived from a known class"),
        (RowsInside(n_quantiles=20), "RowsInside is derived from a known class"),
        (SumsRows(k=6), "SumsRows is derived from a known class"),
        (MixingPipeline([("scale", StandardScaler())]), "MixingPipeline is derived from a known class"),
        (make_pipeline(StandardScaler(), PCA(5)), "PCA makes"),
        (make_column_transformer((PCA(3), [0, 1, 2, 3]), remainder="passthrough"), "PCA makes"),
    ],
    ids=lambda case: type(case).__name__ if not isinstance(case, str) else "",
)
def test_mixing_steps_are_refused_with_the_reason(step, reason):
    model = make_pipeline(StandardScaler(), step, voters(3)).fit(X, Y)
    with pytest.raises(ValueError, match=f"{reason}.*certificate would be void"):
        certify(model, ROWS)


def test_plain_estimators_and_searches():
    clf = fitted("heart")
    assert np.array_equal(certify(clf, ROWS), clf.certify(ROWS))
    search = GridSearchCV(make_pipeline(StandardScaler(), voters()), {"ermclassifier__C": [0.1]}, cv=2).fit(
        X, Y
    )
    best = search.best_estimator_
    assert np.array_equal(certify(search, ROWS), best[-1].certify(best[0].transform(ROWS)))
    bare = make_pipeline(voters()).fit(X, Y)
    assert np.array_equal(certify(bare, ROWS), bare[0].certify(ROWS))
    skipped = make_pipeline(StandardScaler(), voters()).fit(X, Y)
    skipped.steps[0] = ("standardscaler", "passthrough")
    assert np.array_equal(certify(skipped, ROWS), skipped[1].certify(ROWS))


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (LogisticRegression(), TypeError, "no certificate for LogisticRegression"),
        (RandomForestClassifier(3), TypeError, "no certificate for RandomForest"),
        (ERMClassifier(3), ValueError, r"set_params\(voting='hard'\)"),
        (BaggingClassifier(LogisticRegression(), 3), ValueError, "averages the probabilities"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_what_counts_no_votes_has_no_certificate(model, kind, message):
    with pytest.raises(kind, match=message):
        certify(model.fit(X, Y), ROWS)


def test_a_method_replaced_on_the_object_is_refused():
    model = make_pipeline(StandardScaler(), voters(3)).fit(X, Y)
    model[0].transform = lambda rows: rows + rows.sum(axis=1, keepdims=True)
    with pytest.raises(ValueError, match="StandardScaler has attributes in front of its methods"):
        certify(model, ROWS)
    for inner in (model[-1], BaggingClassifier(LinearSVC(), 3).fit(X, Y)):
        inner.predict = lambda rows: np.zeros(len(rows))
        with pytest.raises(TypeError, match=f"no certificate for {type(inner).__name__}"):
            certify(inner, ROWS)


@pytest.mark.parametrize(
    "model",
    [
        Undecided(3, exclusivity=np.inf, voting="hard", random_state=0),
        MixingPipeline([("vote", voters(3))]),
        type("Other", (GridSearchCV,), {"predict": lambda self, rows: rows[:, 0]})(voters(3), {"C": [1.0]}),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classes_derived_from_a_vote_are_refused(model):
    with pytest.raises(TypeError, match=f"no certificate for {type(model).__name__}"):
        certify(model.fit(X, Y), ROWS)


@pytest.mark.parametrize("inside", ["hard", "runoff"])
@pytest.mark.parametrize("voting", [None, "hard", "runoff"])
def test_a_frozen_vote_is_certified_as_it_is_elected(inside, voting):
    generator = np.random.default_rng(0)
    y = generator.integers(5, size=300)
    rows = generator.normal(size=(300, 12)) + generator.normal(size=(5, 12))[y]
    vote = ERMClassifier(6, exclusivity=np.inf, voting=inside, random_state=0).fit(rows, y)
    for frozen in (FrozenEstimator(vote), make_pipeline(FrozenEstimator(vote))):
        labels = frozen.predict(rows) if voting is None else elect(frozen, rows, voting)
        assert np.array_equal(labels, elect(vote, rows, voting or inside))
        radius, can_win = certify(frozen, rows, voting=voting), certify_set(frozen, rows, 0, voting=voting)
        assert np.array_equal(radius, certify(vote, rows, voting=voting))
        assert np.array_equal(labels[radius >= 0], vote.classes_[can_win.argmax(axis=1)][radius >= 0])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value):
    rows = ROWS.copy()
    rows[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        certify(make_pipeline(StandardScaler(), voters()).fit(X, Y), rows)


def test_gaps_that_an_imputer_fills_are_certified():
    rows = ROWS.copy()
    rows[3, 1] = np.nan
    model = make_pipeline(SimpleImputer(), voters()).fit(X, Y)
    assert certify(model, rows).shape == (len(rows),)


def table(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n_rows),
            "size": rng.choice(["s", "m", "l", "xl"], n_rows),
            "age": rng.normal(size=n_rows),
            "blood_pressure": rng.normal(size=n_rows),
            "weight": rng.normal(size=n_rows),
        }
    )
    score = frame["age"] + frame["weight"] + frame["blood_pressure"]
    score += 2 * (frame["colour"] == "red") - (frame["size"] == "xl")
    return frame, (score > 0.3).to_numpy().astype(int)


def encoder(**kwargs):
    return ColumnTransformer(
        [
            ("cat", OneHotEncoder(sparse_output=False, **kwargs), ["colour", "size"]),
            ("num", StandardScaler(), make_column_selector(dtype_include="number")),
        ]
    )


@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_encoded_categories_count_as_one_source():
    frame, y = table()
    # Without groups the columns of one category go to several members: the pipeline counts them together.
    model = make_pipeline(encoder(), voters(7)).fit(frame, y)
    radius = certify(model, frame)
    assert np.all(radius <= model[-1].certify(model[0].transform(frame)))
    groups = feature_groups_from_transformer(model[0])
    assert groups == ["colour"] * 3 + ["size"] * 4 + ["age", "blood_pressure", "weight"]
    whole = make_pipeline(encoder(), voters(5, feature_groups=groups)).fit(frame, y)
    safe = certify(whole, frame)
    assert np.array_equal(safe, whole[-1].certify(whole[0].transform(frame)))
    assert safe.max() >= 1
    for fitted_model, found in ((model, radius), (whole, safe)):
        before = fitted_model.predict(frame)
        for column in frame.columns:
            choices = frame[column].unique() if frame[column].dtype.kind in "OUT" else [-1e6, 0.0, 1e6]
            for value in choices:
                after = fitted_model.predict(frame.assign(**{column: value}))
                assert np.array_equal(after[found >= 1], before[found >= 1])


def test_labels_by_callable_inside_a_pipeline():
    frame, y = table()
    columns = encoder().set_output(transform="pandas")
    members = voters(5, feature_groups=lambda names: [name.split("__")[1].split("_")[0] for name in names])
    model = make_pipeline(columns, members).fit(frame, y)
    assert model[-1].groups_.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 3, 4]
    assert certify(model, frame).max() >= 1


@pytest.mark.parametrize(
    "transformer",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary"),
        OneHotEncoder(min_frequency=45),
        OneHotEncoder(max_categories=2, drop="first"),
        OrdinalEncoder(),
    ],
    ids=str,
)
def test_sources_of_encoders_match_their_names(transformer):
    frame = table()[0][["colour", "size"]]
    names = transformer.fit(frame).get_feature_names_out()
    sources = column_sources(transformer)
    assert len(sources) == len(names)
    for name, source in zip(names, sources, strict=True):
        assert name.startswith(["colour", "size"][source])
    assert feature_groups_from_transformer(transformer) == [name.split("_")[0] for name in names]


@pytest.mark.parametrize(
    "columns",
    [
        [2, 4],
        slice(2, 5, 2),
        [False, False, True, False, True],
        ["age", "weight"],
        np.array([2, 4]),
        lambda frame: ["age", "weight"],
    ],
    ids=["numbers", "slice", "mask", "names", "array", "callable"],
)
def test_sources_of_a_column_transformer(columns):
    frame = table()[0]
    made = ColumnTransformer([("a", StandardScaler(), columns), ("none", "drop", [0])], remainder="drop")
    assert column_sources(made.fit(frame)).tolist() == [2, 4]
    kept = ColumnTransformer([("b", "passthrough", ["size"]), ("a", StandardScaler(), ["age"])])
    assert column_sources(kept.set_params(remainder="passthrough").fit(frame)).tolist() == [1, 2, 0, 3, 4]


def test_slices_of_names_include_their_end():
    made = ColumnTransformer([("a", StandardScaler(), slice("age", "weight"))]).fit(table()[0])
    assert column_sources(made).tolist() == [2, 3, 4]


def test_sources_of_imputers_and_bins():
    rows = np.array([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan], [4.0, np.nan, 1.0]])
    assert column_sources(SimpleImputer().fit(rows)).tolist() == [0, 2]
    assert column_sources(SimpleImputer(keep_empty_features=True).fit(rows)).tolist() == [0, 1, 2]
    imputed = SimpleImputer(add_indicator=True).fit(rows)
    assert column_sources(imputed).tolist() == [0, 2, 1, 2]
    with pytest.warns(UserWarning, match="Skipping features"):
        assert imputed.transform(rows).shape[1] == 4
    for strategy, dtype in product(("mean", "median", "most_frequent"), (np.float32, object)):
        typed = rows.astype(dtype) if dtype is np.float32 or strategy == "most_frequent" else rows
        assert column_sources(SimpleImputer(strategy=strategy).fit(typed)).tolist() == [0, 2]
    full = np.arange(12.0).reshape(6, 2)
    for encode in ("ordinal", "onehot-dense"):
        bins = KBinsDiscretizer(3, encode=encode, quantile_method="averaged_inverted_cdf").fit(full)
        assert len(column_sources(bins)) == bins.transform(full).shape[1]


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_a_column_without_values_in_training_shifts_no_source():
    """Behind a float32 median the last column counts once, although two branches look at it."""
    generator = np.random.default_rng(0)
    y = generator.integers(2, size=300)
    rows = (generator.normal(size=(300, 8)) + 3.0 * y[:, None] - 1.5).astype(np.float32)
    rows[:, 1] = np.nan
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    head = make_column_transformer((filled, list(range(8))), (MinMaxScaler(), [7]))
    model = make_pipeline(head, voters(8, partition="random")).fit(rows, y)
    assert column_sources(model[0]).tolist() == [0, 2, 3, 4, 5, 6, 7, 7]
    radius, label = certify(model, rows), model.predict(rows)
    for columns in combinations([0, 2, 3, 4, 5, 6, 7], int(radius.max())):
        for value in (-1e4, 1e4):
            broken = rows.copy()
            broken[:, columns] = value
            is_safe = radius == radius.max()
            assert np.array_equal(model.predict(broken)[is_safe], label[is_safe])


def test_steps_that_were_not_fitted_one_behind_the_other_are_refused():
    pipeline = Pipeline([("a", StandardScaler().fit(X[:, :5])), ("b", StandardScaler().fit(X[:, :4]))])
    with pytest.raises(ValueError, match="was fitted to 4 columns, and the steps before it make 5"):
        column_sources(pipeline)


def small_table(n_rows=48, seed=0):
    """Six numeric columns, one with gaps, whose values are few enough to try them all."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(-2, 3, size=(n_rows, 6)).astype(float)
    y = np.digitize(rows.sum(axis=1) + generator.normal(size=n_rows), [-1.5, 1.5])
    return rows, y


def gaps(rows):
    holed = rows.copy()
    holed[::5, 2] = np.nan
    holed[1::7, 4] = np.nan
    return holed


BINS = {"quantile_method": "averaged_inverted_cdf", "encode": "onehot-dense"}
COLUMN_WISE = [
    SplineTransformer(4),
    SplineTransformer(4, include_bias=False, extrapolation="linear"),
    SplineTransformer(5, extrapolation="periodic", sparse_output=True),
    KBinsDiscretizer(3, **BINS),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    FunctionTransformer(np.abs),
    PolynomialFeatures((1, 1), include_bias=False),
    FeatureUnion([("a", StandardScaler()), ("b", KBinsDiscretizer(2, **BINS)), ("c", "passthrough")]),
    FeatureUnion([("a", "drop"), ("b", SplineTransformer(3))]).set_output(transform="pandas"),
    make_column_transformer((SplineTransformer(3), [4, 1]), remainder="passthrough"),
    ColumnTransformer([("a", FeatureUnion([("s", StandardScaler()), ("b", Binarizer())]), [5, 0, 3])]),
    make_pipeline(StandardScaler(), SplineTransformer(3), VarianceThreshold()),
    make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    FeatureUnion([("fill", SimpleImputer()), ("gap", MissingIndicator())]),
    FeatureUnion([("fill", SimpleImputer()), ("gap", MissingIndicator(features="all"))]),
]


@pytest.mark.parametrize("step", [*COLUMN_WISE, TargetEncoder()], ids=lambda step: type(step).__name__)
def test_an_output_column_moves_with_its_source_only(step):
    rows, y = small_table()
    rows = gaps(rows) if "SimpleImputer" in str(step) else rows
    step = clone(step).fit(rows, y)
    before, sources = as_array(step.transform(rows)), column_sources(step)
    assert before.shape[1] == len(sources)
    moved = np.zeros((6, len(sources)), dtype=bool)
    for column in range(6):
        other = rows.copy()
        other[:, column] = np.roll(rows[:, column], 1)
        moved[column] = np.any(as_array(step.transform(other)) != before, axis=0)
    assert np.all(moved.sum(axis=0) <= 1)
    assert np.all(moved.argmax(axis=0)[moved.any(axis=0)] == sources[moved.any(axis=0)])
    assert moved.any(axis=0).mean() > 0.6  # indicators of columns without gaps stand still
    assert feature_groups_from_transformer(step) == sources.tolist()


def as_array(made):
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)


@pytest.mark.parametrize("step", COLUMN_WISE, ids=lambda step: type(step).__name__)
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_no_r_columns_of_any_value_change_a_prediction_of_radius_r(step):
    """Every pair of columns, and every pair of values that a column can have."""
    rows, y = small_table()
    holed = gaps(rows) if "SimpleImputer" in str(step) else rows
    groups = feature_groups_from_transformer(clone(step).fit(holed, y))
    for feature_groups in (groups, None):
        members = voters(5, feature_groups=feature_groups, solver_options={"restarts": 0}, tol=1e-2)
        model = make_pipeline(clone(step), members)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*members compete for")
            model.fit(holed, y)
        chosen = holed[::6]
        radius, label = certify(model, chosen), model.predict(chosen)
        for r in (1, 2):
            changes = list(product(combinations(range(6), r), product([-2.0, 0.0, 2.0], repeat=r)))
            others = np.tile(chosen, (len(changes), 1, 1))
            for other, (columns, values) in zip(others, changes, strict=True):
                other[:, columns] = values
            after = model.predict(others.reshape(-1, 6)).reshape(len(changes), -1)
            assert np.all((after == label) | (radius < r))


def test_grouping_by_group_and_source_together():
    assert join_groups(np.array([0, 1, 2]), np.array([0, 1, 2])).tolist() == [0, 1, 2]
    assert join_groups(np.array([0, 1, 0, 2]), np.array([0, 1, 1, 2])).tolist() == [0, 0, 0, 1]


def test_attack_on_a_pipeline_asks_its_scores_only():
    model = make_pipeline(StandardScaler(), voters()).fit(X, Y)
    radius = certify(model, ROWS)
    for r in (1, 2):
        assert not attack(model, ROWS[radius >= r], r).changed.any()
    assert attack(make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y), ROWS, 1).changed.mean() > 0.9


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_columns_are_joined_exactly_where_a_chain_of_groups_and_sources_links_them(columns):
    groups, sources = np.array(columns).T
    found = join_groups(groups, sources)
    linked = (groups[:, None] == groups) | (sources[:, None] == sources)
    for _ in columns:  # chains of any length
        linked = (linked.astype(int) @ linked) > 0
    np.testing.assert_array_equal(found[:, None] == found, linked)
    assert set(found) == set(range(found.max() + 1))
