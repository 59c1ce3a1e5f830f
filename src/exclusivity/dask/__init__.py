"""The same classifier on Dask collections: rows stay with the workers, sums travel."""

try:
    from exclusivity.dask.estimator import ERMClassifier
except ModuleNotFoundError as error:  # pragma: no cover -- the tests have Dask
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        "exclusivity.dask needs Dask; install it with: pip install 'exclusivity[dask]'.", name=error.name
    ) from error

from exclusivity.dask.engine import Engine as Engine
from exclusivity.dask.files import (
    FileLayout as FileLayout,
    file_arrays as file_arrays,
    with_width as with_width,
)
from exclusivity.dask.rounds import fits as fits
from exclusivity.dask.survey import (
    Survey as Survey,
    survey_files as survey_files,
    survey_part as survey_part,
)
from exclusivity.dask.tables import (
    ColumnReader as ColumnReader,
    Evidence as Evidence,
    kinds_of as kinds_of,
    look_at_part as look_at_part,
    places_of_text as places_of_text,
    summarise_part as summarise_part,
    table_arrays as table_arrays,
)

__all__ = ["ERMClassifier"]
