"""A row gets the same label and radius alone, in any file and beside any rows."""

import csv

import numpy as np
import pytest

from exclusivity.cli.main import main

N = 300
FIT = ["--target", "state", "-o", "m.erm", "--exclusivity", "inf", "--voting", "hard", "--members", "5"]
QUIET = ["--folds", "0", "--quiet"]


def german(text):
    return text.translate(str.maketrans(",.", ".,"))


WRITTEN = {
    "rate": lambda v: f"{2 + v:.3f}",
    "amount": lambda v: f"{5000 + 900 * v:,.0f}",
    "abweichung": lambda v: german(f"{v:.3f}"),
    "umsatz": lambda v: german(f"{4000 + 900 * v:,.1f}"),
    "share": lambda v: f"{10 + v:.3f}%",
    "count": lambda v: f"{round(40 + 9 * v)}",
    "soon": lambda v: f"{v:.2f}" if v > -1 else "not yet",
    "colour": lambda v: "red" if v > 0.3 else "blue" if v > -0.4 else "007",
    "day": lambda v: str(np.datetime64("2024-06-01") + round(90 * v)),
}
"""Every column in a notation of its own."""

STRANGE = [
    "NA",
    "",
    "1e3",
    "0012",
    "7",
    "1,234,567.5",
    "1.234.567,5",
    "0,5",
    "2.5",
    "1,038",
    "1.038",
    "12%",
    "0,5%",
]
"""What some columns take for a number, and others refuse."""


def table(n, seed):
    generator = np.random.default_rng(seed)
    labels = generator.choice(["high", "low"], n)
    values = generator.normal(size=(n, len(WRITTEN))) + 1.2 * (labels == "high")[:, None]
    rows = [[write(v) for write, v in zip(WRITTEN.values(), row, strict=True)] for row in values.tolist()]
    return rows, labels.tolist()


def write(name, rows, labels=None):
    with open(name, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*WRITTEN, *([] if labels is None else ["state"])])
        writer.writerows(rows if labels is None else [[*r, y] for r, y in zip(rows, labels, strict=True)])


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def certified(run):
    """Fit to a table of nine notations; give what rows of a file are certified to be, or the refusal."""
    write("train.csv", *table(N, 0))
    code, _, err = run("fit", "train.csv", *FIT, *QUIET, "--numeric", "soon", "--decimal", "point")
    assert code == 0, err

    def call(rows, *options):
        write("rows.csv", rows)
        options = options if "--decimal" in options else (*options, "--strict")
        code, out, err = run("certify", "m.erm", "rows.csv", "-o", "-", *options)
        assert code in (0, 3), err
        if code == 3:
            return err
        found = out.splitlines()[1 : len(rows) + 1]
        assert run("predict", "m.erm", "rows.csv", *options)[1].split()[1:] == [
            line.partition(",")[0] for line in found
        ]
        return found

    return call


def test_a_row_alone_and_among_others(certified):
    """Ordinary rows and rows with odd cells, shuffled: each gets the answer of the row alone."""
    generator = np.random.default_rng(1)
    rows, _ = table(120, 2)
    for row in rows[60:]:
        row[generator.integers(len(row))] = str(generator.choice(STRANGE))
    alone = [certified([row]) for row in rows]
    taken = [place for place, found in enumerate(alone) if isinstance(found, list)]
    refused = [place for place, found in enumerate(alone) if isinstance(found, str)]
    assert len(taken) > 80
    assert len(refused) > 20
    together = certified([rows[place] for place in taken])
    assert together == [alone[place][0] for place in taken]
    assert len(set(together)) > 4
    for _ in range(20):
        some = generator.permutation(taken)[: generator.integers(2, 40)].tolist()
        assert certified([rows[place] for place in some]) == [alone[place][0] for place in some]
    for place in refused[:20]:  # one such row has the whole file refused, by its own line
        beside = [rows[taken[0]], rows[taken[1]], rows[place]]
        assert certified(beside) == alone[place].replace("rows.csv, line 2", "rows.csv, line 4")


