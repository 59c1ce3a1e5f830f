"""Try the artefacts of a release as strangers get them: ``make dist`` calls this after building them.

The wheel holds what it should and nothing else, its compiled part among it, goes into an empty environment
without anything that numpy, scipy and scikit-learn do not bring, starts quickly there, fits, saves and loads;
and the tests of the sdist pass against the installed wheel. Everything happens in a temporary folder; the
first failure ends it.
"""

# ruff: noqa: S603, T201 -- a command talks to its user, and starts programs that it made itself

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

WHEEL_BYTES, SDIST_BYTES = 1_150_000, 2_400_000
"""About a quarter above 896,000 and 1,892,000 (0.2): room to grow, but not for data or caches."""

IMPORT_SECONDS, HELP_SECONDS = 0.05, 0.3
"""Processor time of ``import exclusivity`` and of ``erm --help``; the best of five, as machines are busy."""

NOT_IN_WHEELS = {".c", ".h", ".so", ".pyd"}
"""Sources of the compiled module, and what an editable install made of them."""

COMPILED = re.compile(r"exclusivity/kernels/_compiled\.(abi3[\w.-]*\.so|pyd)")
"""The one file of a wheel that is made and not copied; its ending is the platform's."""

# What a stranger does first, without the help of any extra.
TRIAL = """
import numpy as np
from exclusivity import ERMClassifier
from exclusivity.io import load_dataset
from exclusivity.kernels import compiled
from exclusivity.io import load_model, save_model

assert compiled is not None
table = load_dataset("heart")
model = ERMClassifier(5, exclusivity=np.inf, voting="hard", random_state=0).fit(table.data, table.target)
save_model(model, "saved.erm")
loaded = load_model("saved.erm")
assert np.array_equal(loaded.predict(table.data), model.predict(table.data))
assert np.array_equal(loaded.certify(table.data), model.certify(table.data))
with open("heart.csv", "w") as file:
    print(*(f"x{j}" for j in range(table.data.shape[1])), "disease", sep=",", file=file)
    for row, label in zip(table.data, table.target):
        print(*row, label, sep=",", file=file)
"""
COMMANDS = (
    "demo",
    "fit heart.csv --target disease -o heart.erm",
    "evaluate heart.erm heart.csv",
    "predict heart.erm heart.csv -o predictions.csv",
)


def expected_names(root: Path, version: str) -> set[str]:
    """Return what the wheel holds beside its compiled module: the package without C, and metadata."""
    package = root / "src" / "exclusivity"
    kept = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in NOT_IN_WHEELS
    }
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = ["METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt"]
    told += [f"licenses/{name}" for name in project["license-files"]]
    return kept | {f"exclusivity-{version}.dist-info/{name}" for name in told}


def wheel_problems(
    names: Sequence[str], n_bytes: int, expected: set[str], *, n_compiled: int = 1
) -> list[str]:
    """Return what is wrong with the content of a wheel."""
    compiled = {name for name in names if COMPILED.fullmatch(name)}
    copied = set(names) - compiled
    found = [f"{name} is in the wheel" for name in sorted(copied - expected)]
    found += [f"{name} is not in the wheel" for name in sorted(expected - copied)]
    if len(compiled) != n_compiled:
        found.append(f"the wheel has {len(compiled)} compiled modules, not {n_compiled}")
    if n_bytes > WHEEL_BYTES:
        found.append(f"the wheel has {n_bytes:,} bytes, more than {WHEEL_BYTES:,}")
    return found


