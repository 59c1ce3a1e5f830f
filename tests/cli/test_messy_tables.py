"""Tables as people have them, through fit, predict and certify: they work, or a message says what to type."""

import json
import re

import numpy as np
import pytest

from exclusivity.cli.main import main
from exclusivity.io import load_model

N = 90
VOTES = ["--members", "3", "--exclusivity", "inf", "--voting", "hard", "--folds", "0", "--quiet"]
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N).round(2)
COLOUR = RNG.choice(["red", "green", "blue"], N)
WEIGHT = RNG.normal(70, 9, N).round(1)
CLASS = np.where(np.abs(SIZE) + (COLOUR == "red") + RNG.normal(0, 0.3, N) > 1, "ill", "well")


def gaps(marker):
    return [marker if i % 9 == 0 else repr(float(value)) for i, value in enumerate(SIZE)]


def days():
    return (np.datetime64("2021-01-01") + np.arange(N) * 11).astype(str)


# Name of a file -> header, rows of cells, delimiter, and how the text becomes bytes.
FILES = {
    "categories": ({"size": SIZE, "colour": COLOUR, "weight": WEIGHT}, {}),
    "empty gaps": ({"size": gaps(""), "colour": COLOUR, "weight": WEIGHT}, {}),
    "gaps in words": (
        {"size": gaps("NA"), "colour": np.where(SIZE > 1, "?", COLOUR), "weight": gaps("null")},
        {},
    ),
    "dates": ({"day": days(), "colour": COLOUR, "size": SIZE}, {}),
    "identifiers": ({"name": [f"p{i}" for i in range(N)], "colour": COLOUR, "size": SIZE, "w": WEIGHT}, {}),
    "constants": (
        {"one": ["1"] * N, "same": ["x"] * N, "none": [""] * N, "colour": COLOUR, "size": SIZE},
        {},
    ),
    "quoted commas": ({"place": [f'"{c}, ""here"""' for c in COLOUR], "size": SIZE, "weight": WEIGHT}, {}),
    "decimal comma": (
        {
            "size": [str(value).replace(".", ",") for value in SIZE],
            "colour": COLOUR,
            "weight": WEIGHT.astype(int),
        },
        {"delimiter": ";"},
    ),
    "byte order mark": ({"größe": SIZE, "colour": COLOUR, "weight": WEIGHT}, {"encoding": "utf-8-sig"}),
    "line ends of Windows": ({"size": SIZE, "colour": COLOUR, "weight": gaps("n/a")}, {"end": "\r\n"}),
    "per cent": ({"share": [f"{value}%" for value in SIZE], "colour": COLOUR, "weight": WEIGHT}, {}),
    "zeros in front": ({"zip": [f"{i % 7:05d}" for i in range(N)], "colour": COLOUR, "size": SIZE}, {}),
    "tabs": ({"size": gaps("NaN"), "colour": COLOUR, "weight": WEIGHT}, {"delimiter": "\t"}),
    "many levels": ({"code": [f"c{i % 60}" for i in range(N)], "colour": COLOUR, "size": SIZE}, {}),
}


def write(path, columns, labels=CLASS, delimiter=",", encoding="utf-8", end="\n"):
    names = list(columns) + ([] if labels is None else ["state"])
    cells = list(columns.values()) + ([] if labels is None else [labels])
    lines = [delimiter.join(names), *(delimiter.join(map(str, row)) for row in zip(*cells, strict=True))]
    path.write_bytes((end.join(lines) + end).encode(encoding))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own: the exit code, what it printed, and what it complained of."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.mark.parametrize("name", FILES)
