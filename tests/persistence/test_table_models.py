"""Models of tables: saved with their encoder, and exported to ONNX for raw rows."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier
from exclusivity.io import ModelFormatError, _model_tables, load_model, save_model, to_onnx
from exclusivity.tables import TableEncoder
from exclusivity.tables._codes import MOST_RARE
from persistence.model_cases import assert_same_model, joined, split
from tables.table_cases import mixed_table
from tables.votes import table_vote

TABLE, CLASSES = mixed_table(150)
OTHER, _ = mixed_table(400, seed=5)
OTHER.loc[3, ["age", "income"]] = [1e300, -np.inf]
OTHER.loc[4, "colour"] = "never seen"

# No search for a partition: what is stored does not depend on it.
QUICK = {"solver_options": {"restarts": 0}}

MODELS = {
    "curves": lambda: table_vote(3, random_state=0, **QUICK).fit(TABLE, CLASSES),
    "lines": lambda: table_vote(3, numeric="linear", random_state=0, **QUICK).fit(TABLE, CLASSES),
    "float32": lambda: table_vote(3, dtype=np.float32, random_state=0, **QUICK).fit(TABLE, CLASSES),
    "sparse": lambda: table_vote(3, sparse_output=True, random_state=0, **QUICK).fit(TABLE, CLASSES),
    "categories": lambda: table_vote(
        3, categorical=("visits", "day"), max_levels=3, min_frequency=4, random_state=0, **QUICK
    ).fit(TABLE, CLASSES),
    "soft": lambda: make_pipeline(TableEncoder(), StandardScaler(), ERMClassifier(3)).fit(TABLE, CLASSES),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def saved_and_loaded(model, path):
    save_model(model, path)
    return load_model(path)


class TestFiles:
    def test_round_trip(self, model, tmp_path):
        twin = saved_and_loaded(model, tmp_path / "model.erm")
        assert_same_model(model, twin, OTHER)
        for before, after in zip(model[0].columns_, twin[0].columns_, strict=True):
            assert (before.name, before.kind, before.n_missing, before.n_levels, before.left_out) == (
                (after.name, after.kind, after.n_missing, after.n_levels, after.left_out)
            )
        names = model[0].get_feature_names_out().tolist()
        assert twin[0].get_feature_names_out().tolist() == names
        save_model(twin, tmp_path / "again.erm")
        assert (tmp_path / "again.erm").read_bytes() == (tmp_path / "model.erm").read_bytes()
        assert twin.fit(TABLE, CLASSES).predict(OTHER).tolist() == model.predict(OTHER).tolist()

    @pytest.mark.filterwarnings("ignore:Column .* cannot generalise")
    def test_what_is_left_out_and_why(self, tmp_path):
        X = TABLE.assign(constant=1, name=[f"n{i}" for i in range(len(TABLE))], nothing=None)
        X["once"] = np.where(np.arange(len(X)) % 2, "x", None)
        model = saved_and_loaded(table_vote(2, random_state=0, **QUICK).fit(X, CLASSES), tmp_path / "it.erm")
        why = {column.name: column.left_out for column in model[0].columns_ if column.left_out}
        assert list(why) == ["constant", "name", "nothing"]
        assert model[0].columns_[-1].width == 1

    def test_how_numbers_are_written(self, tmp_path):
        model = make_pipeline(TableEncoder("linear"), ERMClassifier(2)).fit(TABLE, CLASSES)
        tags = [None, "", ",?", ".'", ",'%", "%"]
        model[0].columns_ = [
            replace(column, notation=tag) for column, tag in zip(model[0].columns_, tags, strict=True)
        ]
        twin = saved_and_loaded(model, tmp_path / "it.erm")
        assert [column.notation for column in twin[0].columns_] == tags
        model[0].columns_[0] = replace(model[0].columns_[0], notation="x")
        with pytest.raises(ValueError, match="written in no known way"):
            save_model(model, tmp_path / "it.erm")

    @pytest.mark.filterwarnings("ignore:Column .* cannot generalise")
    def test_long_texts_and_many_levels(self, tmp_path):
        rng = np.random.default_rng(0)
        texts = np.array(
            [f"{'long ' * 100}{k}" for k in range(5)] + [f"rare {k}" for k in range(1500)], object
        )
        X = pd.DataFrame({"text": np.r_[texts, ["often"] * 500], "size": rng.normal(size=2005)})
        model = make_pipeline(TableEncoder(), ERMClassifier(2)).fit(X, X["size"] > 0)
        assert len(model[0].columns_[0].code.rare) == MOST_RARE
        twin = saved_and_loaded(model, tmp_path / "it.erm")
        assert twin.predict(X).tolist() == model.predict(X).tolist()
        assert (tmp_path / "it.erm").stat().st_size < 2_000_000

    def test_output_setting(self, tmp_path):
        model = (
            make_pipeline(TableEncoder(), ERMClassifier(2)).set_output(transform="pandas").fit(TABLE, CLASSES)
        )
        twin = saved_and_loaded(model, tmp_path / "it.erm")
        assert isinstance(twin[0].transform(TABLE), pd.DataFrame)

    def test_too_wide(self, tmp_path, monkeypatch):
        model = make_pipeline(TableEncoder("linear"), ERMClassifier(2)).fit(TABLE, CLASSES)
        save_model(model, tmp_path / "it.erm")
        # Six columns, one of them a date of three parts.
        monkeypatch.setattr(_model_tables, "MAX_PARTS", 7)
        with pytest.raises(ValueError, match="at most 7 columns and parts of dates"):
            save_model(model, tmp_path / "it.erm")
        with pytest.raises(ModelFormatError, match="at most 7 columns and parts of dates"):
            load_model(tmp_path / "it.erm")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "it.erm"
    save_model(table_vote(3, random_state=0, **QUICK).fit(TABLE, CLASSES), path)
    return path.read_bytes()


def n_bytes(spec):
    """What an array of the header takes in the file."""
    sizes = {"f8": 8, "i8": 8, "u1": 1, "bool": 1}
    return int(np.prod(spec["shape"])) * (4 * spec["width"] if "width" in spec else sizes[spec["type"]])


class TestRefusals:
    def refused(self, data, path, change):
        header, arrays = split(data)
        arrays = bytearray(arrays)
        change(header["model"]["steps"][0][1], header["arrays"], arrays)
        path.write_bytes(joined(header, bytes(arrays)))
        with pytest.raises(ModelFormatError) as caught:
            load_model(path)
        return caught.value.cause

    @staticmethod
    def place(header, arrays, name):
        """Where the bytes of an array of the codes begin."""
        return sum(map(n_bytes, arrays[: header["codes"][name]["array"]]))

    @pytest.mark.parametrize(
        ("name", "place", "value", "message"),
        [
            ("types", 0, np.uint8(9), "a column is coded as one of another kind"),
            ("types", 0, np.uint8(0), "a part of a date has missing values of its own"),
            ("types", 0, np.uint8(2), "coded as one of another kind"),
            ("figures", 0, np.float64(np.nan), "finite numbers"),
            ("figures", 0, np.float64(1e300), "not in order"),
            ("figures", 24, np.float64(0.0), "not in order"),
            ("figures", 24, np.float64(-1.0), "not in order"),
            ("figures", 24, np.float64(5e-324), "not in order"),
            ("knots", 8, np.float64(99.0), "not in increasing order"),
            ("n_knots", 0, np.int64(-1), "numbers from 0"),
            ("n_knots", 0, np.int64(2**40), "as many knots"),
            ("n_knots", 0, np.int64(5), "as many knots"),
            ("parts", 0, np.uint8(0), "parts: expected numbers from 1 to 15"),
            ("parts", 0, np.uint8(16), "parts: expected numbers from 1 to 15"),
            ("texts", 0, np.str_("green"), "not different texts"),
            ("texts", 0, np.str_(" " * 20), "a missing value"),
        ],
    )
    def test_damaged_arrays(self, data, tmp_path, name, place, value, message):
        def change(header, arrays, content):
            start = self.place(header, arrays, name) + place
            raw = np.array(value, dtype="<U20").tobytes() if isinstance(value, np.str_) else value.tobytes()
            content[start : start + len(raw)] = raw

        cause = self.refused(data, tmp_path / "it.erm", change)
        assert message in cause

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"n_features": 5}, "feature_names: expected an array of shape (5)"),
            ({"sparse_output": 1}, "sparse_output"),
            ({"output": "csv"}, "output"),
            ({"extra": 1}, "unknown key"),
            ({"params": {"n_knots": 1}}, "n_knots must be"),
            ({"params": {"dtype": "int8"}}, "dtype"),
            ({"params": {"categorical": ["nowhere"]}}, "no column"),
            ({"params": {"feature_groups": 1}}, "feature_groups must be None, a sequence"),
            ({"params": {"whatever": 1}}, "unknown key"),
        ],
    )
    def test_damaged_header(self, data, tmp_path, changes, message):
        cause = self.refused(data, tmp_path / "it.erm", lambda header, *_: header.update(changes))
        assert message in cause


def inputs_of(model, table, dtype=np.float64):
    """Raw rows as the graph takes them: a tensor for every column that is used."""
    found = {}
    for column in model[0].columns_:
        if column.code is None:
            continue
        values = table[column.name]
        if column.kind == "number":
            found[column.name] = values.to_numpy(dtype=dtype)[:, None]
        elif column.kind == "date":
            found[column.name] = values.to_numpy("datetime64[us]").view(np.int64)[:, None]
        else:
            texts = ["" if pd.isna(value) else str(value) for value in values]
            found[column.name] = np.array(texts, dtype=object)[:, None]
    return found


def assert_graph_agrees(model, table, inputs, **options):
    graph = to_onnx(model, **options)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    label, scores = session.run(["label", "scores"], inputs)
    expected = model.decision_function(table)
    tolerance = 1e-12 if expected.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    assert label.tolist() == model.predict(table).tolist()


class TestOnnx:
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"numeric": "linear"},
            {"dtype": np.float32},
            {"categorical": ["visits"], "max_levels": 2},
            {"voting": "soft"},
        ],
    )
    def test_raw_rows(self, parameters):
        X = TABLE.assign(constant=0.0, seen=np.where(np.arange(len(TABLE)) % 3 == 0, "x", None))
        rows = OTHER.assign(constant=5.0, seen=np.where(np.arange(len(OTHER)) % 2 == 0, "y", None))
        model = table_vote(3, random_state=0, **QUICK, **parameters).fit(X, CLASSES)
        assert_graph_agrees(model, rows, inputs_of(model, rows))

    def test_booleans_that_have_become_numbers(self):
        X = TABLE[["member", "income", "visits"]]
        model = table_vote(3, random_state=0, **QUICK).fit(X, CLASSES)
        rows = X.assign(member=X["member"].astype(int))
        np.testing.assert_array_equal(model.decision_function(rows), model.decision_function(X))
        assert_graph_agrees(model, X, inputs_of(model, rows))

    def test_numbers_alone(self):
        X, rows = (table[["age", "income", "visits"]].to_numpy() for table in (TABLE, OTHER))
        model = make_pipeline(TableEncoder(), StandardScaler(), ERMClassifier(3)).fit(X, CLASSES)
        assert_graph_agrees(model, rows, {"X": rows})
        narrow = np.clip(rows, -1e30, 1e30).astype(np.float32)
        assert_graph_agrees(model, narrow, {"X": narrow}, input_type="float32")

    def test_numbers_with_gaps_alone(self):
        X = np.c_[np.where(np.arange(60) % 3, np.nan, 1.0), np.arange(60.0)]
        model = make_pipeline(TableEncoder(), ERMClassifier(2)).fit(X, np.arange(60) > 30)
        assert_graph_agrees(model, X, {"X": X})

    def test_names_that_the_graph_needs(self):
        X = TABLE[["colour", "age"]].rename(columns={"colour": "label", "age": "v3"})
        model = table_vote(2, random_state=0, **QUICK).fit(X, CLASSES)
        inputs = {f"input_{name}": values for name, values in inputs_of(model, X).items()}
        assert_graph_agrees(model, X, inputs)

    def test_dates_of_all_centuries(self):
        rng = np.random.default_rng(0)
        moments = rng.integers(-6 * 10**16, 2 * 10**17, 400).view("datetime64[us]")
        leap = np.array(
            ["2000-02-29T23:59:59.999999", "1900-02-28", "1969-12-31T23:00", "1970-01-01"], "M8[us]"
        )
        days = pd.DataFrame({"day": np.r_[moments, leap, np.datetime64("NaT"), leap[:1]]})
        days["since"] = pd.Series([None, "2024-01-01"] * 203).astype("datetime64[us]")
        y = (days["day"].dt.month.fillna(0) > 6) ^ (days["day"].dt.hour > 12)
        for fitted_rows in (days, days.assign(day=days["day"].dt.floor("D"))):
            model = make_pipeline(TableEncoder(), ERMClassifier(2)).fit(fitted_rows, y)
            assert_graph_agrees(model, days, inputs_of(model, days))

    def test_what_cannot_be(self):
        X = np.c_[np.arange(40.0), np.arange(40) % 2]
        late = make_pipeline(StandardScaler(), TableEncoder(categorical=[1]), ERMClassifier(2)).fit(
            X, X[:, 1]
        )
        with pytest.raises(ValueError, match="has to be the first step"):
            to_onnx(late)