def test_one_cell_with_another_decimal_sign(certified):
    """It is refused with file, line, column and value; no other column or row is read otherwise."""
    (row,), _ = table(1, 3)
    expected = certified([row])
    for column, text, sign in [
        ("rate", "0,5", "point"),
        ("umsatz", "0.5", "comma"),
        ("count", "0,5", "point"),
    ]:
        odd = [text if name == column else cell for name, cell in zip(WRITTEN, row, strict=True)]
        for rows, line in ([odd], 2), ([row, odd], 3):
            message = certified(rows)
            found = f"rows.csv, line {line}, column {column!r}: found {text!r}; expected a finite number"
            assert f"{found} with a decimal {sign}" in message
            assert "--decimal" in message
    assert certified([row]) == expected


def test_the_option_says_how_all_columns_are_written(certified):
    (row,), _ = table(1, 3)
    english = [
        german(cell) if name in ("abweichung", "umsatz") else cell
        for name, cell in zip(WRITTEN, row, strict=True)
    ]
    assert isinstance(certified([english]), str)
    assert certified([english], "--decimal", "point") == certified([row])
    comma = [
        cell if name in ("abweichung", "umsatz", "day", "colour") else german(cell)
        for name, cell in zip(WRITTEN, row, strict=True)
    ]
    assert certified([comma], "--decimal", "comma") == certified([row])


def test_parquet_and_text_agree(certified, run):
    """Typed values give what the same values give as text."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, _ = table(60, 4)
    columns = dict(zip(WRITTEN, map(list, zip(*rows, strict=True)), strict=True))

    def number(text):
        text = german(text) if name in ("abweichung", "umsatz") else text
        return None if text == "not yet" else float(text.replace(",", "").rstrip("%"))

    typed = {}
    for name, texts in columns.items():
        typed[name] = texts if name in ("colour", "day") else [number(text) for text in texts]
    typed["day"] = np.array(typed["day"], dtype="datetime64[ms]")
    parquet.write_table(arrow.table(typed), "rows.parquet")
    expected = certified(rows)
    code, out, err = run("certify", "m.erm", "rows.parquet", "-o", "-")
    assert code == 0, err
    assert out.splitlines()[1:61] == expected
    code, _, err = run("certify", "m.erm", "rows.parquet", "--decimal", "comma")
    assert code == 2
    assert "--decimal is for text, but rows.parquet is read as parquet" in err


def test_text_for_a_model_of_typed_columns(run):
    """A model that saw no text takes decimal points and refuses what needs a guess."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, labels = table(N, 0)
    numbers = [[float(row[0]), float(row[5])] for row in rows]
    typed = {
        "rate": [a for a, _ in numbers],
        "count": [b for _, b in numbers],
        "colour": [row[7] for row in rows],
    }
    parquet.write_table(arrow.table(typed | {"state": labels}), "train.parquet")
    assert run("fit", "train.parquet", *FIT, *QUIET)[0] == 0
    head = "rate,count,colour\n"
    for line, message in [
        ('2.5,"0,5",red', "'count': found '0,5'; expected a finite number with a decimal point"),
        (
            "2.5,5%,red",
            "'count': found '5%'; expected a finite number with a decimal point, no thousands commas and",
        ),
        (
            '2.5,"1,038",red',
            "'count': found '1,038'; expected a finite number with a decimal point, no thousands commas",
        ),
    ]:
        with open("rows.csv", "w") as stream:
            stream.write(f"{head}{line}\n")
        code, _, err = run("predict", "m.erm", "rows.csv", "--strict")
        assert code == 3
        assert f"rows.csv, line 2, column {message}" in err


def test_a_model_of_plain_numbers_has_no_other_notation(run):
    with open("train.csv", "w") as stream:
        stream.write(
            "a,b,state\n" + "".join(f"{i % 7}.5,{i % 5},{'up' if i % 7 > 3 else 'down'}\n" for i in range(60))
        )
    assert run("fit", "train.csv", "--target", "state", "-o", "m.erm", *QUIET)[0] == 0
    with open("rows.csv", "w") as stream:
        stream.write('a,b\n"2,5",1\n')
    code, _, err = run("predict", "m.erm", "rows.csv")
    assert code == 3
    assert "found '2,5'" in err
    code, _, err = run("predict", "m.erm", "rows.csv", "--decimal", "comma")
    assert code == 2
    assert "was fitted to plain numbers" in err
