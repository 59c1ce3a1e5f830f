"""``erm fit --dask`` on tables with words, dates and missing values: the model of ``erm fit`` in memory."""

import json

import numpy as np
import pandas as pd
import pytest

from exclusivity.cli.main import main
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
            "place": [f"p{number:03d}" for number in place],
            "share": share,
            "day": day.astype(str),
            "same": 7,
        }
    )
    for name in ("age", "colour", "day"):
        table[name] = table[name].astype(object).where(rng.random(n_rows) > 0.1, None)
    table.loc[: n_rows // 2, "place"] = "p012"  # a first half whose cells are all alike
    return table.assign(state=np.where(score > np.median(score), "ill", "well"))


def written(table):
    """Missing values in two ways, decimal commas."""
    text = table.copy()
    text["share"] = [f"{value:.3f}".replace(".", ",") for value in table["share"]]
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


COMMA = ["--decimal", "comma"]
CASES = {
    "csv": ("part-*.csv", "all.csv", ["--additive", *COMMA]),
    "csv, said otherwise": (
        "part-*.csv",
        "all.csv",
        ["--categorical", "day,same", "--numeric", "place", "--drop", "id", *COMMA],
    ),
    "parquet": ("part-*.parquet", "all.parquet", ["--categorical", "same"]),
    "votes": (
        "part-*.csv",
        "all.csv",
        ["--additive", "--exclusivity", "inf", "--voting", "hard", "--members", "3", *COMMA],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_model_of_all_rows_in_memory(run, tmp_path, case):
    files, whole, options = case
    settings = ["--target", "state", "--tol", "1e-9", "--members", "3", "--json", *options]
    if "place" in str(options):  # no numbers at all in it: none in memory either
        settings = [word.replace("place", "age") for word in settings]
    code, out, err = run("fit", whole, "-o", tmp_path / "one.erm", *settings, "--folds", "0")
    assert code == 0, err
    one = json.loads(out)
    code, out, err = run("fit", files, "-o", tmp_path / "many.erm", *settings, "--dask")
    assert code == 0, err
    many = json.loads(out)
    kinds = [
        [(row["column"], row["kind"], row["levels"], row["missing"]) for row in found["columns"]]
        for found in (one, many)
    ]
    assert kinds[0] == kinds[1]
    for fact in ("rows", "features", "classes", "members", "scaling", "converged"):
        assert many[fact] == one[fact], fact
    np.testing.assert_allclose(many["objective"], one["objective"], rtol=1e-6)
    models = [load_model(tmp_path / name) for name in ("one.erm", "many.erm")]
    assert models[0][-1].get_params() == models[1][-1].get_params()
    for ours, theirs in zip(models[0][0].columns_, models[1][0].columns_, strict=True):
        if ours.code is not None:
            assert ours.code.names("it") == theirs.code.names("it")
        if ours.kind == "number" and ours.width:
            np.testing.assert_allclose(ours.code.knots, theirs.code.knots, rtol=1e-9)
            assert ours.code.fill == pytest.approx(theirs.code.fill)
    sign = COMMA if whole == "all.csv" else []
    for model in ("one.erm", "many.erm"):
        code, out, err = run("predict", tmp_path / model, whole, "-o", tmp_path / f"{model}.csv", *sign)
        assert code == 0, err
    assert (tmp_path / "one.erm.csv").read_text() == (tmp_path / "many.erm.csv").read_text()


def test_numbers_and_words(run, tmp_path):
    rows = [f"{number / 7:.3f},{number % 2}" for number in range(60)]
    (tmp_path / "a.csv").write_text("size,class\n" + "\n".join(rows))
    (tmp_path / "b.csv").write_text("size,class\nlarge,0\n2.5,1\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    fit = ["fit", *files, "-o", tmp_path / "m.erm", "--target", "class", "--dask"]
    code, _, err = run(*fit)
    assert code == 3
    assert "--numeric COL takes the texts for missing values" in err
    code, out, err = run(*fit, "--numeric", "size", "--json")
    assert code == 0, err
    assert json.loads(out)["columns"][0]["missing"] == 1


@pytest.mark.parametrize("options", [["--dask"], []])
def test_row_numbers_are_warned_of(run, tmp_path, options):
    """In memory and on workers."""
    rows = "".join(f"{1000 - number},{number % 7},{number % 2}\n" for number in range(60))
    (tmp_path / "a.csv").write_text(f"row,size,class\n{rows}")
    code, _, err = run("fit", tmp_path / "a.csv", "-o", tmp_path / "m.erm", "--target", "class", *options)
    assert code == 0, err
    assert "column 'row' has another whole number in each of the 60 rows" in err
    assert "--ignore row leaves it out" in err


def test_missing_classes(run, tmp_path):
    (tmp_path / "a.csv").write_text("size,class\n" + "".join(f"{i},{i % 2 or 'NA'}\n" for i in range(10)))
    code, _, err = run("fit", tmp_path / "a.csv", "-o", tmp_path / "m.erm", "--target", "class", "--dask")
    assert code == 3
    assert "a.csv: 5 of 10 rows have no class" in err
