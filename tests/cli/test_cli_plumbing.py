"""Formats, standard input, progress, help: what all commands share."""

import argparse
import bz2
import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from exclusivity.cli import output
from exclusivity.cli.files import EXIT_STATUS
from exclusivity.cli.main import COMMANDS, build_parser, main
from exclusivity.cli.output import Progress
from readers import read_csv


class TestFormats:
    @pytest.fixture
    def expected(self, erm):
        return erm("predict", "soft.erm", "test.csv", "--target", "state")[1]

    def test_compressed(self, erm, expected, tmp_path):
        text = (tmp_path / "test.csv").read_bytes()
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
        (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(text))
        for name in ("t.csv.gz", "t.csv.bz2"):
            assert erm("predict", "soft.erm", name, "--target", "state")[1] == expected
        (tmp_path / "short.csv.gz").write_bytes(gzip.compress(text)[:-20])
        code, _, err = erm("predict", "soft.erm", "short.csv.gz", "--target", "state")
        assert code == 3
        assert "short.csv.gz" in err

    @pytest.mark.parametrize(
        ("name", "options", "delimiter"),
        [
            ("t.tsv", [], "\t"),
            ("t.csv", ["--delimiter", "semicolon"], ";"),
            ("t.txt", ["--format", "csv"], ","),
        ],
    )
    def test_delimiters_and_formats(self, erm, expected, tmp_path, name, options, delimiter):
        text = (tmp_path / "test.csv").read_text().replace(",", delimiter)
        other = tmp_path / "other"
        other.mkdir()
        (other / name).write_text(text)
        assert erm("predict", "soft.erm", other / name, "--target", "state", *options)[1] == expected

    @pytest.fixture
    def parquet(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        table = read_csv(tmp_path / "test.csv", target="state")
        columns = {name: table.data[:, j] for j, name in enumerate(table.names)}
        columns |= {"state": table.target.tolist(), "note": ["x"] * len(table.target)}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    def test_parquet(self, erm, expected, parquet):
        code, out, err = erm("predict", "soft.erm", "t.parquet")
        assert (code, out) == (0, expected)
        assert "ignoring 'state', 'note'" in err
        told = json.loads(erm("evaluate", "soft.erm", "t.parquet", "--target", "state", "--json")[1])
        assert (
            told["accuracy"] == json.loads(erm("evaluate", "soft.erm", "test.csv", "--json")[1])["accuracy"]
        )

    def test_parquet_on_standard_input(self, erm, expected, parquet, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(parquet.read_bytes())))
        assert erm("predict", "soft.erm", "-", "--format", "parquet")[1] == expected

    def test_a_broken_parquet_file(self, erm, tmp_path):
        (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
        code, _, err = erm("predict", "soft.erm", "broken.parquet")
        assert code == 3
        assert "broken.parquet" in err

    @pytest.mark.parametrize("kind", ["csv", "libsvm"])
    def test_standard_input(self, erm, expected, tmp_path, monkeypatch, kind):
        name = "test.csv" if kind == "csv" else "rows.svm"
        text = (tmp_path / name).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert erm("predict", "soft.erm", "-", "--format", kind)[1] == expected

    def test_fit_from_standard_input(self, erm, tmp_path, monkeypatch):
        text = b"\xef\xbb\xbf\r\n" + (tmp_path / "train.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert erm("fit", "-", "--format", "csv", "--target", "state", "-o", "m.erm")[0] == 0
        assert erm("predict", "m.erm", "new.csv")[1] == erm("predict", "soft.erm", "new.csv")[1]

    def test_a_name_that_looks_like_a_number(self, erm, tmp_path):
        (tmp_path / "n.csv").write_text("1,0,x\n5,1,2\n6,0,3\n7,1,4\n")
        assert erm("fit", "n.csv", "--target", "0", "-o", "m.erm")[0] == 0
        assert json.loads(erm("inspect", "m.erm", "--json")[1])["feature_names"] == ["1", "x"]


class TestProgress:
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def test_a_terminal_sees_one_line(self, monkeypatch):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("exclusivity.cli.output._TERMINAL_INTERVAL", 0.0)
        stream = self.Terminal()
        progress = Progress("fit", stream)
        progress.update("reading " + "x" * 500)
        progress.clear()
        text = stream.getvalue()
        assert text.startswith("\r\x1b[Kerm fit: reading xxx")
        assert text.endswith("\r\x1b[K")
        assert "\n" not in text
        assert len(text) < 300

    def test_a_log_sees_lines_after_a_while(self, monkeypatch):
        clock = iter([0.0, 1.0, 6.0, 7.0, 12.0])
        monkeypatch.setattr("exclusivity.cli.output.monotonic", lambda: next(clock))
        stream = io.StringIO()
        progress = Progress("fit", stream)
        for text in ("one", "two", "three", "four"):
            progress.update(text)
        assert stream.getvalue() == "erm fit: two\nerm fit: four\n"

    def test_reading_and_training_are_told(self, erm, monkeypatch):
        monkeypatch.setattr("exclusivity.cli.output._LOG_INTERVAL", 0.0)
        code, out, err = erm("fit", "train.csv", "--target", "state", "-o", "m.erm")
        assert code == 0
        assert re.search(r"reading train.csv: \d+% of", err)
        assert "training on 120 rows of 6 features" in err
        assert "well against ill: iteration 1" in err
        assert "iteration 1," not in out
        assert erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--quiet")[2] == ""


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_explains_itself(self, command, capsys):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        out = capsys.readouterr().out
        assert stop.value.code == 0
        assert f"usage: erm {command}" in out
        assert COMMANDS[command].DESCRIPTION[:20] in out

    @pytest.mark.parametrize("command", ["fit", "path"])
    def test_help_fits_on_a_screen_and_the_rest_is_grouped(self, command, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        shown = []
        for option in ("--help", "--help-all"):
            with pytest.raises(SystemExit) as stop:
                main([command, option])
            assert stop.value.code == 0
            shown.append(capsys.readouterr().out)
        common, everything = shown
        assert len(common.splitlines()) <= 40
        for option in ("--help-all", "--target", "--output", "--members", "--voting", "--folds", "--json"):
            assert option in common
        subparsers = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
        options = [name for a in subparsers.choices[command]._actions for name in a.option_strings]
        assert [option for option in options if option not in everything] == []
        for title in ("reading data:", "the model:", "the solver:", "tables:"):
            assert title in everything

    @pytest.mark.parametrize("command", [name for name in COMMANDS if hasattr(COMMANDS[name], "EPILOG")])
    def test_examples_parse(self, command):
        lines = [line.strip() for line in COMMANDS[command].EPILOG.splitlines()]
        examples = [line[line.index("erm ") :] for line in lines if re.match(r"(\S+ \S+ \| )?erm ", line)]
        assert examples
        for example in examples:
            words = example.split(" > ")[0].split()
            assert build_parser().parse_args(words[1:]).command == command

    def test_exit_codes_are_documented(self, capsys):
        with pytest.raises(SystemExit):
            main(["--help"])
        assert EXIT_STATUS in capsys.readouterr().out

    def test_help_is_quick(self):
        # The child tells its own processor time, which does not depend on how busy the machine is.
        code = """
import sys, time
from exclusivity.cli.main import main
try:
    main(["--help"])
finally:
    print(time.process_time(), "sklearn" in sys.modules or "pandas" in sys.modules, file=sys.stderr)
"""
        command = [sys.executable, "-c", code]
        told = [
            subprocess.run(command, check=False, capture_output=True, text=True).stderr.split()  # noqa: S603
            for _ in range(3)
        ]
        # 0.1 s; the bound leaves no room for scikit-learn.
        assert min(float(seconds) for seconds, _ in told) < 0.6
        assert {imported for _, imported in told} == {"False"}


class TestProcess:
    def test_a_reader_that_goes_away(self, world):
        code = "import sys; from exclusivity.cli.main import main; sys.exit(main())"
        erm = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code, "predict", "soft.erm", "new.csv", "--quiet"],
            cwd=world,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        erm.stdout.close()
        err = erm.stderr.read()
        assert erm.wait() == 141
        assert err == b""
        erm.stderr.close()

    def test_debug_may_stand_behind_the_command(self, erm):
        with pytest.raises(Exception, match=r"no file nothing\.erm"):
            erm("inspect", "nothing.erm", "--debug")


class TestOutput:
    def test_json_has_only_what_json_has(self):
        value = {
            1: np.float32(0.5),
            "n": [np.nan, np.inf, -np.inf],
            "t": (np.int64(3), None, True),
            "o": object,
        }
        assert output.plain(value) == {
            "1": 0.5,
            "n": [None, "inf", "-inf"],
            "t": [3, None, True],
            "o": "<class 'object'>",
        }

    def test_labels_with_commas_are_quoted(self, tmp_path):
        output.write_rows(str(tmp_path / "x.csv"), ["label"], [np.array(["a,b", 'c"d'], dtype=object)])
        assert (tmp_path / "x.csv").read_text() == 'label\n"a,b"\n"c""d"\n'
