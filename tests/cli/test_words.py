"""Mistakes of people who come from spreadsheets, pandas and scikit-learn: the message names the cure."""

import json
import sys

import numpy as np
import pytest

from cli.test_new_user_mistakes import check
from exclusivity.cli.main import main

FIT = ["fit", "d.csv", "--target", "state", "--folds", "0", "-o", "m.erm"]
TABLE = [["radius", "texture", "state"], ["1.5", "2", "ill"], ["2.5", "1", "well"], ["3.5", "0", "ill"]]


@pytest.fixture
def table(erm, tmp_path):
    """Writes d.csv with another delimiter, encoding or cells."""

    def write(rows=TABLE, delimiter=",", encoding="utf-8", name="d.csv"):
        (tmp_path / name).write_bytes("".join(delimiter.join(row) + "\n" for row in rows).encode(encoding))
        return erm

    return write


def with_cell(text, row=1, column=0):
    rows = [list(line) for line in TABLE]
    rows[row][column] = text
    return rows


class TestDelimiters:
    @pytest.mark.parametrize("delimiter", [";", "\t", "|"])
    def test_it_is_found(self, table, delimiter):
        erm = table(delimiter=delimiter)
        code, _, err = erm(*FIT)
        assert code == 0, err
        assert f"d.csv has {delimiter!r} between its fields" in err
        assert erm("evaluate", "m.erm", "d.csv")[0] == 0
        assert erm(*FIT, "--delimiter", "comma")[0] == 3  # somebody who insists

    @pytest.mark.parametrize(
        ("value", "delimiter"),
        [(";", ";"), ("semicolon", ";"), ("\t", "\t"), ("\\t", "\t"), ("tab", "\t"), ("|", "|"), (",", ",")],
    )
    def test_it_may_be_given_as_itself(self, table, value, delimiter):
        code, _, err = table(delimiter=delimiter)(*FIT, "--delimiter", value)
        assert (code, err) == (0, "")

    def test_a_tsv_file_with_another_one(self, table):
        erm = table(delimiter=";", name="d.tsv")
        command = [word.replace("d.csv", "d.tsv") for word in FIT]
        assert erm(*command)[0] == 0
        assert erm(*command, "--delimiter", ";")[0] == 0

    def test_one_that_cannot_be_found(self, table):
        check(
            table(with_cell("radius,mm", 0), delimiter=";")(*FIT),
            "no column 'state'",
            "--delimiter",
        )

    def test_an_unknown_one(self, table, capsys):
        with pytest.raises(SystemExit):
            table()(*FIT, "--delimiter", "x")
        assert "choose from" in capsys.readouterr().err

    def test_standard_input(self, table, tmp_path, monkeypatch):
        erm = table(delimiter=";")
        with open(tmp_path / "d.csv") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert erm("fit", "-", "--format", "csv", *FIT[2:])[0] == 0


class TestHeaders:
    ROWS = (
        ["5.1", "3.5", "setosa"],
        ["4.9", "3.0", "setosa"],
        ["7.0", "3.2", "other"],
        ["6.4", "3.1", "other"],
    )

    def test_a_target_that_is_not_in_the_first_row(self, table):
        erm = table(self.ROWS)
        check(erm(*FIT), "no column 'state'", "--no-header")

    def test_a_row_that_is_taken_for_names(self, table):
        erm = table(self.ROWS)
        check(erm("fit", "d.csv", "--target", -1, "-o", "m.erm"), "'setosa'", "--no-header", "--target")
        assert erm("fit", "d.csv", "--target", -1, "--no-header", "-o", "m.erm")[0] == 0

    def test_a_class_may_have_the_name_of_its_column(self, table):
        assert table(with_cell("state", 1, 2))(*FIT)[0] == 0

    def test_numbers_may_be_names(self, table):
        assert table([["400.5", "401", "state"], *TABLE[1:]])(*FIT)[0] == 0

    def test_a_nameless_column_of_row_numbers(self, table):
        """As ``DataFrame.to_csv`` writes them by default."""
        rows = [[str(number - 1) if number else "", *row] for number, row in enumerate(TABLE)]
        erm = table(rows)
        check(erm(*FIT), "column 0 (from 0): the column has no name", "--drop 0")
        assert erm(*FIT, "--drop", 0)[0] == 0
        table()(*FIT)
        table(rows)
        code, out, err = erm("predict", "m.erm", "d.csv")
        assert (code, len(out.splitlines())) == (0, 4), err
        assert erm("evaluate", "m.erm", "d.csv")[0] == 0


