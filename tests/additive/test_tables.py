"""RobustAdditiveClassifier on tables: containers, odd cells, absent columns, suspects, scorecard."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.robustness import certified_accuracy_scorer

pd = pytest.importorskip("pandas")


def mixed(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    number, noise = rng.normal(size=n_rows), rng.normal(size=n_rows)
    number[rng.random(n_rows) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "number": number,
            "whole": rng.integers(0, 9, n_rows),
            "text": rng.choice(["x", "y", "z"], n_rows),
            "category": pd.Categorical(rng.choice(["low", "high"], n_rows)),
            "flag": rng.random(n_rows) > 0.5,
            "day": np.datetime64("2024-01-01") + rng.integers(0, 99, n_rows).astype("m8[D]"),
            "noise": noise,
        }
    )
    score = np.nan_to_num(number) + (frame["text"] == "x") + 0.2 * frame["whole"] + frame["flag"] - 1.5
    return frame, np.where(score + 0.5 * noise > 0, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed()
    return frame, y, RobustAdditiveClassifier().fit(frame, y)


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_containers_agree(package, fitted):
    frame, y, model = fitted
    module = pytest.importorskip(package)
    table = module.from_pandas(frame) if package == "polars" else module.Table.from_pandas(frame)
    other = RobustAdditiveClassifier().fit(table, y)
    kinds = ["number", "number", "category", "category", "category", "date", "number"]
    assert [column.kind for column in other.columns_] == kinds
    assert np.allclose(other.points_, model.points_)
    assert np.array_equal(other.certify(table), model.certify(frame))
    assert np.array_equal(model.certify(table), model.certify(frame))
    assert list(model.attack(table, 1).columns) == list(frame.columns)


def test_containers_that_are_no_tables(fitted):
    frame, y, model = fitted
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"X is a LazyFrame, .* pass X.collect\(\)"):
        RobustAdditiveClassifier().fit(polars.from_pandas(frame).lazy(), y)
    with pytest.raises(TypeError, match=r"pandas.DataFrame\(\[X\]\) for one row"):
        model.predict(frame.iloc[0].to_dict())


def test_blocks_do_not_matter(fitted, monkeypatch):
    frame, _, model = fitted
    scores, radii, share = model.decision_function(frame), model.certify(frame), model.explain(frame)
    monkeypatch.setattr("exclusivity.additive.levels._BLOCK_CELLS", 70)
    assert np.array_equal(model.decision_function(frame), scores)
    assert np.array_equal(model.certify(frame), radii)
    assert np.array_equal(model.explain(frame), share)


def test_columns_that_came_and_went(fitted):
    frame, _, model = fitted
    with pytest.warns(UserWarning, match="not as in training") as caught:
        labels = model.predict(frame.drop(columns="number").assign(unknown=1))
    assert [str(each.message) for each in caught] == [
        "Columns are not as in training: column 'number' is absent, and all of its cells count as missing; "
        "column 'unknown' is unknown and ignored."
    ]
    assert caught[0].filename == __file__
    stands = model.stands(frame, "number")
    assert np.array_equal(labels[stands], model.predict(frame)[stands])
    with pytest.raises(ValueError, match="none of the columns of fit"):
        model.predict(pd.DataFrame({"other": [1.0]}))
    with pytest.raises(ValueError, match="two columns with the name 'noise'; rename or drop one"):
        model.predict(pd.concat([frame, frame[["noise"]]], axis=1))


def test_cells_that_nobody_can_read(fitted):
    frame, _, model = fitted
    rows = [
        [[1], {"a": 1}, [2], 1j, object(), "soon", "much"],
        [10**5000, "7", 10**5000, 3, "maybe", np.inf, None],
        [pd.NA, pd.NaT, np.nan, None, "", "2024-02-30", b"bytes"],
        frame.iloc[3].tolist(),
    ]
    cells = {name: pd.Series([row[j] for row in rows], dtype=object) for j, name in enumerate(frame.columns)}
    odd = pd.DataFrame(cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        labels, radii = model.predict(odd), model.certify(odd)
    assert set(labels) <= {"yes", "no"}
    assert radii.min() >= -1
    assert labels[3] == model.predict(frame)[3]
    assert radii[3] == model.certify(frame)[3]


@pytest.mark.filterwarnings("ignore:Column 'x' equals the target")
def test_columns_without_information():
    y = np.arange(60) % 2
    frame = pd.DataFrame(
        {"x": y + 0.1, "constant": 1.0, "nothing": np.nan, "none": [None] * 60, "id": range(60)}
    )
    frame["id"] = "row " + frame["id"].astype(str)
    model = RobustAdditiveClassifier(threats={"x": "trusted"}).fit(frame, y)
    assert model.score(frame, y) == 1
    assert (model.certify(frame) == 4).all()  # all four columns that are not trusted
    threats = {"nothing": (0, 1), "constant": (0, 9), "x": "trusted"}
    assert (model.certify(frame, threats) == 3).all()  # nothing is reached in "nothing"


@pytest.mark.parametrize("C", [1e-300, 1e-9, 1e9])
def test_extreme_costs(C):
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobustAdditiveClassifier(C=C, max_iter=60).fit(X[:200, :5], y[:200])
    assert np.isfinite(model.points_).all()
    assert 0 <= model.dual_gap_[0] <= 1
    rows = X[:, :5]
    labels, radii = model.predict(rows), model.certify(rows)
    broken = rows.copy()
    broken[:, 0] = np.inf
    assert np.array_equal(model.predict(broken)[radii > 0], labels[radii > 0])


def test_groups_and_their_threats():
    frame, y = mixed()
    model = RobustAdditiveClassifier(
        feature_groups={"number": "sensor", "whole": "sensor", -1: ("a", "tuple")},
        threats={"whole": "trusted", "sensor": "missing"},
    ).fit(frame, y)
    assert model.feature_groups_.tolist() == [0, 0, 1, 2, 3, 4, 5]
    assert model.threats_ == ["missing", "trusted", *["any"] * 5]
    by_name = RobustAdditiveClassifier(feature_groups=lambda names: [name[0] for name in names]).fit(frame, y)
    assert by_name.feature_groups_.tolist() == [0, 1, 2, 3, 4, 5, 0]


def test_scorer_chooses(fitted):
    frame, y, _ = fitted
    grid = {"max_broken": [0, 1], "tol": [0.1]}

    def certified(model, X, y):
        return np.mean((model.certify(X) >= 1) & (model.predict(X) == y))

    search = GridSearchCV(RobustAdditiveClassifier(), grid, scoring=certified, cv=2).fit(frame, y)
    assert search.best_params_["max_broken"] == 1
    assert callable(certified_accuracy_scorer(1))


def test_weights_are_repetitions(fitted):
    frame, y, _ = fitted
    weight = np.arange(len(y)) % 3
    twice = np.repeat(np.arange(len(y)), weight)
    settings = {"class_weight": "balanced", "tol": 1e-4, "max_iter": 4000}
    weighted = RobustAdditiveClassifier(**settings).fit(frame, y, weight)
    repeated = RobustAdditiveClassifier(**settings).fit(frame.iloc[twice], y[twice])
    assert weighted.columns_[2].categories == repeated.columns_[2].categories
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-4)
    small = RobustAdditiveClassifier().fit(frame, y, np.full(len(y), 1 / len(y)))
    assert small.columns_[2].categories == ("x", "y", "z")  # not pooled because weights are small


def test_warm_start(fitted):
    frame, y, model = fitted
    again = RobustAdditiveClassifier(warm_start=True, tol=model.tol).fit(frame, y)
    before = again.n_iter_[0]
    again.fit(frame, y)
    assert again.n_iter_[0] < 0.6 * before
    again.set_params(n_knots=4).fit(frame, y)  # other levels: a start from nothing
    assert again.converged_.all()


def test_suspects(fitted):
    frame, _, model = fitted
    calm = model.suspects(mixed(seed=1)[0])
    assert calm.flagged == []
    assert str(calm) == "no column of 400 rows looks broken"
    assert model.suspects(frame[:3]).flagged == []  # too few rows to say anything
    broken = frame.copy()
    broken["text"] = "?"
    broken["noise"] *= 40
    broken.loc[:199, "number"] = np.nan
    broken["day"] += np.timedelta64(50, "D")
    found = model.suspects(broken)
    assert set(found.flagged) == {"text", "noise", "number", "day"}
    table = found.to_frame().set_index("column")
    assert table["unseen"]["text"] == 1
    assert table["missing"]["text"] == 0
    assert table["missing"]["number"] == pytest.approx(np.isnan(broken["number"]).mean())
    assert table["missing_in_training"]["number"] == pytest.approx(np.isnan(frame["number"]).mean())
    assert table["outside"]["noise"] > 0.5
    assert "outside the range" in table["reason"]["noise"]
    assert table["shift"]["whole"] == pytest.approx(0)
    assert list(table.index[:4]) == found.flagged
    assert (table["shift"].iloc[:4].diff().dropna() <= 0).all()
    assert found.stands == np.mean(model.stands(broken, found.flagged))
    assert table["stands"]["number"] == np.mean(model.stands(broken, ["number"]))
    assert str(found).endswith("predictions stand whatever these columns contain")
    assert "<table" in found._repr_html_()


def test_scorecard(fitted):
    frame, _, model = fitted
    card = model.to_frame()
    assert list(card.columns) == ["column", "kind", "level", "share", "yes"]
    assert np.allclose(card["share"][1:].groupby(card["column"]).sum(), 1)
    row = frame.iloc[0]
    total = card["yes"][0]
    for name in frame.columns:
        own = card[card["column"] == name]
        if own["kind"].iloc[0] == "category":
            total += own["yes"][own["level"] == str(row[name])].item()
        elif pd.isna(row[name]):
            total += own["yes"].iloc[-1]
        else:
            knots = own["level"].iloc[:-1].to_numpy()
            if own["kind"].iloc[0] == "date":
                knots, value = (
                    knots.astype("M8[us]").astype(float),
                    np.datetime64(row[name], "us").astype(float),
                )
            else:
                knots, value = knots.astype(float), row[name]
            total += np.interp(value, knots, own["yes"].iloc[:-1].astype(float))
    assert total == pytest.approx(model.decision_function(frame[:1])[0])
    X, y = load_iris(return_X_y=True)
    several = RobustAdditiveClassifier(tol=0.1).fit(X, y)
    assert list(several.to_frame().columns[4:]) == ["1 against 0", "2 against 0", "2 against 1"]


def test_html(fitted):
    model = fitted[2]
    html = model._repr_html_()
    assert html.startswith("<style>")
    assert f"at most {model.dual_gap_[0]:.1e} above the optimum" in html
    assert "optimum" not in RobustAdditiveClassifier()._repr_html_()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"max_broken": 1.5}, "max_broken"),
        ({"max_broken": True}, "max_broken"),
        ({"C": "much"}, "C"),
        ({"tol": 0}, "tol"),
        ({"n_knots": 1}, "n_knots"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"verbose": -1}, "verbose"),
        ({"loss": "log"}, "loss"),
        ({"class_weight": "balance"}, "class_weight"),
        ({"feature_groups": [1]}, "feature_groups"),
        ({"feature_groups": {"unknown": 1}}, "feature_groups"),
        ({"threats": None}, "threats"),
        ({"threats": {"number": (2, 1)}}, "threats"),
        ({"threats": {"text": (1, 2)}}, "threats"),
        ({"threats": {"text": "increase"}}, "threats"),
        ({"categorical_features": "number"}, "categorical_features"),
        ({"categorical_features": [True]}, "categorical_features"),
        ({"monotonic_cst": {"text": 1}}, "monotonic_cst"),
        ({"monotonic_cst": {"number": 2}}, "monotonic_cst"),
    ],
)
def test_errors_carry_their_parameter(parameters, name):
    frame, y = mixed(60)
    with pytest.raises(ValueError, match=name) as caught:
        RobustAdditiveClassifier(**parameters).fit(frame, y)
    assert caught.value.parameter == name
