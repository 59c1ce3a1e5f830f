"""Files: tables of any format, the data sets of the paper, models, and ONNX graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exclusivity.io._reading import DataFileError, Table
from exclusivity.io.datasets import load_dataset
from exclusivity.io.tables import read_table

if TYPE_CHECKING:
    from exclusivity.io._mlflow import TRUSTED_TYPES, log_mlflow, save_mlflow
    from exclusivity.io.models import ModelFormatError, load_model, save_model
    from exclusivity.io.onnx import to_onnx

__all__ = [
    "TRUSTED_TYPES",
    "DataFileError",
    "ModelFormatError",
    "Table",
    "load_dataset",
    "load_model",
    "log_mlflow",
    "read_table",
    "save_mlflow",
    "save_model",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'exclusivity.io' has no attribute {name!r}")
    # Models need scikit-learn, which imports pandas where it is installed; readers of tables do not.
    modules = {
        "to_onnx": "onnx",
        "TRUSTED_TYPES": "_mlflow",
        "log_mlflow": "_mlflow",
        "save_mlflow": "_mlflow",
    }
    return getattr(import_module(f"exclusivity.io.{modules.get(name, 'models')}"), name)
