"""The tools of docs/tools.md: what the page shows, and the same answers after every round trip."""

from __future__ import annotations

import io
import re
from functools import cache
from importlib.util import find_spec

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier
from exclusivity.io import TRUSTED_TYPES, log_mlflow, save_mlflow, to_onnx
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder
from tables.votes import table_vote
from test_docs import ROOT, SHOWN, assert_shown

# What tools warn of is about themselves.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = ROOT / "docs" / "tools.md"
PACKAGES = {"MLflow": ["mlflow", "skops"], "skops": ["skops"], "joblib": [], "Optuna": ["optuna"]}
PACKAGES |= {"SHAP": ["shap"], "polars": ["polars"]}


def sections():
    """The text before the first heading, and that under each heading."""
    first, *rest = re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))
    return first, {text.partition("\n")[0]: text for text in rest}


@pytest.fixture(scope="module")
def beginning(tmp_path_factory):
    """What the snippets of all sections build on."""
    namespace = {}
    for snippet, _ in SHOWN.findall(sections()[0]):
        exec(compile(snippet, str(PAGE), "exec"), namespace)  # noqa: S102 -- our own page
    return namespace


def test_the_page_has_these_sections():
    assert sections()[1].keys() == PACKAGES.keys()


@pytest.mark.parametrize("title", PACKAGES)
def test_what_the_page_shows(title, beginning, capsys, tmp_path, monkeypatch):
    for package in PACKAGES[title]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    namespace = dict(beginning)
    for snippet, shown in SHOWN.findall(sections()[1][title]):
        exec(compile(snippet, str(PAGE), "exec"), namespace)  # noqa: S102
        assert_shown(capsys.readouterr().out, shown)