class TestCells:
    @pytest.mark.parametrize(
        ("cell", "cure"),
        [
            ("1 500", "As numbers: write 1500."),
            ("12%", "As numbers: write 12."),
            ("12.5 %", "As numbers: write 12.5."),
        ],
    )
    def test_numbers_of_people(self, table, cell, cure):
        erm = table(with_cell(cell), delimiter=";")
        check(erm(*FIT), "d.csv, line 2, column 'radius'", cure, "--numeric radius", "--drop radius")
        code, out, _ = erm(*FIT, "--numeric", "radius")
        assert code == 0
        assert "1 text taken for missing values" in out

    @pytest.mark.parametrize("cell", ["1,5", "1.500,25"])
    def test_two_notations_in_a_column(self, table, cell):
        """Never a missing value, said or not: the model would refuse such a cell as well."""
        erm = table(with_cell(cell), delimiter=";")
        cure = f"{cell!r}, with a decimal comma, among numbers with a decimal point"
        check(erm(*FIT), "d.csv, line 2, column 'radius'", cure, "--categorical radius", "--drop radius")
        check(
            erm(*FIT, "--numeric", "radius"),
            "line 2, column 'radius'",
            "expected a finite number with a decimal point",
        )

    @pytest.mark.parametrize("cell", ["1,500", "1,500,000"])
    def test_thousands(self, table, cell):
        code, out, _ = table(with_cell(cell), delimiter=";")(*FIT)
        assert code == 0
        assert "thousands commas" in out

    def test_an_empty_cell_is_a_gap(self, table):
        code, out, _ = table(with_cell(""), delimiter=";")(*FIT)
        assert code == 0
        assert out.splitlines()[-2].split() == ["radius", "number", "1"]

    def test_a_word_is_no_number_of_people(self, table):
        code, _, err = table(with_cell("red"))(*FIT)
        assert code == 3
        assert "point" not in err

    def test_a_decimal_comma_between_commas(self, table):
        check(table(with_cell("1,5"))(*FIT), "the row has 4 fields; expected 3", "A comma inside a number")

    @pytest.mark.parametrize("row", [1, 3])
    def test_an_empty_class(self, table, row):
        code, _, err = table(with_cell("", row, 2))(*FIT)
        assert code == 3
        assert "1 of 3 rows has no class" in err
        assert "finite decimal" not in err
        assert f"line {row + 1}" in err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["d.csv", "d.svm"])
def test_utf_16(table, encoding, name):
    erm = table(encoding=encoding, name=name)
    target = FIT[2:4] if name == "d.csv" else []
    check(erm("fit", name, *target, "-o", "m.erm"), name, "UTF-16", "iconv")
    check(erm("predict", "soft.erm" if target else "svm.erm", name), "UTF-16", "UTF-8")


def test_a_name_that_only_ends_alike_is_not_meant(erm, tmp_path):
    (tmp_path / "nodate.erm").touch()
    (tmp_path / "de.csv").touch()
    assert "did you mean" not in erm("predict", "de.erm", "new.csv")[2]


def test_latin_letters(table):
    check(table(with_cell("größe", 1, 2), encoding="latin-1")(*FIT), "save the file as UTF-8")


class TestFolders:
    COMMANDS = (
        ["fit", "parts", "--target", "state", "-o", "m.erm"],
        ["path", "parts", "--target", "state"],
        ["predict", "soft.erm", "parts"],
        ["evaluate", "soft.erm", "parts"],
        ["fit", "parts", "--target", "state", "-o", "m.erm", "--dask"],
    )

    @pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
    def test_a_pattern_is_suggested(self, erm, tmp_path, command):
        (tmp_path / "parts").mkdir()
        check(erm(*command), "parts is a folder; give one of its files", "'parts/*.csv'", "--dask")


class TestOptions:
    @pytest.mark.parametrize(
        ("argv", "meant"),
        [
            (["fit", "t.csv", "--targt", "y", "-o", "m"], "--targt; did you mean --target?"),
            (["fit", "t.csv", "--target", "y", "-o", "m", "-C", "1"], "-C; did you mean --cost?"),
            (["fit", "t.csv", "-o", "m", "--n_estimators=5"], "did you mean --members?"),
            (["fit", "t.csv", "-o", "m", "--random-state", "5"], "did you mean --seed?"),
            (["evaluate", "m", "t.csv", "--zebra"], "there is no option --zebra; see --help"),
            (["evaluate", "m", "t.csv", "--members", "5"], "there is no option --members; see --help"),
            (["evaluate", "m", "t.csv", "u.csv"], "'u.csv' is one argument too many"),
        ],
    )
    def test_what_was_meant(self, capsys, argv, meant):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert meant in err


