"""Model files of the command line: what a model knows about its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from exclusivity.cli.files import FileError, file_errors
from exclusivity.io._cells import ColumnRule


class Loaded:
    """A classifier or a Pipeline that ends with one, from a file.

    Attributes
    ----------
    model, classifier : estimator
        All of it, and its last step.
    title : str
        The file.
    names, n_features : list of str or None, int
        The names of its columns, and the width of its rows.
    columns : list or None
        The columns of a table as they were learned; None for a model of plain numbers.
    target : str, int or None
        The column that held its classes, where the file knows it.
    is_robust : bool
        Whether it is a robust additive model.
    """

    def __init__(self, model: Any, title: str) -> None:
        steps = steps_of(model)
        first, self.classifier = steps[0], steps[-1]
        self.model, self.title, self.is_robust = model, title, is_robust(self.classifier)
        names = getattr(first, "feature_names_in_", None)
        self.names = None if names is None else [str(name) for name in names]
        self.n_features = int(first.n_features_in_)
        self.columns: list[Any] | None = getattr(first, "columns_", None)
        self.target: str | int | None = getattr(model, "target_column_", None)

    def rules(self, *, strict: bool) -> dict[str | int, Any]:
        """Return how to read its columns; unless ``strict``, texts among numbers or dates are missing."""
        names: list[Any] = list(self.names or range(self.n_features))
        if self.columns is None:
            return dict.fromkeys(names, ColumnRule("number", ".", required=True))
        rules = {}
        for name, column in zip(names, self.columns, strict=True):
            notation = getattr(column, "notation", None) or ""
            lenient = "" if strict or column.kind == "category" or "?" in notation else "?"
            rules[name] = ColumnRule(column.kind, notation + lenient)
        return rules

    def predict(self, X: Any) -> Any:
        """Predict some rows at a time."""
        return self.ask(X, self.model.predict)

    def ask(self, X: Any, question: Any) -> Any:
        """Ask the model about some rows at a time."""
        from exclusivity.inspection.batches import by_batches

        return by_batches(self.model, X, question)


def is_robust(classifier: Any) -> bool:
    """Return whether a classifier is a robust additive model."""
    return hasattr(classifier, "max_broken")


def steps_of(model: object) -> list[Any]:
    """Return the steps of a pipeline that can have names, or the model itself."""
    return [step for _, step in model.steps if hasattr(step, "fit")] if hasattr(model, "steps") else [model]


def load(path: str) -> Loaded:
    """Read a model file."""
    from exclusivity.io import ModelFormatError, load_model

    try:
        with file_errors(path):
            return Loaded(load_model(path), path)
    except ModelFormatError as error:
        raise FileError(f"{error} (MODEL is the file that 'erm fit -o' wrote.)") from error


def save(model: Any, names: list[str] | None, target: str | int | None, path: str) -> None:
    """Write a model file that knows the names of the features and the column of the classes."""
    from exclusivity.io import save_model

    if names is not None:
        # Only the first step sees the names: what it hands on is a plain array.
        steps_of(model)[0].feature_names_in_ = np.array(names, dtype=object)
    if target is not None:
        model.target_column_ = target
    with file_errors(path):
        save_model(model, path)
