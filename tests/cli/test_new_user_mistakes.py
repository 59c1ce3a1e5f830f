"""What a new user does wrong: the message says what to do, the exit code what kind of mistake it was."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS_WITH_DATA = {
    "fit": ["fit", "DATA", "--target", "state", "-o", "m.erm"],
    "path": ["path", "DATA", "--target", "state"],
    "predict": ["predict", "soft.erm", "DATA"],
    "evaluate": ["evaluate", "soft.erm", "DATA"],
    "certify": ["certify", "hard.erm", "DATA"],
    "inspect": ["inspect", "soft.erm", "--html", "r.html", "--data", "DATA"],
}
COMMANDS_WITH_MODEL = {
    "predict": ["predict", "MODEL", "new.csv"],
    "evaluate": ["evaluate", "MODEL", "test.csv"],
    "certify": ["certify", "MODEL", "test.csv"],
    "inspect": ["inspect", "MODEL"],
    "export": ["export", "MODEL", "-o", "m.onnx"],
}
COMMANDS_THAT_WRITE = {
    "fit": ["fit", "train.csv", "--target", "state", "-o", "OUT"],
    "path": ["path", "train.csv", "--target", "state", "-o", "OUT"],
    "predict": ["predict", "soft.erm", "new.csv", "-o", "OUT"],
    "certify": ["certify", "hard.erm", "new.csv", "-o", "OUT"],
    "inspect": ["inspect", "soft.erm", "--html", "OUT"],
    "export": ["export", "soft.erm", "-o", "OUT"],
}


def cases(table):
    return pytest.mark.parametrize("command", table.values(), ids=table)


def put(command, **names):
    return [names.get(word, word) for word in command]


def check(result, *words, code=3):
    found, out, err = result
    assert found == code
    assert out == ""
    assert "error: " in err
    assert "Traceback" not in err
    for word in words:
        assert word in err


@cases(COMMANDS_WITH_DATA)
def test_wrong_path(erm, command):
    name = "trian.csv" if command[0] in ("fit", "path") else "tets.csv"
    right = {"trian.csv": "train.csv", "tets.csv": "test.csv"}[name]
    check(erm(*put(command, DATA=name)), f"there is no file {name}", f"did you mean {right}?")
    check(erm(*put(command, DATA="nowhere/x.csv")), "there is no folder nowhere")


@pytest.mark.parametrize(
    ("name", "news"),
    [
        ("bad.parquet", "not a Parquet file that pyarrow can read"),
        ("bad.npy", "not a .npy file"),
        ("bad.csv", "quote"),
    ],
)
@pytest.mark.parametrize("target", ["state", "-1"])
def test_a_damaged_file_is_the_news_and_not_its_column(erm, tmp_path, name, news, target):
    (tmp_path / name).write_bytes(b'"never closed\n1,2\n')
    check(erm("fit", name, "--target", target, "-o", "m.erm"), name, news)


@cases(COMMANDS_WITH_MODEL)
def test_wrong_model(erm, command):
    check(erm(*put(command, MODEL="sfot.erm")), "there is no file sfot.erm", "did you mean soft.erm?")
    check(erm(*put(command, MODEL="train.csv")), "train.csv", "no model file", "erm fit")
    check(erm(*put(command, MODEL="empty.csv")), "empty.csv", "the file is empty")


@cases({name: COMMANDS_WITH_DATA[name] for name in ("predict", "evaluate", "certify", "inspect")})
def test_width_mismatch(erm, command):
    check(
        erm(*put(command, DATA="narrow.csv")), "narrow.csv lacks 'f', 'g'", "Use data with the same columns"
    )


def test_width_mismatch_without_names(erm):
    check(erm("predict", "svm.erm", "narrow.csv"), "has 4 columns", "fitted to 6 features", "--target")
    check(erm("evaluate", "svm.erm", "test.csv"), "--target", "'state'")
    check(erm("predict", "soft.erm", "test.csv", "--no-header"), "has 7 columns", "--ignore")


def test_a_wide_libsvm_file(erm):
    with open("wide.svm", "w") as stream:
        stream.write("+1 1:1 9:2\n")
    check(erm("predict", "svm.erm", "wide.svm"), "wide.svm, line 1", "9", "6")


def test_a_narrow_libsvm_file_is_warned_of(erm):
    with open("narrow.svm", "w") as stream:
        stream.write("+1 1:1 2:2\n")
    code, _, err = erm("predict", "svm.erm", "narrow.svm")
    assert code == 0
    assert "the largest index in narrow.svm is 2" in err


@cases(COMMANDS_WITH_DATA)
def test_empty_file(erm, command):
    check(erm(*put(command, DATA="empty.csv")), "empty.csv is empty", "give another file")


@cases({name: command for name, command in COMMANDS_WITH_DATA.items() if name != "inspect"})
def test_wrong_column(erm, command):
    if command[0] in ("fit", "path"):
        command = [*command[:3], "stat", *command[4:]]
    else:
        command = [*command, "--target", "stat"]
    check(erm(*put(command, DATA="test.csv")), "no column 'stat'", "did you mean 'state'?")
    command = [*put(command, DATA="test.csv", stat="12")]
    check(erm(*command), "no column 12", "0 to 6")
    command = [*put(command, **{"12": "zebra"})]
    check(erm(*command), "no column 'zebra'; there are 'a b', 'c'")


@cases(COMMANDS_THAT_WRITE)
def test_places_that_cannot_be_written(erm, command, tmp_path):
    (tmp_path / "folder").mkdir()
    check(erm(*put(command, OUT="folder")), "folder is a folder")
    check(erm(*put(command, OUT="none/x")), "there is no folder", "mkdir -p")


PERMISSIONS = """
import os, sys
from exclusivity.cli.main import main

