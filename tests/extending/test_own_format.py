"""File formats and commands that are not ours: read and cut like those of the package."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from exclusivity.cli.main import COMMANDS, build_parser, main
from exclusivity.datasets import (
    DataFileError,
    FilePart,
    Format,
    Reading,
    TableData,
    TextFormat,
    format_named,
    format_of,
    formats,
    known_formats,
    read_table,
    register_format,
)
from extending.pages import names_of

JsonLines = names_of("add-a-file-format.md")["JsonLines"]
OURS = ("libsvm", "csv", "tsv", "parquet", "npy")


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """The formats of the package alone, before and after."""
    known = {name: format_named(name) for name in OURS}
    monkeypatch.setattr(formats, "_FORMATS", known)
    formats._add_installed.cache_clear()
    yield
    formats._add_installed.cache_clear()


@pytest.fixture
def people(tmp_path):
    """X, y and their file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(3)
    y = np.where(X[:, 0] > 0, "ill", "well")
    rows = zip(X.tolist(), y.tolist(), strict=True)
    lines = [json.dumps({"a": a, "state": label, "b": b}) for (a, b), label in rows]
    path = tmp_path / "people.jsonl"
    path.write_text("\ufeff\n" + "\n\n".join(lines))
    return X, y, path


@pytest.mark.parametrize("target", ["state", 1, -2])
def test_a_table(people, target):
    X, y, path = people
    register_format(JsonLines())
    packed = path.with_suffix(".ndjson.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        table = read_table(file, target=target)
        np.testing.assert_array_equal(table.data, X)
        np.testing.assert_array_equal(table.target, y)
        assert table.feature_names == ("a", "b")
    assert known_formats() == (*OURS, "jsonl")


def test_a_part_is_a_span_of_lines(people):
    from exclusivity.dask.files import FileLayout, read_part

    X, y, path = people
    register_format(JsonLines())
    layout = FileLayout(format_of(path), Reading("state", n_features=2), ("a", "b"))
    for block_bytes in (1, 500, 10**6):
        parts = layout.format.parts(str(path), layout.reading, block_bytes)
        assert (len(parts) > 1) == (block_bytes < 10**6)
        blocks = [read_part(part, layout) for part in parts]
        np.testing.assert_array_equal(np.vstack([rows for rows, _ in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks if len(labels)]), y)
    path.write_text('{"a": 1, "state": 2, "b": 3}\n{"a": 1, "state": 2, "b": "x"}\n')
    with pytest.raises(DataFileError, match=r"people.jsonl, line 2: .*finite numbers"):
        read_part(FilePart(str(path), 1, (3, 80)), layout)


def test_workers_get_the_format_itself(people):
    """They have not registered anything."""
    cloudpickle = pytest.importorskip("cloudpickle")
    sent = pickle.loads(cloudpickle.dumps(JsonLines()))  # noqa: S301 -- our own
    np.testing.assert_array_equal(sent.read(str(people[2]), Reading("state")).data, people[0])


def test_commands_read_it(people, tmp_path, monkeypatch, capsys):
    _, y, path = people
    register_format(JsonLines())
    model = str(tmp_path / "m.erm")
    assert main(["fit", str(path), "--target", "state", "--folds", "0", "-o", model]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    capsys.readouterr()
    assert main(["predict", model, "-", "--format", "jsonl"]) == 0
    label, *labels = capsys.readouterr().out.split()
    assert label == "label"
    assert np.mean(labels == y) > 0.9
    assert main(["fit", str(path), "--target", "sate", "-o", model]) == 3
    assert "no column 'sate'; did you mean 'state'?" in capsys.readouterr().err
    for option in (["--delimiter", ";"], ["--no-header"]):
        assert main(["fit", str(path), "--target", "state", "-o", model, *option]) == 2
        assert f"{option[0]} is for CSV files, but {path} is read as jsonl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    assert "jsonl" in capsys.readouterr().out


class Pairs(Format):
    """Not text: pairs of float32, the second of them the target."""

    name, suffixes = "pairs", (".f32",)

    def columns(self, source, reading):
        return 2

    def read(self, source, reading):
        rows = np.fromfile(source, np.float32).reshape(-1, 2).astype(float)
        return TableData(rows[:, :1], rows[:, 1], None)


def test_what_is_not_text_is_one_part_and_comes_from_standard_input(tmp_path, monkeypatch):
    register_format(Pairs())
    path = tmp_path / "x.f32"
    rows = np.array([[k, k % 2] for k in range(40)], np.float32)
    rows.tofile(path)
    chosen = format_of(path)
    [part] = chosen.parts(str(path), Reading(1), 1)
    assert (part.n_bytes, part.span) == (320, None)
    np.testing.assert_array_equal(chosen.read_part(part, Reading(1)).data, rows[:, :1])
    with pytest.raises(ValueError, match="does not say what the file is"):
        format_of("x.f32.gz")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    argv = ["fit", "-", "--format", "pairs", "--target", "1", "--folds", "0", "-o", str(tmp_path / "m.erm")]
    assert main(argv) == 0


@pytest.mark.parametrize(
    ("suffixes", "message"),
    [
        ((".csv",), "'.csv' are of the format 'csv'; choose another"),
        (".jsonl", "has the suffix '.'; expected a tuple"),
        ((".JSONL",), "in small letters"),
        (("jsonl",), "one dot in front"),
        ((".gz",), "not of compressed files"),
        ((".json.lines",), "one dot"),
    ],
)
def test_suffixes_that_cannot_be(suffixes, message):
    wrong = JsonLines()
    wrong.suffixes = suffixes
    with pytest.raises(ValueError, match=message):
        register_format(wrong)
    assert known_formats() == OURS


def test_a_format_without_a_name():
    class Nameless(TextFormat):
        columns, read = JsonLines.columns, JsonLines.read

    with pytest.raises(ValueError, match="Nameless does not say its name and suffixes"):
        register_format(Nameless())


def test_not_an_instance_and_the_same_name_again():
    with pytest.raises(TypeError, match=r"must be an instance of a subclass of Format; got <class"):
        register_format(JsonLines)
    first, second = JsonLines(), JsonLines()
    register_format(first)
    register_format(second)
    assert format_named("jsonl") is second


def install(folder, entries):
    """A package with entry points, as an installer leaves it."""
    (folder / "own_pairs.py").write_text(
        "from exclusivity.datasets import Format\n"
        "class Pairs(Format):\n"
        "    name, suffixes = 'pairs', ('.f32',)\n"
        "    def columns(self, source, reading): return 2\n"
        "    def read(self, source, reading): raise NotImplementedError\n"
    )
    info = folder / "own_pairs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-pairs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[exclusivity.formats]\n{entries}\n")


def test_installed_packages_bring_theirs(tmp_path, monkeypatch):
    install(tmp_path, "pairs = own_pairs:Pairs")
    monkeypatch.syspath_prepend(tmp_path)
    assert format_of("x.f32").name == "pairs"
    assert known_formats() == (*OURS, "pairs")
    mine = Pairs()
    register_format(mine)
    assert format_named("pairs") is mine


def test_a_broken_package_is_named_and_does_no_harm(tmp_path, monkeypatch):
    install(tmp_path, "zzz = own_pairs:Nothing\npairs = own_pairs:Pairs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match=r"the format 'zzz', own_pairs:Nothing of another package, cannot"):
        assert known_formats() == (*OURS, "pairs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert format_of("x.csv").name == "csv"


def test_a_command_in_the_table_has_what_all_have(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "weights", SimpleNamespace(**names_of("add-a-command.md")))
    monkeypatch.chdir(tmp_path)
    assert "write the weight of every feature" in build_parser().format_help()
    rows = "".join(f"{k},{k % 3},{'abc'[k % 2]}\n" for k in range(12))
    for name, extra in (("two", ""), ("three", "1,2,c\n")):
        (tmp_path / f"{name}.csv").write_text("x,y,state\n" + rows + extra)
        fit = ["fit", f"{name}.csv", "--target", "state", "--folds", "0", "-q", "-o", f"{name}.erm"]
        assert main(fit) == 0
    assert main(["weights", "two.erm", "-o", "weights.csv"]) == 0
    assert (tmp_path / "weights.csv").read_text().splitlines()[0] == "feature,weight"
    capsys.readouterr()
    for output, code in (("weights.csv", 0), ("two.csv", 3), ("two.erm", 3)):
        assert main(["weights", "two.erm", "-o", output]) == code
    assert main(["weights", "two.erm"]) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["feature", "x", "y"]
    assert main(["weights", "three.erm"]) == 1
    assert "more than two classes" in capsys.readouterr().err