def check_content(wheel: Path, sdist: Path, root: Path) -> None:
    """Exit with what is wrong with either file, if anything is."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    found = wheel_problems(names, wheel.stat().st_size, expected_names(root, wheel.name.split("-")[1]))
    if sdist.stat().st_size > SDIST_BYTES:
        found.append(f"the sdist has {sdist.stat().st_size:,} bytes, more than {SDIST_BYTES:,}")
    if found:
        sys.exit("\n".join(found))
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size:,} of at most {WHEEL_BYTES:,} bytes")
    print(f"{sdist.name}: {sdist.stat().st_size:,} of at most {SDIST_BYTES:,} bytes")


class Environment:
    """A new virtual environment, and a folder to work in that is not the checkout."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.work = folder / "env" / "bin", folder / "work"
        self.work.mkdir()
        venv.create(folder / "env", with_pip=True)

    def run(self, program: str, *words: str | Path, cwd: Path | None = None) -> str:
        """Run a program of the environment; what it prints. Its failure is ours."""
        command = [str(self.bin / program), *map(str, words)]
        plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        ended = subprocess.run(
            command, cwd=cwd or self.work, env=plain, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            tail = f"{ended.stdout}\n{ended.stderr}"[-6000:]
            sys.exit(f"{tail}\n{' '.join(command)}: exit code {ended.returncode}")
        return ended.stdout

    def install(self, *what: str | Path) -> None:
        """Install what is given."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)

    def packages(self) -> set[str]:
        """Return the names of all that is installed."""
        listed = self.run("python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
        return {line.partition("==")[0] for line in listed.splitlines()}

    def processor_seconds(self, program: str, *words: str) -> float:
        """Processor time of a program, from its start to its end; the best of five."""
        times = []
        for _ in range(5):
            before = os.times()
            self.run(program, *words)
            after = os.times()
            spent = after.children_user + after.children_system
            times.append(spent - before.children_user - before.children_system)
        return min(times)


def try_wheel(environment: Environment, wheel: Path, needs: Sequence[str]) -> None:
    """Install, start, fit, save, load, as someone who has nothing but the wheel."""
    environment.install(*needs)
    before = environment.packages()
    environment.install("--no-index", wheel)  # whatever it asks for beyond its needs is not found
    added = environment.packages() - before
    if added != {"exclusivity"}:
        sys.exit(f"The wheel brings {sorted(added)}; it should bring itself alone.")
    print(f"installed beside {', '.join(sorted(before))}")
    environment.run("python", "-c", TRIAL)
    start = environment.processor_seconds("python", "-c", "pass")
    importing = environment.processor_seconds("python", "-c", "import exclusivity") - start
    helping = environment.processor_seconds("erm", "--help")
    print(f"import exclusivity: {1000 * importing:.0f} ms, erm --help: {helping:.2f} s of processor time")
    if importing > IMPORT_SECONDS or helping > HELP_SECONDS:
        sys.exit(f"Too slow: {1000 * IMPORT_SECONDS:.0f} ms and {HELP_SECONDS} s are allowed.")
    environment.install(f"{wheel}[cli]")  # which reads CSV files
    for command in COMMANDS:
        environment.run("erm", *command.split())
        print(f"erm {command}: fine")


def try_sdist(environment: Environment, wheel: Path, sdist: Path, selection: Sequence[str]) -> None:
    """Run the tests of the sdist against the installed wheel."""
    with tarfile.open(sdist) as archive:
        archive.extractall(environment.work, filter="data")
    environment.install(f"{wheel}[dev]")
    folder = environment.work / sdist.name.removesuffix(".tar.gz")
    said = environment.run("python", "-m", "pytest", "-q", "-n", "2", *selection, cwd=folder)
    print(f"tests of the sdist: {said.splitlines()[-1]}")


def main() -> None:
    """Check what lies in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with one wheel and one sdist")
    parser.add_argument(
        "tests", nargs="*", default=["tests"], help="tests of the sdist to run (default: all)"
    )
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    (wheel,), (sdist,) = (
        [path.resolve() for path in arguments.folder.glob(form)] for form in ("*.whl", "*.tar.gz")
    )
    check_content(wheel, sdist, root)
    needs = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        try_wheel(environment, wheel, needs)
        try_sdist(environment, wheel, sdist, arguments.tests)


if __name__ == "__main__":
    main()
