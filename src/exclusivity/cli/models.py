"""Model files of the command line, with the names of their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exclusivity.cli.files import FileError, file_errors

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Loaded:
    """A model from a file."""

    model: Any  # a classifier or a Pipeline, without names, so that it takes plain arrays
    names: list[str] | None  # of its features
    target: str | int | None  # the column that held its classes, where the file knows it
    title: str  # the file

    @property
    def n_features(self) -> int:
        """The width of its rows."""
        return int(steps_of(self.model)[0].n_features_in_)

    @property
    def weighed_names(self) -> list[str] | None:
        """The names of the features of the classifier, which an encoder makes of the columns."""
        names = self.names
        for step in steps_of(self.model)[:-1]:
            if hasattr(step, "sources_") or hasattr(step, "maps_"):  # an encoder, or interactions
                names = [str(name) for name in step.get_feature_names_out(names)]
        return names

    @property
    def classifier(self) -> BaseEstimator:
        """The last step."""
        return self.model[-1] if hasattr(self.model, "steps") else self.model

    @property
    def owned_columns(self) -> list[list[str]] | None:
        """The columns that each member (equal ones once) looks at together; None without interactions.

        The classifier numbers its members anew: it tells who weighs a feature, and the step before of which
        columns the feature is made.
        """
        import numpy as np

        steps = steps_of(self.model)
        if not hasattr(steps[-2:][0], "owners_"):
            return None
        encoder, interactions, classifier = steps
        names = np.array(self.names or range(self.n_features)).astype(str)
        weighed = (interactions.members_[own] for own in classifier._ensemble.supports)
        return [
            names[np.unique(encoder.sources_[np.isin(interactions.owners_, own)])].tolist() for own in weighed
        ]

    def predict(self, X: Any) -> Any:
        """Predict some rows at a time."""
        from exclusivity.inspection.batches import by_batches

        return by_batches(self.model, X, self.model.predict)


def steps_of(model: object) -> list[Any]:
    """Return the steps of a pipeline that can have names, or the model itself."""
    return [step for _, step in model.steps if hasattr(step, "fit")] if hasattr(model, "steps") else [model]


def load(path: str) -> Loaded:
    """Read a model file."""
    from exclusivity.io import ModelFormatError, load_model

    try:
        with file_errors(path):
            model = load_model(path)
    except ModelFormatError as error:
        raise FileError(f"{error} (MODEL is the file that 'erm fit -o' wrote.)") from error
    names = None
    for step in steps_of(model):
        found = step.__dict__.pop("feature_names_in_", None)
        names = names if found is None else [str(name) for name in found]
    return Loaded(model, names, getattr(model, "target_column_", None), path)


def save(model: BaseEstimator, names: tuple[str, ...] | None, target: str | int | None, path: str) -> None:
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