def mixed(n_rows, seed=0):
    """Numbers, words, dates and missing values, with one of three classes for each row."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"number {j}": rng.standard_normal(n_rows).round(2) for j in range(8)})
    score = table.sum(axis=1) + rng.standard_normal(n_rows)
    table["word"] = np.where(score + rng.standard_normal(n_rows) > 0, "up", "down")
    table["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 500, n_rows), "D")
    table.loc[rng.random(n_rows) < 0.1, "number 1"] = np.nan
    table.loc[rng.random(n_rows) < 0.1, "word"] = None
    return table, np.digitize(score, [-1.5, 1.5])


TABLE, Y3 = mixed(300)
Y2 = np.where(Y3 > 0, "yes", "no")
NUMBERS = TABLE.drop(columns=["word", "day"]).fillna(0.0)
VOTE = {"n_estimators": 3, "exclusivity": np.inf, "random_state": 0}

MODELS = {
    "linear": lambda: ERMClassifier(3).fit(NUMBERS, Y3),
    "array": lambda: ERMClassifier(3, loss="logistic").fit(NUMBERS.to_numpy(), Y2),
    "float32": lambda: ERMClassifier(3).fit(NUMBERS.to_numpy(np.float32), Y2),
    "paper": lambda: ERMClassifier(3, solver="paper").fit(NUMBERS, Y2),
    "warm start": lambda: ERMClassifier(3, warm_start=True).fit(NUMBERS, Y2),
    "search": lambda: ERMClassifierCV(3, Cs=3, cv=3).fit(NUMBERS, Y2),
    "scaled vote": lambda: make_pipeline(StandardScaler(), ERMClassifier(voting="hard", **VOTE)).fit(
        NUMBERS, Y2
    ),
    "run-off": lambda: ERMClassifier(voting="runoff", multi_class="ovo", **VOTE).fit(NUMBERS, Y3),
    "table": lambda: make_pipeline(TableEncoder(), ERMClassifier(3)).fit(TABLE, Y3),
    "lines": lambda: make_pipeline(TableEncoder(numeric="linear"), ERMClassifier(voting="hard", **VOTE)).fit(
        TABLE, Y2
    ),
    "one line": lambda: table_vote(3).fit(TABLE, Y2),
    "robust": lambda: RobustAdditiveClassifier(1, loss="logistic").fit(TABLE, Y2),
    "robust, three classes": lambda: RobustAdditiveClassifier(1).fit(TABLE, Y3),
}


def rows_of(model, table):
    if getattr(model, "feature_names_in_", None) is None:
        return table[NUMBERS.columns].fillna(0.0).to_numpy()
    return (
        table[list(model.feature_names_in_)]
        if "word" in model.feature_names_in_
        else table[NUMBERS.columns].fillna(0.0)
    )


def radii(model, rows):
    """Radii, where the model has certificates."""
    last = model[-1] if hasattr(model, "steps") else model
    is_soft = getattr(last, "voting", "") == "soft"
    return None if is_soft else certify(model, rows)


def assert_same(model, other, rows):
    assert (other.predict(rows) == model.predict(rows)).all()
    if (found := radii(model, rows)) is not None:
        assert (certify(other, rows) == found).all()


@pytest.mark.parametrize("name", MODELS)
def test_skops_loads_every_kind_of_model(name):
    skops = pytest.importorskip("skops.io")
    model = MODELS[name]()
    assert set(skops.get_untrusted_types(data=skops.dumps(model))) <= set(TRUSTED_TYPES)
    assert_same(model, skops.loads(skops.dumps(model), trusted=TRUSTED_TYPES), rows_of(model, TABLE))


def test_skops_loads_members_of_other_kinds():
    skops = pytest.importorskip("skops.io")
    model = FeaturePartitionClassifier(LogisticRegression(), 3).fit(NUMBERS, Y2)
    assert_same(model, skops.loads(skops.dumps(model), trusted=TRUSTED_TYPES), NUMBERS)


def test_every_trusted_type_is_one():
    for path in TRUSTED_TYPES:
        module, _, name = path.rpartition(".")
        assert isinstance(getattr(__import__(module, fromlist=[name]), name), type)


@pytest.mark.parametrize("name", MODELS)
def test_mlflow_gives_the_same_answers(name, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    model = MODELS[name]()
    rows = rows_of(model, TABLE)
    if name == "float32":
        rows = rows.astype(np.float64)  # what the signature of an array says
    save_mlflow(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert (served.predict(rows) == model.predict(rows)).all()
    if (found := radii(model, rows)) is not None:
        assert (served.predict(rows, params={"method": "certify"}) == found).all()
    if hasattr(model, "predict_proba"):
        assert (served.predict(rows, params={"method": "predict_proba"}) == model.predict_proba(rows)).all()
    files = [path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert ".erm" in files
    assert not {".pkl", ".pickle", ".skops"} & set(files)


def test_a_served_table_survives_absent_columns_integers_and_words(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    model = RobustAdditiveClassifier(1).fit(TABLE, Y2)
    save_mlflow(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    whole = TABLE.assign(**{"number 0": 1})
    assert (served.predict(whole) == model.predict(whole)).all()
    without, missing = TABLE.drop(columns="number 3"), TABLE.assign(**{"number 3": np.nan})
    assert (served.predict(without) == model.predict(missing)).all()
    words = TABLE.assign(**{"number 3": "error 17"})
    assert (served.predict(words) == model.predict(missing)).all()


def test_mlflow_wants_the_columns_of_a_plain_model_and_a_method_that_it_knows(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    save_mlflow(ERMClassifier(3).fit(NUMBERS, Y2), tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    with pytest.raises(mlflow.exceptions.MlflowException, match="missing inputs"):
        served.predict(NUMBERS.drop(columns="number 3"))
    with pytest.raises(ValueError, match="method must be one of predict, "):
        served.predict(NUMBERS, params={"method": "fit"})


def test_a_logged_model_is_loaded_by_its_name(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    if find_spec("sqlalchemy") is None:
        pytest.skip("a store of runs needs sqlalchemy")
    model = RobustAdditiveClassifier(1).fit(TABLE, Y2)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("try", artifact_location=(tmp_path / "runs").as_uri())
    mlflow.set_experiment("try")
    with mlflow.start_run():
        info = log_mlflow(model, "inspection")
    assert (mlflow.pyfunc.load_model(info.model_uri).predict(TABLE) == model.predict(TABLE)).all()
    mlflow.set_tracking_uri(None)


@pytest.mark.parametrize("name", MODELS)
def test_joblib_gives_the_same_answers(name):
    model, file = MODELS[name](), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert_same(model, joblib.load(file), rows_of(model, TABLE))


ROUND_TRIPS = {
    "linear": lambda table, y: make_pipeline(TableEncoder(), ERMClassifier(3)).fit(table, y),
    "vote": lambda table, y: table_vote(3).fit(table, y),
    "robust": lambda table, y: RobustAdditiveClassifier(1).fit(table, y),
}


def by_mlflow(model, rows, folder):
    mlflow = pytest.importorskip("mlflow")
    save_mlflow(model, folder / "model")
    served = mlflow.pyfunc.load_model(str(folder / "model"))
    has_radii = radii(model, rows[:1]) is not None
    return served.predict(rows), served.predict(rows, params={"method": "certify"}) if has_radii else None


def by_skops(model, rows, folder):
    skops = pytest.importorskip("skops.io")
    skops.dump(model, folder / "model.skops")
    loaded = skops.load(folder / "model.skops", trusted=TRUSTED_TYPES)
    return loaded.predict(rows), radii(loaded, rows)


def by_onnx(model, rows, folder):
    """Labels, and radii where the graph has them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    cells = {
        name: column.to_numpy(float)[:, None]
        if name != "word"
        else column.fillna("").to_numpy(object)[:, None]
        for name, column in rows.items()
    }
    found = dict(zip([out.name for out in session.get_outputs()], session.run(None, cells), strict=True))
    return found["label"], found.get("radius")


@cache
def trained(name):
    table, y = mixed(11_000, seed=1)
    table = table.drop(columns="day")  # ONNX has none
    return ROUND_TRIPS[name](table[:1000], y[:1000]), table[1000:]


@pytest.mark.parametrize("trip", [by_mlflow, by_skops, by_onnx])
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_ten_thousand_rows_have_the_same_labels_and_radii(name, trip, tmp_path):
    model, rows = trained(name)
    labels, found = trip(model, rows, tmp_path)
    assert (labels == model.predict(rows)).all()
    if found is not None:
        assert (found == radii(model, rows)).all()
    assert (found is not None) == (name == "robust" or (name == "vote" and trip is not by_onnx))
