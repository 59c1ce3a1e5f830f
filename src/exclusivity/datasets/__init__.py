"""Data from files: a strict LIBSVM reader, and the folder where data files live."""

from exclusivity.datasets.folder import data_folder, find_data_file
from exclusivity.datasets.libsvm import LibsvmData, read_libsvm
from exclusivity.datasets.libsvm_lines import LibsvmError

__all__ = ["LibsvmData", "LibsvmError", "data_folder", "find_data_file", "read_libsvm"]
