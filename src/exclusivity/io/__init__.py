"""Files: tables of any format, the data sets of the paper, models, and ONNX graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exclusivity.io._reading import DataFileError, Table
from exclusivity.io.datasets import load_dataset
from exclusivity.io.tables import read_table

if TYPE_CHECKING:
    from exclusivity.io.models import ModelFormatError, load_model, save_model
    from exclusivity.io.onnx import to_onnx

__all__ = [
    "DataFileError",
    "ModelFormatError",
    "Table",
    "load_dataset",
    "load_model",
    "read_table",
    "save_model",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'exclusivity.io' has no attribute {name!r}")
    # Models need scikit-learn, which imports pandas where it is installed; readers of tables do not.
    module = import_module(f"exclusivity.io.{'onnx' if name == 'to_onnx' else 'models'}")
    return getattr(module, name)
