"""``erm fit --dask`` on tables with words, dates and gaps: the model of ``erm fit`` on all rows at once."""

import json

import numpy as np
import pandas as pd
import pytest

from exclusivity.cli import distributed
from exclusivity.cli.main import main
from exclusivity.dask import _files as files
from exclusivity.io import load_model


def mixed(n_rows=240, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n_rows).round(1)
    colour = rng.choice(["red", "green", "blue"], n_rows)
    place = rng.integers(0, 40, n_rows)
    share = rng.random(n_rows).round(3)
    day = np.datetime64("2021-01-01") + rng.integers(0, 900, n_rows).astype("timedelta64[D]")
    score = age / 10 + 2 * (colour == "red") + 4 * share + rng.normal(0, 0.6, n_rows)
    table = pd.DataFrame(
        {
            "id": [f"case {number}" for number in rng.permutation(n_rows)],
            "age": age,
            "colour": colour,
            "place": [f"{number:03d}" for number in place],
            "share": share,
            "day": day.astype(str),
            "same": 7,
        }
    )
    for name in ("age", "colour", "day"):
        table[name] = table[name].astype(object).where(rng.random(n_rows) > 0.1, None)
    table.loc[: n_rows // 2, "place"] = "012"  # a first half whose cells are all alike
    return table.assign(state=np.where(score > np.median(score), "ill", "well"))


def written(table):
    """Gaps in three ways, per cent signs, decimal commas."""
    text = table.copy()
    text["share"] = [f"{100 * value:.1f}%".replace(".", ",") for value in table["share"]]
    text["age"] = ["?" if pd.isna(value) else str(value).replace(".", ",") for value in table["age"]]
    return text.to_csv(index=False, sep=";", na_rep="NA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("tables")
    table = mixed()
    (where / "all.csv").write_text(written(table))
    typed = table.assign(age=table["age"].astype(float), day=pd.to_datetime(table["day"]))
    typed.to_parquet(where / "all.parquet")
    for number, (a, b) in enumerate([(0, 100), (100, 101), (101, 240)]):
        part = table[a:b]
        part = part[part.columns[::-1]] if number == 2 else part
        (where / f"part-{number}.csv").write_text(written(part))
        typed[a:b].to_parquet(where / f"part-{number}.parquet", row_group_size=40)
    return where


@pytest.fixture
def run(cluster, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def command(*argv):
        words = [str(word) for word in argv]
        if "--dask" in words:
            words += ["--scheduler", cluster.scheduler_address]
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


CASES = {
    "csv": ("part-*.csv", "all.csv", ["--additive"]),
    "csv, straight lines, said otherwise": (
        "part-*.csv",
        "all.csv",
        ["--categorical", "day,same", "--numeric", "place", "--drop", "id"],
    ),
    "parquet": ("part-*.parquet", "all.parquet", ["--categorical", "same"]),
    "votes": (
        "part-*.csv",
        "all.csv",
        ["--additive", "--exclusivity", "inf", "--voting", "hard", "--members", "3"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_model_of_all_rows_in_memory(run, tmp_path, case):
    files, whole, options = case
    settings = ["--target", "state", "--tol", "1e-9", "--members", "3", "--json", *options]
    code, out, err = run("fit", whole, "-o", tmp_path / "one.erm", *settings, "--folds", "0")
    assert code == 0, err
    one = json.loads(out)
    code, out, err = run("fit", files, "-o", tmp_path / "many.erm", *settings, "--dask")
    assert code == 0, err
    many = json.loads(out)
    assert many["columns"] == one["columns"]
    for fact in ("rows", "features", "classes", "members", "scaling", "converged"):
        assert many[fact] == one[fact], fact
    np.testing.assert_allclose(many["objective"], one["objective"], rtol=1e-6)
    models = [load_model(tmp_path / name) for name in ("one.erm", "many.erm")]
    assert models[0][-1].get_params() == models[1][-1].get_params()
    for ours, theirs in zip(models[0][0].columns_, models[1][0].columns_, strict=True):
        assert (ours.kind, ours.n_missing, ours.n_levels, ours.notation) == (
            theirs.kind,
            theirs.n_missing,
            theirs.n_levels,
            theirs.notation,
        )
        if ours.code is not None:
            assert ours.code.names("it") == theirs.code.names("it")
        if ours.kind == "number" and ours.width:
            np.testing.assert_allclose(ours.code.knots, theirs.code.knots, rtol=1e-9)
            assert ours.code.fill == pytest.approx(theirs.code.fill)
    for model in ("one.erm", "many.erm"):
        code, out, err = run("predict", tmp_path / model, whole, "-o", tmp_path / f"{model}.csv")
        assert code == 0, err
    assert (tmp_path / "one.erm.csv").read_text() == (tmp_path / "many.erm.csv").read_text()


def test_what_is_told(run, tmp_path):
    code, out, err = run("fit", "part-*.csv", "-o", tmp_path / "m.erm", "--target", "state", "--dask")
    assert code == 0, err
    assert "left out: no level is in 2 rows or more" in out
    assert "per cent, decimal comma" in out
    assert "codes: zeros in front" in out
    code, out, err = run("inspect", tmp_path / "m.erm")
    assert code == 0, err


def test_blocks_of_one_file(run, tmp_path, monkeypatch):
    """Most of whose blocks have other texts than the first one."""
    monkeypatch.setattr(distributed, "_LARGEST_BLOCK", 4000)
    monkeypatch.setattr(distributed, "_SMALLEST_BLOCK", 4000)
    code, out, err = run("fit", "all.csv", "-o", tmp_path / "m.erm", "--target", "state", "--dask", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["blocks"] > 4
    kinds = {column["column"]: column["kind"] for column in found["columns"]}
    assert kinds == {
        "id": "category",
        "age": "number",
        "colour": "category",
        "place": "category",
        "share": "number",
        "day": "date",
        "same": "number",
    }


def test_numbers_and_words(run, tmp_path):
    rows = [f"{number / 7:.3f},{number % 2}" for number in range(60)]
    (tmp_path / "a.csv").write_text("size,class\n" + "\n".join(rows))
    (tmp_path / "b.csv").write_text("size,class\nlarge,0\n2.5,1\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    code, _, err = run("fit", *files, "-o", tmp_path / "m.erm", "--target", "class", "--dask")
    assert code == 3
    assert f"{files[1]}, line 2, column 'size': it holds numbers, and a text, 'large'" in err
    assert "--numeric size" in err
    code, out, err = run(
        "fit", *files, "-o", tmp_path / "m.erm", "--target", "class", "--dask", "--numeric", "size"
    )
    assert code == 0, err
    assert "1 text taken for missing values" in out


def test_names_of_rows_are_told(run, tmp_path):
    lines = [f"{number},{'ab'[number % 3 > 0]},{number % 2}" for number in range(50)]
    (tmp_path / "a.csv").write_text("row,letter,class\n" + "\n".join(lines))
    code, _, err = run("fit", tmp_path / "a.csv", "-o", tmp_path / "m.erm", "--target", "class", "--dask")
    assert code == 0, err
    assert "column 'row' has another whole number in each of the 50 rows" in err


@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_names_of_rows_among_numbers_are_told(run, tmp_path, ending):
    rows = [(1000 - number, number % 7, number % 2) for number in range(60)]
    written = {
        "csv": "row,size,class\n" + "".join(f"{row},{size},{label}\n" for row, size, label in rows),
        "svm": "".join(f"{label} 1:{size} 2:{row}\n" for row, size, label in rows),
    }
    (tmp_path / f"a.{ending}").write_text(written[ending])
    target = ["--target", "class"] if ending == "csv" else []
    code, _, err = run("fit", tmp_path / f"a.{ending}", "-o", tmp_path / "m.erm", *target)
    assert code == 0, err
    name, way_out = {
        "csv": ("column 'row'", "--ignore row leaves it out"),
        "svm": ("feature 2", "if it is one, write the file without it"),
    }[ending]
    assert f"{name} has another whole number in each of the 60 rows" in err
    assert way_out in err
    assert err.count("another whole number") == 1


@pytest.mark.parametrize(
    ("column", "texts", "wrong"),
    [
        ("size", ["{}.5"] * 60, "it holds numbers, and a text, 'soon'"),
        ("when", ["2024-02-{:02d}"] * 60, "it holds dates, and a text, 'soon'"),
    ],
)
def test_the_line_of_a_cell_in_blocks(run, tmp_path, monkeypatch, column, texts, wrong):
    """Also behind a blank line, and in a block that is not the first one."""
    monkeypatch.setattr(distributed, "_LARGEST_BLOCK", 800)
    monkeypatch.setattr(distributed, "_SMALLEST_BLOCK", 800)
    lines = [f"{column},class", *(f"{text.format(1 + row % 28)},{row % 2}" for row, text in enumerate(texts))]
    lines[30:30] = [""]
    lines[50] = f"soon,{len(lines) % 2}"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    settings = ["--target", "class", "-o", tmp_path / "m.erm"]
    for dask in ([], ["--dask"]):
        code, _, err = run("fit", tmp_path / "a.csv", *settings, *dask)
        assert code == 3, err
        assert f"a.csv, line 51, column '{column}': {wrong}" in err


@pytest.mark.parametrize(
    ("cell", "wrong", "way"),
    [
        ("soon,2024-01-01", "column 'size': found 'soon'; expected a number", "--numeric size"),
        ("1,2024-13-01", "column 'when': found '2024-13-01'; expected a date", "--categorical when"),
        ('"1,038",2024-01-01', "column 'size': found '1,038', which is 1.038", "--decimal"),
    ],
)
def test_a_cell_that_no_sample_shows(run, tmp_path, monkeypatch, cell, wrong, way):
    """Workers read all cells by the rules, and name file and line of the first that does not fit."""
    monkeypatch.setattr(files, "_SAMPLE_BYTES", 200)
    rows = [f"{row % 7},2024-01-{1 + row % 28:02d},{row % 2}" for row in range(300)]
    rows[250] = f"{cell},1"
    (tmp_path / "a.csv").write_text("size,when,class\n" + "\n".join(rows))
    code, _, err = run("fit", tmp_path / "a.csv", "--target", "class", "-o", tmp_path / "m.erm", "--dask")
    assert code == 3
    assert f"a.csv, line 252, {wrong}" in err
    assert way in err


def test_parquet_whose_parts_differ(run, tmp_path):
    """A part whose texts are all gaps or all dates says little about the column."""
    first = pd.DataFrame(
        {"when": ["2024-01-01", "2024-02-01"] * 10, "why": [None] * 20, "class": [0, 1] * 10}
    )
    second = first.assign(when="later", why=["a", "b"] * 10)
    for name, table in (("a", first), ("b", second)):
        table.astype({"why": "string"}).to_parquet(tmp_path / f"{name}.parquet")
    settings = ["-o", tmp_path / "m.erm", "--target", "class", "--dask", "--json"]
    code, out, err = run("fit", tmp_path / "a.parquet", tmp_path / "b.parquet", *settings)
    assert code == 0, err
    found = {column["column"]: (column["kind"], column["levels"]) for column in json.loads(out)["columns"]}
    assert found == {"when": ("category", 3), "why": ("category", 2)}
    code, _, err = run("fit", tmp_path / "a.parquet", *settings, "--numeric", "when")
    assert code != 0
    assert "'when'" in err
    assert "--drop" in err
