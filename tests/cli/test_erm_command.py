"""``erm`` as a person at a terminal meets it."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from exclusivity import __version__
from exclusivity.cli.files import CommandError
from exclusivity.cli.main import main


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"erm {__version__}"


@pytest.mark.parametrize("argv", [["dmo"], ["fit", "x.csv", "-o", "m", "--members", "many"]])
def test_a_wrong_command_line_exits_with_2_and_usage(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: erm" in capsys.readouterr().err


def test_no_command_shows_three_that_work(capsys, tmp_path, monkeypatch):
    """The lines that it shows are run as they stand, one after the other."""
    monkeypatch.setattr(sys, "argv", ["erm"])
    assert main() == 2  # to a script an empty command line is a mistake
    out, err = capsys.readouterr()
    assert out == ""
    lines = re.findall(r"^  (erm .+?)  ", err, re.MULTILINE)
    assert [line.split()[1] for line in lines] == ["fit", "evaluate", "predict"]
    monkeypatch.chdir(tmp_path)
    for name in ("heart.csv", "test.csv", "new.csv"):
        rows = [f"{i % 7},{i % 5},{'yes' if i % 7 > 3 else 'no'}" for i in range(30)]
        (tmp_path / name).write_text("\n".join(["age,pulse,disease", *rows]))
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0
    assert (tmp_path / "predictions.csv").exists()
    assert max(map(len, err.splitlines())) <= 100


@pytest.mark.parametrize(
    ("command", "needs"), [("fit", "DATA [DATA ...] -o FILE"), ("predict", "MODEL DATA"), ("demo", "")]
)
def test_usage_is_what_a_command_needs(command, needs, capsys):
    for argv in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 0
        usage = capsys.readouterr().out.splitlines()[0]
        assert sorted(usage.split()) == sorted(f"usage: erm {command} {needs} [options]".split())


def test_help_alone(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["help"])
    assert stop.value.code == 0
    assert "COMMAND" in capsys.readouterr().out


def test_demo_breaks_columns_and_says_what_stands(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "erm-demo").mkdir()  # of an earlier run
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("0  "))
    proven = [float(line.split()[1].rstrip("%")) for line in lines[at : at + 5]]
    assert proven == sorted(proven, reverse=True)
    assert proven[0] > 90
    assert proven[3] > 75
    assert re.search(r"look broken: +worst texture, worst area\n", out)
    stand, right = map(float, re.findall(r"([\d.]+)% (?:provably|of them)", out))
    assert stand > 80
    assert right > 95
    agree, of = map(int, re.search(r"(\d+) of (\d+) test predictions agree", out).groups())
    assert agree == of == 285
    assert float(re.search(r"factor (\d+\.\d+)", out).group(1)) == pytest.approx(100, abs=0.01)
    assert "<svg" in (tmp_path / "erm-demo" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "erm-demo" / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert main(["demo"]) == 0
    assert "Picture: needs matplotlib" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "erm-demo").iterdir()] == ["report.html"]


def test_demo_agrees_with_the_readme(capsys, tmp_path, monkeypatch):
    """The same rows and settings: one set of figures."""
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = re.findall(r"(?m)^\d +([\d.]+)%$", capsys.readouterr().out)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    stated = re.findall(r"of 30 columns broken: ([\d.]+) proven", readme)
    assert [float(share) / 100 for share in shown[:4]] == pytest.approx(list(map(float, stated)), abs=0.01)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["inspect", "m.erm", "--data", "t.csv"], "--data is for the report; add --html FILE"),
        (
            ["fit", "t.csv", "-o", "m.erm", "--loss", "logistic", "--p", "1"],
            "--p: p=1.0 is the power of the hinge",
        ),
        (["path", "t.csv", "--solver", "exclusive"], "--solver: solver='exclusive' needs exclusivity > 1"),
    ],
)
def test_a_wrong_command_line_is_told_before_files_are_read(argv, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert err.startswith(f"erm {argv[0]}: error:")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["fit", "x", "-o", "m", "--cost", "much"], "argument --cost: invalid float value: 'much'"),
        (["fit", "x", "-o", "m", "--features", "0"], "--features: invalid whole number >= 1 value: '0'"),
        (["train", "x.csv"], "argument COMMAND: invalid choice: 'train' (choose from"),
        (
            ["fit", "x.csv", "--target", "y"],
            "required: -o/--output",
        ),
    ],
)
def test_what_the_parser_refuses(argv, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_debug_shows_the_traceback():
    with pytest.raises(CommandError, match="--data is for the report"):
        main(["--debug", "inspect", "m.erm", "--data", "t.csv"])


def test_interruption_has_its_own_exit_code(monkeypatch, capsys):
    def interrupted(_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("exclusivity.cli.demo.run", interrupted)
    assert main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_help_does_not_wait_for_scikit_learn():
    code = (
        "import sys; from exclusivity.cli.main import build_parser; build_parser().format_help(); "
        "sys.exit('sklearn' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_public_names():
    import exclusivity

    assert "ERMClassifier" in dir(exclusivity)
    assert exclusivity.ERMClassifier.__name__ == "ERMClassifier"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = exclusivity.Nothing