sys.stdout = open(os.devnull, "w")
for argv in (["evaluate", "hard.erm", "test.csv"], ["inspect", "hard.erm", "--html", "r.html"]):
    assert main(argv) == 0  # imports what is imported late
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for argv in (
    ["fit", "secret.csv", "--target", "state", "-o", "open/m.erm"],
    ["fit", "train.csv", "--target", "state", "-o", "locked/m.erm"],
    ["predict", "secret.erm", "new.csv"],
    ["predict", "soft.erm", "secret.csv"],
    ["predict", "soft.erm", "new.csv", "-o", "locked/out.csv"],
    ["evaluate", "soft.erm", "secret.csv"],
    ["certify", "hard.erm", "secret.csv"],
    ["inspect", "secret.erm"],
    ["inspect", "soft.erm", "--html", "locked/r.html"],
    ["export", "soft.erm", "-o", "locked/m.onnx"],
    ["path", "secret.csv", "--target", "state"],
):
    code = main(argv)
    print(code, argv, file=sys.stderr, flush=True)
    assert code == 3, argv
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX permissions")
def test_no_permission(world, tmp_path):
    import shutil

    for name in ("train.csv", "test.csv", "new.csv", "soft.erm", "hard.erm"):
        shutil.copy(world / name, tmp_path / name)
    for name, mode in (("locked", 0o555), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    for name, source in (("secret.csv", "train.csv"), ("secret.erm", "soft.erm")):
        shutil.copy(world / source, tmp_path / name)
        (tmp_path / name).chmod(0o000)
    tmp_path.chmod(0o755)
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PERMISSIONS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("no permission") == 11
    assert run.stderr.count("chmod u+rw") == 7
    assert run.stderr.count("choose another place") == 4
    assert "Traceback" not in run.stderr


class TestOtherMistakes:
    def test_no_target(self, erm):
        check(erm("fit", "train.csv", "-o", "m.erm"), "--target", "'state'")

    def test_a_target_that_is_a_measurement(self, erm):
        check(erm("fit", "new.csv", "--target", "c", "-o", "m.erm"), "80 different values", "--target")

    def test_a_text_column_among_the_features(self, erm):
        code, out, _ = erm("fit", "shuffled.csv", "--target", "state", "-o", "m.erm")
        assert code == 0
        assert "left out: no level is in 2 rows or more, as in a column that names rows" in out
        assert erm("fit", "shuffled.csv", "--target", "state", "--ignore", "row", "-o", "m.erm")[0] == 0

    def test_columns_that_tell_nothing_are_named(self, erm):
        with open("messy.csv", "w") as stream:
            stream.write("id,age,sex,weight,smoker,state\n")
            stream.writelines(f"P{i},{30 + i},f,61.5,no,{'ill' if i % 3 else 'well'}\n" for i in range(9))
        code, out, _ = erm("fit", "messy.csv", "--target", "state", "-o", "m.erm")
        assert code == 0
        rows = {line.split()[0]: line for line in out.splitlines() if "left out: " in line}
        assert list(rows) == ["id", "sex", "weight", "smoker"]
        assert re.search("^rows +9\nfeatures +5 .4 of them left out.$", out, re.MULTILINE)
        check(erm("fit", "messy.csv", "--target", "state", "--no-header", "-o", "m.erm"), "'state'")

    def test_several_columns_to_ignore(self, erm, capsys):
        with pytest.raises(SystemExit):
            erm("fit", "train.csv", "--target", "state", "-o", "m.erm", "--ignore", "c", "d")
        assert (
            "'d' is one argument too many (several columns to leave out: --ignore A"
            in capsys.readouterr().err
        )

    def test_a_column_that_was_renamed(self, erm, tmp_path):
        text = (tmp_path / "new.csv").read_text().replace("a b,c", "A B,c", 1)
        (tmp_path / "renamed.csv").write_text(text)
        check(erm("predict", "soft.erm", "renamed.csv"), "lacks 'a b'", "did you mean 'A B'?")

    def test_one_class(self, erm):
        with open("one.csv", "w") as stream:
            stream.write("a,b\n1,x\n2,x\n")
        check(erm("fit", "one.csv", "--target", "b", "-o", "m.erm"), "label x", "two classes")

    def test_data_without_classes(self, erm):
        check(erm("evaluate", "soft.erm", "new.csv"), "new.csv has no column 'state'", "erm predict")
        lines = Path("new.csv").read_text().splitlines()
        with open("ids.csv", "w") as stream:
            stream.writelines(f"{'id' if i == 0 else i},{line}\n" for i, line in enumerate(lines))
        check(
            erm("evaluate", "soft.erm", "ids.csv"),
            "ids.csv has no column 'state', which held the classes of soft.erm; say --target if it is 'id'",
        )
        code, out, _ = erm("certify", "hard.erm", "ids.csv", "--quiet")
        assert code == 0
        assert "certified accuracy" not in out

    def test_classes_of_another_kind(self, erm):
        with open("other.csv", "w") as stream:
            stream.write("a b,c,d,e,f,g,state\n1,2,3,4,5,6,7\n")
        check(erm("evaluate", "soft.erm", "other.csv"), "(7)", "(ill, well)")
        check(erm("certify", "hard.erm", "other.csv"), "(7)", "(ill, well)")

    def test_a_class_that_training_did_not_have(self, erm, tmp_path):
        lines = (tmp_path / "test.csv").read_text().splitlines()
        lines[1] = lines[1].replace("ill", "dead").replace("well", "dead")
        (tmp_path / "new-class.csv").write_text("\n".join(lines))
        for command in (["evaluate", "soft.erm"], ["certify", "hard.erm"]):
            code, _, err = erm(*command, "new-class.csv")
            assert code == 0
            told = (
                f"1 row of new-class.csv with a class unknown to {command[1]}, such as dead, cannot be right"
            )
            assert told in err

    def test_several_candidates_for_the_target(self, erm, tmp_path):
        text = (tmp_path / "shuffled.csv").read_text().replace("state", "class", 1)
        (tmp_path / "renamed.csv").write_text(text)
        check(erm("evaluate", "soft.erm", "renamed.csv"), "--target", "'row', 'class'")

    def test_a_feature_as_target(self, erm):
        check(erm("evaluate", "soft.erm", "test.csv", "--target", "c"), "'c' is a feature")

    def test_target_of_a_libsvm_file(self, erm):
        check(
            erm("fit", "rows.svm", "--target", "y", "-o", "m.erm"), "--target", "LIBSVM", "--format", code=2
        )
        check(erm("predict", "svm.erm", "rows.svm", "--ignore", "y"), "--ignore", "LIBSVM", code=2)

    def test_a_csv_file_that_is_called_text(self, erm, tmp_path):
        (tmp_path / "data.txt").write_text("a,b\n1,2\n")
        check(erm("predict", "svm.erm", "data.txt"), "data.txt, line 1", "--format")

    def test_numbers_in_the_first_line(self, erm, tmp_path):
        (tmp_path / "data.csv").write_text("1,2,0\n3,4,1\n5,6,0\n")
        check(erm("fit", "data.csv", "--target", -1, "-o", "m.erm"), "--no-header")
        assert erm("fit", "data.csv", "--target", -1, "--no-header", "-o", "m.erm")[0] == 0

    @pytest.mark.parametrize("title", ["Report of 2024;;", "Report of 2024\n"])
    def test_a_title_above_the_names(self, erm, tmp_path, title):
        (tmp_path / "data.csv").write_text(f"{title}\na;b;y\n1;2;0\n3;4;1\n")
        check(erm("fit", "data.csv", "--target", "y", "-o", "m.erm"), "Is it a title")

    def test_an_unknown_ending(self, erm, tmp_path):
        (tmp_path / "data.xyz").write_text("a,b\n1,2\n")
        check(erm("fit", "data.xyz", "--target", "b", "-o", "m.erm"), "--format")

    def test_a_spreadsheet(self, erm, tmp_path):
        (tmp_path / "data.XLSX").write_bytes(b"PK")
        check(erm("fit", "data.XLSX", "--target", "b", "-o", "m.erm"), "spreadsheet", "save the sheet as CSV")

    def test_csv_options_for_other_formats(self, erm):
        check(erm("fit", "rows.svm", "-o", "m.erm", "--no-header"), "--no-header is for CSV", code=2)
        check(erm("fit", "rows.svm", "-o", "m.erm", "--delimiter", "tab"), "--delimiter is for CSV", code=2)

    def test_standard_input_without_format(self, erm):
        check(erm("fit", "-", "--target", "b", "-o", "m.erm"), "--format", code=2)

    def test_parameters_that_contradict_each_other(self, erm):
        result = erm(
            "fit", "train.csv", "--target", "state", "-o", "m.erm", "--exclusivity", 2, "--solver", "newton"
        )
        check(result, "newton", "exclusive", code=2)

    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("--cost", "much", "invalid float value"),
            ("--members", "2.5", "invalid int value"),
            ("--voting", "fair", "choose from"),
        ],
    )
    def test_values_that_are_not_allowed(self, erm, capsys, option, value, words):
        with pytest.raises(SystemExit) as stop:
            erm("fit", "train.csv", "--target", "state", "-o", "m.erm", option, value)
        assert stop.value.code == 2
        err = capsys.readouterr().err
        assert f"argument {option}" in err
        assert words in err

    @pytest.mark.parametrize(
        "options", [(), ("--additive",), ("--max-broken", 1)], ids=["", "encoded", "robust"]
    )
    def test_a_column_that_is_the_target(self, erm, options):
        lines = Path("train.csv").read_text().splitlines()
        with open("leak.csv", "w") as stream:
            stream.writelines(
                f"{'copy' if i == 0 else 1 + line.endswith('ill')},{line}\n" for i, line in enumerate(lines)
            )
        fit = ["fit", "leak.csv", "--target", "state", "-o", "m.erm", "--folds", 0, *options]
        code, _, err = erm(*fit)
        assert code == 0
        assert "Column 'copy' equals the target" in err
        assert err.count("equals the target") == 1
        code, _, err = erm(*fit, "--drop", "copy", "--force")
        assert "equals" not in err
        assert "determines" not in err

    def test_monotone_rules_of_a_table(self, erm):
        fit = ["fit", "train.csv", "--target", "state", "-o", "m.erm", "--folds", 0, "--additive"]
        assert erm(*fit, "--monotonic", "c=1")[0] == 0
        lines = [",".join(["0"] * 6), ",".join(["0", "500", *["0"] * 4])]
        Path("two.csv").write_text("\n".join(["a b,c,d,e,f,g", *lines]) + "\n")
        for sign, order in ((1, 1), (-1, -1)):
            erm(*fit, "--force", "--monotonic", f"c={sign}")
            out = erm("predict", "m.erm", "two.csv", "--scores")[1].splitlines()[1:]
            low, high = (float(line.split(",")[1]) for line in out)
            assert order * (high - low) >= 0
