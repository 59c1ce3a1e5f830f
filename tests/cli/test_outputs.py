"""An output that cannot be written is refused before anything is read; devices do what they are for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRITES = {
    "fit": ["fit", "nowhere.csv", "--target", "state", "-o"],
    "path": ["path", "nowhere.csv", "--target", "state", "-o"],
    "predict": ["predict", "nowhere.erm", "nowhere.csv", "-o"],
    "certify": ["certify", "nowhere.erm", "nowhere.csv", "-o"],
    "inspect": ["inspect", "nowhere.erm", "--html"],
    "export": ["export", "nowhere.erm", "-o"],
}
"""Their inputs are not there: an error about the output shows that they have not been looked for."""


@pytest.fixture
def places(tmp_path):
    """Names that nothing can be written to, with what is said about each."""
    Path(tmp_path / "folder").mkdir()
    Path(tmp_path / "file").touch()
    Path(tmp_path / "lost").symlink_to("/nowhere/at/all")
    Path(tmp_path / "circle").symlink_to("circle")
    return {
        "folder": "folder is a folder; give the name of a file",
        "new/": "new/ is a folder; give the name of a file",
        "none/m": "there is no folder",
        "file/m": "cannot write file/m (Not a directory)",
        "lost": "cannot write lost: there is no folder /nowhere/at",
        "circle": "cannot write circle (Too many levels of symbolic links)",
        "/proc/m": "cannot write /proc/m (No such file or directory)",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("command", WRITES)
def test_what_cannot_be_written(erm, places, command):
    for name, message in places.items():
        code, _, err = erm(*WRITES[command], name)
        assert code == 3
        assert message in err
        assert "nowhere." not in err
        assert "did you mean" not in err


@pytest.mark.parametrize("command", ["fit", "path"])
def test_a_model_is_a_regular_file(erm, command):
    os.mkfifo("pipe")
    for name in ("/dev/null", "pipe"):
        code, _, err = erm(*WRITES[command], name)
        assert code == 3
        assert f"{name} is a device or a pipe; a model needs a regular file" in err


@pytest.mark.parametrize("command", ["fit", "path", "inspect", "export"])
def test_what_is_no_text_does_not_go_to_standard_output(erm, command):
    for name in ("-", "/dev/stdout", "/dev/fd/1"):
        code, _, err = erm(*WRITES[command], name)
        assert code == 2
        assert "cannot go to standard output; give the name of a file" in err


def test_a_link_to_a_file_that_is_not_there_yet(erm, tmp_path):
    """The file is created where the link leads, as other programs do."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.csv").symlink_to("elsewhere/new.csv")
    assert erm("predict", "soft.erm", "new.csv", "-o", "link.csv")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "elsewhere" / "new.csv").read_text().startswith("label\n")


def test_predictions_to_devices(erm):
    expected = erm("predict", "soft.erm", "new.csv")
    assert erm("predict", "soft.erm", "new.csv", "-o", "/dev/null") == (0, "", expected[2])
    for name in ("/dev/stdout", "/dev/fd/1", "-"):
        assert erm("predict", "soft.erm", "new.csv", "-o", name) == expected


def test_standard_output_that_is_a_file(erm, tmp_path):
    """What stands in it stays: predictions are added where standard output is, and nothing is replaced."""
    program = [sys.executable, "-m", "exclusivity"]
    arguments = ["predict", "soft.erm", "new.csv", "--quiet", "-o", "/dev/stdout"]
    with open("all.csv", "w") as stream:
        stream.write("before\n")
        stream.flush()
        subprocess.run([*program, *arguments], stdout=stream, check=True)  # noqa: S603
        stream.seek(0, os.SEEK_END)
        stream.write("after\n")
    lines = Path("all.csv").read_text().splitlines()
    assert (lines[0], lines[1], lines[-1], len(lines)) == ("before", "label", "after", 83)


def test_what_is_not_there(erm, tmp_path):
    """A folder is no file that may have been meant."""
    (tmp_path / "trains").mkdir()
    (tmp_path / "train.csv").unlink()
    code, _, err = erm("fit", "train", "--format", "csv", "--target", "state", "-o", "m.erm")
    assert code == 3
    assert "there is no file train; check the path" in err