def test_messy_files(name, run, tmp_path):
    columns, settings = FILES[name]
    write(tmp_path / "table.csv", columns, **settings)
    code, out, err = run("fit", "table.csv", "--target", "state", "-o", "it.erm", "--additive", *VOTES)
    assert code == 0, err
    for column in columns:
        assert f"\n{column} " in out
    write(tmp_path / "new.csv", columns, None, **settings)
    code, out, err = run("predict", "it.erm", "new.csv", "--quiet")
    assert code == 0, err
    predicted = out.split()[1:]
    assert np.mean(np.array(predicted) == CLASS) > 0.6
    code, out, err = run("certify", "it.erm", "table.csv", "--quiet", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == N
    assert run("evaluate", "it.erm", "table.csv", "--quiet")[0] == 0
    assert run("inspect", "it.erm")[0] == 0


def fitted(run, path, columns, *options, **settings):
    write(path, columns, **settings)
    return run("fit", path.name, "--target", "state", "-o", "it.erm", "--force", *options, *VOTES)


def kinds(out):
    """The table of columns in the output of fit."""
    lines = out[out.index("\ncolumn ") :].splitlines()[3:]
    return {line.split()[0]: line.split()[1] for line in lines}


def test_what_is_reported(run, tmp_path):
    columns = {
        "day": days(),
        "share": FILES["per cent"][0]["share"],
        "zip": FILES["zeros in front"][0]["zip"],
        "name": [f"p{i}" for i in range(N)],
        "none": [""] * N,
        "size": gaps("?"),
    }
    _, out, _ = fitted(run, tmp_path / "table.csv", columns)
    assert kinds(out) == {
        "day": "date",
        "share": "number",
        "zip": "category",
        "name": "category",
        "none": "number",
        "size": "number",
    }
    for words in ("per cent", "codes: zeros in front", "as in a column that names rows", "no value at all"):
        assert words in out
    _, out, _ = run(
        "fit",
        "table.csv",
        "--target",
        "state",
        "-o",
        "it.erm",
        "--force",
        "--json",
        *VOTES,
        "--drop",
        "name,none",
    )
    found = {row["column"]: row for row in json.loads(out)["columns"]}
    assert found["size"]["missing"] == 10
    assert found["zip"]["levels"] == 7
    assert "name" not in found


class TestOverrides:
    columns = FILES["categories"][0]

    def test_categories_that_are_numbers(self, run, tmp_path):
        columns = {"code": np.arange(N) % 3, "size": SIZE, "weight": WEIGHT}
        code, out, _ = fitted(run, tmp_path / "table.csv", columns, "--categorical", "code")
        assert code == 0
        assert kinds(out)["code"] == "category"
        by_number = fitted(run, tmp_path / "table.csv", columns, "--categorical", "0,2")[1]
        assert kinds(by_number) == {"code": "category", "size": "number", "weight": "category"}

    def test_numbers_among_words(self, run, tmp_path):
        columns = {**self.columns, "size": ["soon" if i == 5 else value for i, value in enumerate(SIZE)]}
        code, _, err = fitted(run, tmp_path / "table.csv", columns)
        assert code == 3
        assert "table.csv, line 7, column 'size': it holds numbers, and a text, 'soon'" in err
        for option in ("--numeric size", "--categorical size", "--drop size"):
            assert option in err
            code, out, _ = fitted(run, tmp_path / "table.csv", columns, *option.split())
            assert code == 0
        assert "size" not in kinds(out)
        _, out, _ = fitted(run, tmp_path / "table.csv", columns, "--numeric", "size")
        assert "1 text taken for missing values" in out

    def test_texts_are_gaps_at_prediction_too(self, run, tmp_path):
        """A model that was fitted to them takes its own file again, one row like many; others do not."""
        odd = [f"{value:.2f}".replace(".", ",") if i % 9 else "k.A." for i, value in enumerate(SIZE)]
        columns = {"size": odd, "colour": COLOUR, "weight": WEIGHT.astype(int)}
        code, out, _ = fitted(run, tmp_path / "table.csv", columns, "--numeric", "size", delimiter=";")
        assert "decimal comma, 10 texts taken for missing values" in out
        write(tmp_path / "empty.csv", columns | {"size": [c.strip("k.A") for c in odd]}, delimiter=";")
        expected = run("predict", "it.erm", "empty.csv", "--scores", "--quiet")[1]
        code, out, err = run("predict", "it.erm", "table.csv", "--scores", "--quiet")
        assert (code, out) == (0, expected)
        assert (
            "column 'size' of table.csv: 10 texts taken for missing values, as in training (--numeric)" in err
        )
        one = {name: cells[:1] for name, cells in columns.items()}
        write(tmp_path / "one.csv", one, CLASS[:1], delimiter=";")
        code, out, _ = run("predict", "it.erm", "one.csv", "--scores", "--quiet")
        assert (code, out.splitlines()[1]) == (0, expected.splitlines()[1])
        fitted(run, tmp_path / "clean.csv", columns | {"size": [*odd[1:9], "1,5"] * 10}, delimiter=";")
        code, _, err = run("predict", "it.erm", "table.csv", "--quiet", "--strict")
        assert code == 3
        assert "found 'k.A.'; expected a number, or nothing." in err

    def test_nearly_numbers(self, run, tmp_path):
        columns = {"income": [f"${i + 1} 000" for i in range(N)], "colour": COLOUR, "size": SIZE}
        code, _, err = fitted(run, tmp_path / "table.csv", columns)
        assert code == 3
        assert (
            "table.csv, line 2, column 'income': it holds numbers such as '$1 000'. As numbers: write 1000."
            in err
        )
        assert "--numeric" not in err
        code, _, err = fitted(run, tmp_path / "table.csv", columns, "--numeric", "income")
        assert code == 3
        assert "0 of its 90 cells are numbers; the first that is none is '$1 000'" in err

    def test_contradictions(self, run, tmp_path):
        for options, message in (
            (["--categorical", "size", "--numeric", "size"], "by --categorical and by --numeric"),
            (["--categorical", "sice"], "has no column 'sice'; did you mean 'size'?"),
            (["--categorical", "state"], "is no feature"),
            (["--scale", "minmax"], "leave --scale out"),
            (["--groups", "groups.csv"], "expected one group per line for 3 features"),
        ):
            (tmp_path / "groups.csv").write_text("a\n")
            code, _, err = fitted(run, tmp_path / "table.csv", self.columns, *options)
            assert code != 0, options
            assert message in err

    def test_curves_of_numbers_alone(self, run, tmp_path):
        columns = {"size": SIZE, "weight": WEIGHT, "other": WEIGHT[::-1]}
        plain = fitted(run, tmp_path / "table.csv", columns)[1]
        assert "StandardScaler" in plain
        assert "column" not in plain
        curves = fitted(run, tmp_path / "table.csv", columns, "--additive")[1]
        assert kinds(curves) == dict.fromkeys(columns, "number")

    @pytest.mark.parametrize("command", ["fit", "path"])
    def test_curves_unless_lines_are_asked_for(self, command, run, tmp_path):
        write(tmp_path / "table.csv", self.columns)
        arguments = [command, "table.csv", "--target", "state", "-o", "it.erm", "--quiet"]
        for options, numeric in (([], "spline"), (["--additive"], "spline"), (["--linear"], "linear")):
            assert run(*arguments, *options)[0] == 0
            assert load_model("it.erm")[0].numeric == numeric
        code, _, err = run(*arguments, "--linear", "--additive")
        assert code == 2
        assert "--linear is not for --additive; leave one of them out" in err


class TestAtPrediction:
    @pytest.fixture
    def model(self, run, tmp_path):
        columns = {"size": gaps("NA"), "colour": COLOUR, "day": days()}
        assert fitted(run, tmp_path / "table.csv", columns)[0] == 0
        return columns

    def test_another_order_and_more_columns(self, run, tmp_path, model):
        write(tmp_path / "new.csv", model, None)
        expected = run("predict", "it.erm", "new.csv", "--quiet")[1]
        write(tmp_path / "new.csv", {"more": WEIGHT, **dict(reversed(model.items()))}, None)
        code, out, err = run("predict", "it.erm", "new.csv", "--quiet")
        assert (code, out) == (0, expected)
        assert "ignoring 'more'" in err

    def test_levels_and_gaps_that_were_not_there(self, run, tmp_path, model):
        new = {
            "size": ["1e9", "-", "?"][:1] * 2 + [""],
            "colour": ["mauve", "", "red"],
            "day": ["", "1999-01-01", "NA"],
        }
        write(tmp_path / "new.csv", new, None)
        code, out, err = run("predict", "it.erm", "new.csv", "--quiet")
        assert code == 0, err
        assert len(out.split()) == 4
        told = (
            "column 'colour' of new.csv: 1 row with 1 level that training did not have, such as 'mauve'; they"
        )
        assert told in err
        assert err.count("training did not have") == 1

    @pytest.mark.parametrize(
        ("change", "message", "counted"),
        [
            (
                {"size": ["1", "2", "large"]},
                "new.csv, line 4, column 'size': found 'large'; expected a number, or nothing",
                "column 'size' of new.csv: 1 text taken for missing values",
            ),
            (
                {"day": ["", "31.12.2024", "x"]},
                "new.csv, line 3, column 'day': found '31.12.2024'; expected a date written as year",
                "column 'day' of new.csv: 2 texts taken for missing values",
            ),
            (
                {"colour": None},
                "lacks 'colour'",
                "new.csv lacks 'colour'; all its cells count as missing values",
            ),
        ],
    )
    def test_what_does_not_fit(self, run, tmp_path, model, change, message, counted):
        """A missing value, counted; with --strict an error."""

        def known(cell):
            return cell not in ("large", "31.12.2024", "x")

        columns = {"size": [1, 2, 3], "colour": ["red"] * 3, "day": ["2021-05-05"] * 3} | change
        columns = {name: values for name, values in columns.items() if values is not None}
        write(tmp_path / "new.csv", columns, None)
        code, _, err = run("predict", "it.erm", "new.csv", "--quiet", "--strict")
        assert code == 3
        assert message in err
        code, out, err = run("predict", "it.erm", "new.csv", "--scores")
        assert code == 0
        assert counted in err
        gaps = {name: [cell if known(cell) else "" for cell in columns.get(name, [""] * 3)] for name in model}
        write(tmp_path / "gaps.csv", gaps, None)
        assert run("predict", "it.erm", "gaps.csv", "--scores")[1] == out


class TestGermanFiles:
    """Decimal commas, thousands points and dates as a spreadsheet writes them."""

    def write(self, path, rows, labels=None):
        columns = dict(zip(("Abweichung", "Umsatz", "Stadt", "Alter"), zip(*rows, strict=True), strict=True))
        write(path, columns, labels, delimiter=";")

    @pytest.fixture
    def model(self, run, tmp_path):
        sales = [f"{1000 + 90 * size:,.1f}".translate(str.maketrans(",.", ".,")) for size in SIZE]
        rows = zip([f"{size:.3f}".replace(".", ",") for size in SIZE], sales, COLOUR, range(N), strict=True)
        self.write(tmp_path / "de.csv", rows, CLASS)
        code, out, err = run("fit", "de.csv", "--target", "state", "-o", "it.erm", *VOTES)
        assert code == 0, err
        return out

    def test_what_was_found(self, model):
        found = dict(zip(("Abweichung", "Umsatz", "colour"), model.splitlines()[-4:-2], strict=False))
        assert found["Abweichung"].split()[2:] == ["decimal", "comma"]
        assert found["Umsatz"].split()[2:] == ["decimal", "comma,", "thousands", "points"]
        assert model.splitlines()[-1].split() == ["Alter", "number"]

    def test_one_row_is_read_like_many(self, run, tmp_path, model):
        rows = [
            ("0,275", "910,6", "red", "7"),
            ("1,275", "1.038", "red", "7"),
            ("1,038", "910", "red", "7,5"),
        ]
        self.write(tmp_path / "all.csv", rows)
        together = run("predict", "it.erm", "all.csv", "--scores", "--quiet")[1].splitlines()[1:]
        for row, expected in zip(rows, together, strict=True):
            self.write(tmp_path / "one.csv", [row])
            code, out, err = run("predict", "it.erm", "one.csv", "--scores", "--quiet")
            assert code == 0, err
            assert out.splitlines()[1:] == [expected]
        write(
            tmp_path / "en.csv",
            {"Abweichung": ["1.038"], "Umsatz": ["910.0"], "Stadt": "r", "Alter": "7"},
            None,
        )
        code, _, err = run("predict", "it.erm", "en.csv", "--quiet")
        assert code == 3
        assert "en.csv, line 2, column 'Abweichung': found '1.038'; expected a finite number with" in err
        assert "--decimal comma or --decimal point says which it is" in err
        assert run("predict", "it.erm", "en.csv", "--quiet", "--decimal", "point")[0] == 0

    def test_what_stays_open(self, run, tmp_path):
        columns = {"size": [f"{i % 7 + 1},{i:03d}" if i % 2 else "910" for i in range(N)], "colour": COLOUR}
        code, _, err = fitted(run, tmp_path / "table.csv", columns, delimiter=";")
        assert code == 3
        assert (
            "table.csv, line 3, column 'size': found '2,001', which is 2.001 with a decimal comma and" in err
        )
        assert "--decimal comma or --decimal point says which it is" in err
        for sign, note in (("comma", "decimal comma"), ("point", "thousands commas")):
            code, out, _ = fitted(run, tmp_path / "table.csv", columns, "--decimal", sign, delimiter=";")
            assert code == 0
            assert note in out

    def test_points_between_thousands_alone(self, run, tmp_path):
        columns = {"size": [f"{i + 1}.{i:03d}" for i in range(N)], "other": SIZE}
        assert "column" not in fitted(run, tmp_path / "table.csv", columns)[1]
        code, out, _ = fitted(run, tmp_path / "table.csv", columns, "--decimal", "comma")
        assert code == 0
        assert "thousands points" in out

    def test_the_option_is_for_text(self, run, tmp_path):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pd.DataFrame({"size": SIZE, "state": CLASS}).to_parquet(tmp_path / "t.parquet")
        code, _, err = run("fit", "t.parquet", "--target", "state", "-o", "m.erm", "--decimal", "comma")
        assert code == 2
        assert "--decimal is for text, but t.parquet is read as parquet" in err


@pytest.mark.parametrize("day", ["{d:02d}.{m:02d}.2026", "{m}/{d}/2022"])
def test_dates_of_people(run, tmp_path, day):
    days = [day.format(m=i % 12 + 1, d=i % 28 + 1) for i in range(N)]
    code, _, err = fitted(run, tmp_path / "table.csv", {"day": days, "colour": COLOUR})
    assert code == 3
    told = f"line 2, column 'day': it looks like dates, such as '{days[0]}'; write year-month-day, such as"
    assert told in err
    assert "--numeric" not in err
    assert (
        fitted(run, tmp_path / "table.csv", {"day": days, "colour": COLOUR}, "--categorical", "day")[0] == 0
    )


@pytest.mark.parametrize(("n_levels", "is_told"), [(150, True), (40, False)])
def test_nearly_a_level_for_every_row(run, tmp_path, n_levels, is_told):
    rows = np.arange(200)
    columns = {"street": [f"s{i % n_levels}" for i in rows], "size": rows / 7}
    labels = np.where(rows % 2, "a", "b")
    _, _, err = fitted(run, tmp_path / "table.csv", columns, labels=labels)
    assert ("Column 'street' has 150 distinct values in 200 rows and cannot generalise" in err) == is_told


def test_a_graph_names_its_inputs(run, tmp_path):
    pytest.importorskip("onnx")
    columns = {"size": gaps("NA"), "colour": COLOUR, "one": ["x"] * N}
    fitted(run, tmp_path / "table.csv", columns)
    _, out, _ = run("export", "it.erm", "-o", "it.onnx")
    assert out == (
        "it.onnx: inputs 'size', 'colour', one for each column that the model uses (rows by 1); "
        "outputs label, scores\n"
    )


def test_a_day_that_there_is_not(run, tmp_path):
    columns = {"day": [*days()[:-1], "2021-02-30"], "colour": COLOUR}
    code, _, err = fitted(run, tmp_path / "table.csv", columns)
    assert code == 3
    assert f"table.csv, line {N + 1}, column 'day': found '2021-02-30'; expected a date" in err


def test_standard_input(run, tmp_path, monkeypatch):
    import io
    import sys

    write(tmp_path / "table.csv", FILES["gaps in words"][0])
    content = (tmp_path / "table.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, err = run("fit", "-", "--format", "csv", "--target", "state", "-o", "it.erm", *VOTES)
    assert code == 0, err
    assert re.search(f"^rows +{N}\nfeatures +3$", out, re.MULTILINE)


def test_parquet(run, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {
            "size": np.where(np.arange(N) % 9, SIZE, np.nan),
            "colour": pd.Series(COLOUR).where(np.arange(N) % 8 > 0, None),
            "day": days().astype("datetime64[D]"),
            "code": np.arange(N) % 4,
            "state": CLASS,
        }
    )
    table.to_parquet(tmp_path / "table.parquet", index=False)
    options = ["--categorical", "code", *VOTES]
    code, out, err = run("fit", "table.parquet", "--target", "state", "-o", "it.erm", *options)
    assert code == 0, err
    assert kinds(out) == {"size": "number", "colour": "category", "day": "date", "code": "category"}
    code, by_parquet, _ = run("predict", "it.erm", "table.parquet", "--quiet")
    assert code == 0
    table.to_csv(tmp_path / "table.csv", index=False)
    assert run("predict", "it.erm", "table.csv", "--quiet")[1] == by_parquet


def test_a_hundred_thousand_levels(run, tmp_path):
    """Levels seen once tell nothing; the column is left out, and named."""
    n_rows = 100_000
    labels = np.where(np.arange(n_rows) % 2, "a", "b")
    columns = {
        "level": [f"l{i}" for i in range(n_rows)],
        "size": np.arange(n_rows) % 2 + 0.5,
        "x": ["q", "r"] * 50_000,
    }
    write(tmp_path / "table.csv", columns, labels)
    code, out, _ = run("fit", "table.csv", "--target", "state", "-o", "it.erm", "--folds", "0", "--quiet")
    assert code == 0
    assert "100000" in out
    assert "left out: no level is in 2 rows or more" in out
    assert (tmp_path / "it.erm").stat().st_size < 100_000


def test_path_takes_tables(run, tmp_path):
    write(tmp_path / "table.csv", FILES["gaps in words"][0])
    arguments = [
        "table.csv",
        "--target",
        "state",
        "--costs",
        "0.1,1",
        "--folds",
        "2",
        "-o",
        "it.erm",
        "--quiet",
    ]
    code, out, err = run("path", *arguments)
    assert code == 0, err
    assert "best C" in out
    assert run("predict", "it.erm", "table.csv", "--quiet")[0] == 0


def test_groups_of_columns(run, tmp_path):
    """Of a table with words; of a group for each column, and for some of them only."""
    rng = np.random.default_rng(0)
    lines = [
        f"{a:.3f},{'red' if c else 'blue'},{s:.3f},{'x' if a + s + c > 0.5 else 'z'}"
        for a, s, c in zip(rng.normal(size=90), rng.normal(size=90), rng.random(90) < 0.5, strict=True)
    ]
    (tmp_path / "t.csv").write_text("age,colour,size,y\n" + "\n".join(lines))
    (tmp_path / "groups.csv").write_text("age,body\ncolour,look\nsize,body\n")
    groups = ["--groups", tmp_path / "groups.csv"]
    votes = ["--exclusivity", "inf", "--voting", "hard", "--members", "2", *groups]
    model = tmp_path / "m.erm"
    code, _, err = run("fit", tmp_path / "t.csv", "--target", "y", "-o", model, *votes)
    assert code == 0, err
    loaded = load_model(model)
    assert loaded[0].feature_groups == ["body", "look", "body"]
    assert [sorted(set(loaded[0].sources_[support])) for support in loaded[-1].supports_] == [[0, 2], [1]]
    code, _, err = run("certify", model, tmp_path / "t.csv", "--json")
    assert code == 0, err
    code, out, _ = run("inspect", model)
    assert "--members 2" in out
    assert "made of 3 columns" in out
    code, _, err = run("fit", tmp_path / "t.csv", "--target", "y", "-o", model, *groups)
    assert code == 2
    assert "--groups: feature_groups only matters when members compete" in err
    (tmp_path / "groups.csv").write_text("age,body\nsize,body\n")
    code, _, err = run("fit", tmp_path / "t.csv", "--target", "y", "-o", model, *votes)
    assert code == 3
    assert "a line 'feature,group' for each of them (see 'colour')" in err


def test_dates_that_are_categories(run, tmp_path):
    days = ["2024-01-01", "2024-02-01", "2024-03-01"]
    lines = [f"{days[number % 3]},{number % 2}" for number in range(60)]
    (tmp_path / "t.csv").write_text("day,y\n" + "\n".join(lines))
    code, out, err = run(
        "fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.erm", "--categorical", "day", "--json"
    )
    assert code in (0, 4), err
    assert json.loads(out)["columns"][0]["kind"] == "category"
