"""Models in MLflow: types that skops may load, and a pyfunc flavour around model files."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity import __version__
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.io.models import load_model, save_model
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder

TRUSTED_TYPES = [
    "exclusivity.additive.certificates.Adversary",
    "exclusivity.additive.certificates.Duels",
    "exclusivity.additive.classifier.RobustAdditiveClassifier",
    "exclusivity.additive.levels.ColumnLevels",
    "exclusivity.additive.levels.Levels",
    "exclusivity.additive.sums.Reach",
    "exclusivity.classifier._path.ERMClassifierCV",
    "exclusivity.classifier._erm.ERMClassifier",
    "exclusivity.classifier._ensemble.Ensemble",
    "exclusivity.partition.FeaturePartitionClassifier",
    "exclusivity.solvers.base.History",
    "exclusivity.solvers.base.IterationRecord",
    "exclusivity.solvers.base.Start",
    "exclusivity.solvers.run.Guess",
    "exclusivity.solvers.sums.Point",
    "exclusivity.tables._codes.DateCode",
    "exclusivity.tables._codes.LevelCode",
    "exclusivity.tables._codes.MissingCode",
    "exclusivity.tables._codes.NumberCode",
    "exclusivity.tables._encoder.TableColumn",
    "exclusivity.tables._encoder.TableEncoder",
    "sklearn.metrics._scorer._PassthroughScorer",  # of an ERMClassifierCV
]
"""Types of fitted models that skops does not know. None of them runs code of a file when it is loaded."""

METHODS = ("predict", "predict_proba", "decision_function", "certify")
"""What a loaded pyfunc computes, chosen by ``params={"method": ...}``."""


def save_mlflow(model: BaseEstimator, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a fitted model as an MLflow model around a model file: data only, no pickle.

    ``mlflow.pyfunc.load_model`` loads it, and ``predict(table)`` gives labels. ``predict(table,
    params={"method": "certify"})`` gives radii; "predict_proba" and "decision_function" are the others. The
    signature has the columns that the model was fitted to. Those of a table may be absent where the model
    treats absent columns as missing, and cells may have any type.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier or Pipeline
        What :func:`save_model` takes.
    path : path
        A folder that does not exist yet.
    **options
        Handed on to ``mlflow.pyfunc.save_model``: ``input_example``, ``metadata``, ``pip_requirements``, ...

    See Also
    --------
    log_mlflow : The same for a run or a registry.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"])
    >>> save_mlflow(model, "level")  # doctest: +SKIP
    """
    import mlflow.pyfunc  # noqa: PLC0415 -- optional

    with TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(os.fspath(path), **_arguments(model, folder), **options)


def log_mlflow(model: BaseEstimator, name: str, **options: Any) -> Any:
    """Log a fitted model to MLflow, as :func:`save_mlflow` saves it.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier or Pipeline
        What :func:`save_model` takes.
    name : str
        The name of the model in MLflow.
    **options
        Handed on to ``mlflow.pyfunc.log_model``: ``registered_model_name``, ``input_example``, ...

    Returns
    -------
    info : mlflow.models.model.ModelInfo
        ``mlflow.pyfunc.load_model(info.model_uri)`` loads the model.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"])
    >>> info = log_mlflow(model, "level")  # doctest: +SKIP
    """
    import mlflow.pyfunc  # noqa: PLC0415 -- optional

    with TemporaryDirectory() as folder:
        return mlflow.pyfunc.log_model(name=name, **_arguments(model, folder), **options)


def _arguments(model: BaseEstimator, folder: str) -> dict[str, Any]:
    """Write the model file to a folder, and return what MLflow needs to know of it."""
    from mlflow.models import ModelSignature  # noqa: PLC0415
    from mlflow.types import ParamSchema, ParamSpec  # noqa: PLC0415

    file = Path(folder) / "model.erm"
    save_model(model, file)
    method = ParamSpec("method", "string", "predict")
    return {
        "loader_module": __name__,
        "data_path": os.fspath(file),
        "signature": ModelSignature(_input_schema(model), params=ParamSchema([method])),
        "pip_requirements": [f"exclusivity=={__version__}", "pandas"],
    }


def _input_schema(model: BaseEstimator) -> Any:
    """Return the columns of a table by name, or the number of columns of an array.

    MLflow refuses integers where a schema asks for float64, and words where it asks for numbers; models of
    tables take both, so that the types of columns are open.
    """
    from mlflow.types import ColSpec, Schema, TensorSpec  # noqa: PLC0415
    from mlflow.types.schema import AnyType  # noqa: PLC0415

    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        return Schema([TensorSpec(np.dtype(np.float64), (-1, first.n_features_in_))])
    is_needed = not isinstance(first, (TableEncoder, RobustAdditiveClassifier))
    return Schema([ColSpec(AnyType(), name, required=is_needed) for name in names])


class _Predictor:
    """What MLflow calls."""

    def __init__(self, model: BaseEstimator) -> None:
        self.model = model

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> NDArray[Any]:
        """Return what the method of the model that ``params`` names says of rows."""
        method = (params or {}).get("method", "predict")
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
        if method == "certify":
            return certify(self.model, rows)
        return np.asarray(getattr(self.model, method)(rows))


def _load_pyfunc(path: str) -> _Predictor:
    """Load the model file; MLflow looks for this name."""
    return _Predictor(load_model(path))
