"""What sdist and wheel hold: all that belongs to them, and nothing that was lying around."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from exclusivity import __version__

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check_dist.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TITLE = f"exclusivity-{__version__}"

FOLDERS = (
    ".github",
    "benchmarks",
    "conda",
    "docs",
    "examples",
    "paper",
    "reproduction",
    "scripts",
    "src",
    "tests",
)
FILES = {
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    "pyproject.toml",
    "setup.py",
}
"""What an sdist is made of."""

LEFT_BEHIND = {
    "docs/_build/html/index.html",
    "docs/api/name.rst",
    "docs/gallery/plot.ipynb",
    "docs/sg_execution_times.rst",
    "mine.erm",
    "reproduction/results/report.md",
    "src/exclusivity/__pycache__/versions.cpython-311.pyc",
    "src/exclusivity/kernels/_compiled.abi3.so",
    "src/exclusivity/kernels/_compiled.cpython-39-darwin.so",
    "src/exclusivity/kernels/_compiled.pyd",
    "tests/__pycache__/test_dist.cpython-311.pyc",
}
"""What work leaves where a build looks."""


def has_compiler():
    """A compiler and the headers of Python. Windows finds its own in ways that are not asked here."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if os.name == "nt":
        return True
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    return bool(shutil.which(command[0])) and Path(sysconfig.get_path("include"), "Python.h").exists()


def built(hook, source, folder, **environment):
    """The file that the build backend makes of ``source``, without the network."""
    command = [sys.executable, "-c", f"from setuptools import build_meta; build_meta.{hook}({str(folder)!r})"]
    run = subprocess.run(  # noqa: S603
        command, cwd=source, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    (path,) = folder.glob("*.whl" if hook == "build_wheel" else "*.tar.gz")
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A copy of what is to be kept, as builds write into their folder, and the names of its files."""
    folder = tmp_path_factory.mktemp("project")
    made = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info")
    made_of_docs = shutil.ignore_patterns("_build", "api", "gallery", "sg_execution_times.rst", "__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=made_of_docs if name == "docs" else made)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder, {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def sdist(kept, tmp_path_factory):
    folder, _ = kept
    for name in LEFT_BEHIND:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("left behind")
    return built("build_sdist", folder, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpack(sdist, tmp_path_factory):
    """The content of the sdist, as often as it is asked for."""

    def unpacked():
        folder = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        return folder / TITLE

    return unpacked


@pytest.fixture(scope="module")
def wheel(unpack, tmp_path_factory):
    return built("build_wheel", unpack(), tmp_path_factory.mktemp("wheel"))


def test_the_sdist_holds_the_project_and_nothing_else(kept, sdist):
    with tarfile.open(sdist) as archive:
        names = {member.name.removeprefix(f"{TITLE}/") for member in archive if member.isfile()}
    assert names - kept[1] == {"PKG-INFO", "setup.cfg", "src/exclusivity.egg-info/SOURCES.txt"}
    assert kept[1] <= names
    assert {"src/exclusivity/kernels/module.c", "tests/test_dist.py", "docs/api.md"} <= names


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    expected = SCRIPT["expected_names"](ROOT, __version__)
    problems = SCRIPT["wheel_problems"]
    assert problems(names, wheel.stat().st_size, expected, n_compiled=int(has_compiler())) == []
    # Not by the list that the script makes of the folder.
    data = {"exclusivity/io/data/manifest.json", "exclusivity/inspection/report.html"}
    assert {"exclusivity/py.typed", *data} <= set(names)
    assert sum(name.endswith(".csv.bz2") for name in names) == 9
    licences = [name for name in names if "/licenses/" in name]
    assert sorted(name.rpartition("/")[2] for name in licences) == ["LICENSE", "LICENSE.Py-FS.txt"]
    assert {name.split("/")[0] for name in names} == {"exclusivity", f"{TITLE}.dist-info"}
    kinds = (".py", ".pyi", ".typed", ".bz2", ".html", ".json", ".txt", ".so", ".pyd")
    assert all(name.endswith(kinds) for name in names if name.startswith("exclusivity/"))


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler and the headers of Python")
def test_one_wheel_is_for_all_pythons_of_a_platform(wheel, tmp_path):
    lowest = re.sub(r"\D", "", PYPROJECT["project"]["requires-python"])
    assert wheel.name.startswith(f"{TITLE}-cp{lowest}-abi3-")
    source = (ROOT / "src" / "exclusivity" / "kernels" / "module.c").read_text(encoding="utf-8")
    assert f"Py_LIMITED_API 0x03{int(lowest[1:]):02X}0000" in source
    zipfile.ZipFile(wheel).extractall(tmp_path)  # noqa: S202 -- our own
    command = "from exclusivity.kernels import compiled; print(getattr(compiled, '__file__', None))"
    for switch, start in (("0", str(tmp_path)), ("1", "None")):
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-c", command],
            env=os.environ | {"EXCLUSIVITY_PURE": switch, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.startswith(start)


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler and the headers of Python")
def test_the_compiled_module_has_no_debugging_data(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if SCRIPT["COMPILED"].fullmatch(name)]
    assert b".debug_info" not in archive.read(name)  # the name of the section, in the table of ELF files


@pytest.mark.skipif(os.name == "nt", reason="no variable hides the compiler of Windows")
def test_without_a_compiler_only_the_compiled_module_is_missing(unpack, tmp_path):
    wheel = built("build_wheel", unpack(), tmp_path, CC="no-such-compiler")
    assert wheel.name == f"{TITLE}-py3-none-any.whl"  # what runs anywhere is not named after this platform
    names = zipfile.ZipFile(wheel).namelist()
    expected = SCRIPT["expected_names"](ROOT, __version__)
    assert SCRIPT["wheel_problems"](names, wheel.stat().st_size, expected, n_compiled=0) == []


def test_the_metadata_say_what_is_needed_and_allowed(wheel):
    text = zipfile.ZipFile(wheel).read(f"{TITLE}.dist-info/METADATA").decode()
    lines = text.partition("\n\n")[0].splitlines()
    needs = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert {line.split()[1].partition(">")[0] for line in needs} == {"numpy", "scipy", "scikit-learn"}
    assert "License-Expression: BSD-3-Clause" in lines
    assert "Requires-Python: >=3.11" in lines
    entry = zipfile.ZipFile(wheel).read(f"{TITLE}.dist-info/entry_points.txt").decode()
    assert "erm = exclusivity.cli.main:main" in entry.splitlines()


def test_builds_are_tried_with_the_lowest_version_that_may_build():
    """``make test-oldest`` installs the floors of the extra, and these tests build with what is installed."""
    dev = PYPROJECT["project"]["optional-dependencies"]["dev"]
    assert set(PYPROJECT["build-system"]["requires"]) <= set(dev)


def test_the_check_finds_what_is_wrong():
    expected = {"exclusivity/a.py", "exclusivity/py.typed"}
    good = [*sorted(expected), "exclusivity/kernels/_compiled.abi3.so"]
    problems = SCRIPT["wheel_problems"]
    assert problems(good, 10, expected) == []
    assert problems([*good, "tests/test_a.py"], 10, expected) == ["tests/test_a.py is in the wheel"]
    other = "exclusivity/kernels/_compiled.cpython-39-darwin.so"
    assert problems([*good, other], 10, expected) == [f"{other} is in the wheel"]
    assert problems(good[1:], 10, expected) == ["exclusivity/a.py is not in the wheel"]
    assert problems(good[:-1], 10, expected) == ["the wheel has 0 compiled modules, not 1"]
    (size,) = problems(good, 10**9, expected)
    assert "1,000,000,000 bytes" in size
