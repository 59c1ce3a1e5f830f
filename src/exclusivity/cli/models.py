"""Model files of the command line: what a model knows about its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exclusivity.cli.files import FileError, file_errors


@dataclass(frozen=True)
class Loaded:
    """A model from a file."""

    model: Any  # a classifier or a Pipeline
    title: str  # the file

    @property
    def names(self) -> list[str] | None:
        """The names of its columns."""
        found = getattr(steps_of(self.model)[0], "feature_names_in_", None)
        return None if found is None else [str(name) for name in found]

    @property
    def target(self) -> str | int | None:
        """The column that held its classes, where the file knows it."""
        return getattr(self.model, "target_column_", None)

    @property
    def n_features(self) -> int:
        """The width of its rows."""
        return int(steps_of(self.model)[0].n_features_in_)

    @property
    def columns(self) -> list[Any] | None:
        """The columns of a table as they were learned; None for a model of plain numbers."""
        found = getattr(steps_of(self.model)[0], "columns_", None)
        return None if found is None else list(found)

    @property
    def weighed_names(self) -> list[str] | None:
        """The names of the features of the classifier, which an encoder makes of the columns."""
        names = self.names
        for step in steps_of(self.model)[:-1]:
            if hasattr(step, "columns_"):  # an encoder
                names = [str(name) for name in step.get_feature_names_out(names)]
        return names

    @property
    def classifier(self) -> Any:
        """The last step."""
        return self.model[-1] if hasattr(self.model, "steps") else self.model

    @property
    def is_robust(self) -> bool:
        """Return whether it is a robust additive model."""
        return is_robust(self.classifier)

    def rules(self, *, strict: bool) -> dict[str | int, Any]:
        """Return how to read its columns; unless ``strict``, texts among numbers or dates are missing."""
        from exclusivity.io._cells import ColumnRule

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
        from exclusivity.inspection.summary import by_batches

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
    import numpy as np

    from exclusivity.io import save_model

    if names is not None:
        # Only the first step sees the names: what it hands on is a plain array.
        steps_of(model)[0].feature_names_in_ = np.array(names, dtype=object)
    if target is not None:
        model.target_column_ = target
    with file_errors(path):
        save_model(model, path)
