"""Versions to paste into a bug report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from exclusivity import __version__
from exclusivity.kernels import compiled

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "matplotlib",
    "rich",
    "pandas",
    "pyarrow",
    "onnx",
    "onnxruntime",
    "dask",
    "distributed",
)


def installed_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of those of ``packages`` that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def show_versions() -> None:
    """Print the versions of Python, of this package and of everything it may use.

    The line ``kernels`` says whether the compiled part of the package is there and used. Without it
    everything works, on sparse rows more slowly.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    exclusivity   ...
    python        ...
    kernels       ...
    numpy         ...
    """
    missing = dict.fromkeys(_PACKAGES, "not installed")
    python = f"{platform.python_version()} on {platform.platform()}"
    kernels = "not compiled" if compiled is None else "compiled"
    found = {"exclusivity": __version__, "python": python, "kernels": kernels}
    found |= missing | installed_versions(_PACKAGES)
    for name, text in found.items():
        print(f"{name:<14}{text}")  # noqa: T201 -- that is what it is for
