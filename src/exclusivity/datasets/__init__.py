"""Read LIBSVM, CSV, Parquet and .npy files, strictly."""

from exclusivity.datasets.csv_fields import (
    FieldError as FieldError,
    counted as counted,
    is_number as is_number,
)
from exclusivity.datasets.csv_file import read_csv
from exclusivity.datasets.errors import (
    DataFileError,
    LibsvmError,
    NotANumberError as NotANumberError,
)
from exclusivity.datasets.file_format import FilePart, Format, Reading, TextFormat
from exclusivity.datasets.formats import format_named, format_of, known_formats, register_format
from exclusivity.datasets.libsvm import LibsvmData, read_libsvm
from exclusivity.datasets.notations import (
    GAPS as GAPS,
    Notation as Notation,
    decimal_of_file as decimal_of_file,
    notation_of as notation_of,
    numbers_among as numbers_among,
)
from exclusivity.datasets.npy import read_npy
from exclusivity.datasets.parquet import read_parquet
from exclusivity.datasets.raw_cells import (
    Cells as Cells,
    ColumnError as ColumnError,
    Expected as Expected,
    read_by_notation as read_by_notation,
    read_cells as read_cells,
)
from exclusivity.datasets.raw_table import (
    RawTable as RawTable,
    line_in_file as line_in_file,
    read_raw_csv as read_raw_csv,
    read_raw_parquet as read_raw_parquet,
    read_raw_part as read_raw_part,
)
from exclusivity.datasets.read_any import read_table
from exclusivity.datasets.table import TableData
from exclusivity.datasets.written_dates import dates_among as dates_among

__all__ = [
    "DataFileError",
    "FilePart",
    "Format",
    "LibsvmData",
    "LibsvmError",
    "Reading",
    "TableData",
    "TextFormat",
    "format_named",
    "format_of",
    "known_formats",
    "read_csv",
    "read_libsvm",
    "read_npy",
    "read_parquet",
    "read_table",
    "register_format",
]