class TestParameters:
    def test_more_members_than_features(self, erm):
        options = ["--members", 9, "--exclusivity", "inf", "--voting", "hard", "--folds", 0]
        code, _, err = erm("fit", "train.csv", "--target", "state", "-o", "m.erm", *options)
        assert code == 0
        assert "Use 6 members or fewer." in err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--cost", "-1"], "--cost: C must be a number above 0 and finite; got -1.0."),
            (["--members", "0"], "--members: n_estimators must be an integer at least 1"),
            (["--loss", "square"], "--loss: loss must be one of 'hinge', 'logistic', 'smooth_hinge'"),
            (["--p", "0.5"], "--p: p must be a number at least 1"),
            (["--p", "1", "--loss", "logistic"], "--p: p=1.0 is the power of the hinge"),
            (["--exclusivity", "-1"], "--exclusivity: exclusivity must be a number at least 0"),
            (["--exclusivity", "nan"], "--exclusivity: exclusivity must be a number at least 0"),
            (["--tol", "0"], "--tol: tol must be a number above 0"),
            (["--max-iter", "0"], "--max-iter: max_iter must be an integer at least 1"),
            (["--jobs", "0"], "--jobs: n_jobs must be"),
            (["--solver", "exclusive"], "--solver: solver='exclusive' needs exclusivity > 1"),
            (["--solver", "newton", "--exclusivity", 2], "--solver: solver='newton' needs exclusivity <= 1"),
            (["--groups", "g.csv"], "--groups: feature_groups only matters when members compete"),
        ],
    )
    def test_the_option_is_named_before_anything_is_read(self, erm, tmp_path, options, words):
        (tmp_path / "g.csv").write_text("1\n1\n2\n2\n3\n3\n")
        check(erm("fit", "nowhere.csv", "--target", "state", "-o", "m.erm", *options), words, code=2)

    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["fit", "train.csv", "--monotonic", "c=2"], "--monotonic: monotonic_cst must have 1"),
            (["fit", "train.csv", "--bounds", "c=1:0"], "--bounds: coef_bounds and monotonic_cst leave no"),
            (["path", "train.csv", "--costs", "1,-1"], "--costs: Cs must be positive and finite"),
        ],
    )
    def test_the_option_is_named_where_the_data_decide(self, erm, argv, words):
        check(erm(*argv, "--target", "state", "-o", "m.erm"), words, code=2)

    def test_no_convergence(self, erm):
        _, _, err = erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--max-iter", 1, "--folds", 0)
        assert "max_iter" in err
        assert "tol" in err

    def test_the_best_cost_at_the_end_of_the_grid(self, erm):
        _, _, err = erm("path", "train.csv", "--target", "state", "--costs", "1e-5,2e-5,0.01")
        assert "warning: The best C, 0.01, is the largest of the 3 values given" in err
        assert "Give larger values of C" in err


class TestTargets:
    def test_amounts_instead_of_classes(self, erm, tmp_path):
        X = np.random.default_rng(0).normal(size=(90, 1))
        rows = [f"{x},{number % 30}" for number, x in enumerate(X[:, 0])]
        (tmp_path / "ages.csv").write_text("\n".join(["x,age", *rows]) + "\n")
        code, _, err = erm("fit", "ages.csv", "--target", "age", "-o", "m.erm", "--folds", 0)
        assert code == 0
        code, _, err = erm("evaluate", "m.erm", "ages.csv")
        assert "hardly distinguished" in err
        assert "Are its 30 numbers classes, and not amounts? --target chooses another column." in err
        assert "balanced." not in err


class TestIdentifiers:
    def fit(self, erm, tmp_path, ids, header="case no,x,state", options=()):
        generator = np.random.default_rng(0)
        rows = [f"{number},{generator.normal()},{'ab'[place % 2]}" for place, number in enumerate(ids)]
        (tmp_path / "d.csv").write_text("\n".join([*([header] if header else []), *rows]) + "\n")
        target = ["--target", "-1", "--folds", "0", "-o", "m.erm"]
        code, out, err = erm("fit", "d.csv", *target, "--json", *options)
        assert code == 0, err
        return json.loads(out), err

    def test_it_is_noticed(self, erm, tmp_path):
        ids = np.random.default_rng(1).permutation(1000)[:40]
        _, err = self.fit(erm, tmp_path, ids)
        assert "warning: column 'case no' has another whole number in each of the 40 rows" in err
        assert "--ignore 'case no'" in err
        told, err = self.fit(erm, tmp_path, ids, options=["--ignore", "case no"])
        assert (told["features"], err) == (1, "")

    def test_without_names(self, erm, tmp_path):
        _, err = self.fit(erm, tmp_path, range(40), header="", options=["--no-header"])
        assert "--ignore 0 leaves it out" in err
        assert self.fit(erm, tmp_path, range(40), header="", options=["--no-header", "--ignore", 0])[1] == ""

    @pytest.mark.parametrize("ids", [[1, *range(1, 40)], [0.5, *range(39)], range(19)])
    def test_what_is_none(self, erm, tmp_path, ids):
        assert self.fit(erm, tmp_path, ids)[1] == ""
