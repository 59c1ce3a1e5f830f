"""Model files that hold data and no code, and export to ONNX."""

from exclusivity.persistence.errors import ModelFormatError
from exclusivity.persistence.files import whole_file as whole_file
from exclusivity.persistence.model_file import load_model, read_model, save_model
from exclusivity.persistence.onnx_export import to_onnx

__all__ = ["ModelFormatError", "load_model", "read_model", "save_model", "to_onnx"]
