"""Imports point in one direction: cli -> classifier -> solvers -> objective -> rows -> kernels.

The files are read, not imported, so imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import exclusivity

ROOT = Path(exclusivity.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

LAYERS = ("kernels", "rows", "objective", "solvers", "classifier", "cli", "__main__")
"""From the bottom to the top. What is not listed sits beside the classifier."""

ALONE = {"_text", "_typing"}
"""What needs nothing else of this package, so that anything above the numerics may use it."""

NUMERICS = ("rows", "objective", "solvers")
"""What needs numpy and scipy only."""

BESIDE = LAYERS.index("classifier")

# The package's front door re-exports the classifier; only its version is free for all.
FRONT_DOOR = "classifier"
FREE_NAMES = {"__version__"}


def layer(path):
    """The first part of a module below the package: "solvers", or "callbacks" for callbacks.py."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def height(name):
    if name == "_typing":
        return -1
    return LAYERS.index(name) if name in LAYERS else BESIDE


def absolute(node, path):
    """The absolute name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    package = ("exclusivity", *path.relative_to(ROOT).parts[:-1])
    base = package[: len(package) - node.level + 1]
    return ".".join((*base, node.module) if node.module else base)


def imported_modules(source, path):
    """Every absolute module name that the source text of `path` imports, names of packages resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node, path)
            if module == "exclusivity":
                yield from (f"exclusivity.{alias.name}" for alias in node.names)
            else:
                yield module


def own_layers(source, path):
    """The layers of this package that the source imports, its own left out."""
    found = set()
    for module in imported_modules(source, path):
        parts = module.split(".")
        if parts[0] != "exclusivity" or (len(parts) > 1 and parts[1] in FREE_NAMES):
            continue
        name = parts[1] if len(parts) > 1 else FRONT_DOOR
        known = (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()
        found.add(name if known else FRONT_DOOR)
    return found - {layer(path)}


def wrong_arrows(source, path):
    """The imports of `path` that the order of the layers forbids."""
    here, targets = layer(path), own_layers(source, path)
    if here == "__init__":
        return {name for name in targets if height(name) > BESIDE}
    wrong = {name for name in targets if height(name) > height(here)}
    if here in NUMERICS:
        wrong |= {name for name in targets if name not in (*LAYERS, "_typing")}
    if here in ALONE:
        wrong |= targets
    if here == "io" and path.name not in ("_model_kinds.py", "models.py", "onnx.py"):
        wrong |= targets & {"classifier", "solvers"}
    return wrong


def identifier(path):
    return path.relative_to(ROOT).as_posix()


def test_the_files_are_there():
    assert {"rows", "objective", "solvers", "classifier", "io"} <= {layer(path) for path in FILES}
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=identifier)
def test_no_import_points_up(path):
    assert not wrong_arrows(path.read_text(), path)


@pytest.mark.parametrize("path", [path for path in FILES if layer(path) in NUMERICS], ids=identifier)
def test_the_numerics_need_numpy_and_scipy_only(path):
    allowed = {"exclusivity", "numpy", "scipy"} | sys.stdlib_module_names
    assert {module.split(".")[0] for module in imported_modules(path.read_text(), path)} <= allowed


@pytest.mark.parametrize(
    ("file", "source", "wrong"),
    [
        ("objective/x.py", "from exclusivity.solvers import solve_alm", {"solvers"}),
        ("objective/x.py", "import exclusivity.solvers.base as base", {"solvers"}),
        ("objective/x.py", "from ..solvers.base import Status", {"solvers"}),
        ("objective/x.py", "from .. import solvers", {"solvers"}),
        ("objective/x.py", "from exclusivity.io import read_table", {"io"}),
        ("objective/x.py", "from . import losses\nfrom .losses import PowerHinge\nimport numpy", set()),
        ("objective/x.py", "from exclusivity.rows.design import gamma", set()),
        ("rows/x.py", "from exclusivity.objective import ERMProblem", {"objective"}),
        ("rows/x.py", "from exclusivity._typing import Floats", set()),
        ("solvers/x.py", "def f():\n    from exclusivity import ERMClassifier", {"classifier"}),
        ("solvers/x.py", "import exclusivity", {"classifier"}),
        (
            "solvers/x.py",
            "from exclusivity import __version__\nfrom exclusivity.rows import DesignMatrix",
            set(),
        ),
        ("classifier/x.py", "from exclusivity.cli.main import main", {"cli"}),
        (
            "classifier/x.py",
            "from exclusivity.solvers import solve_all\nfrom exclusivity.objective import losses",
            set(),
        ),
        ("io/x.py", "from exclusivity.solvers import solve_all", {"solvers"}),
        ("io/x.py", "from exclusivity import ERMClassifier", {"classifier"}),
        ("_text.py", "from exclusivity.objective import losses", {"objective"}),
        ("inspection/x.py", "from exclusivity._text import printable", set()),
        ("cli/x.py", "from exclusivity import ERMClassifier", set()),
        ("__init__.py", "from exclusivity.classifier import ERMClassifier", set()),
        ("__init__.py", "from exclusivity.cli.main import main", {"cli"}),
    ],
)
def test_this_test_can_fail(file, source, wrong):
    assert wrong_arrows(source, ROOT / file) == wrong
