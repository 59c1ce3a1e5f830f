"""What to paste into a bug report."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from exclusivity import __version__

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


def show_versions() -> None:
    """Print the versions of Python, of this package and of everything it may use.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    exclusivity   ...
    python        ...
    numpy         ...
    """
    found = {"exclusivity": __version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    for name, text in found.items():
        print(f"{name:<14}{text}")  # noqa: T201 -- that is what it is for
