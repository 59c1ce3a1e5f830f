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
    find_rules as find_rules,
)
from exclusivity.dask.rounds import fits as fits
from exclusivity.dask.survey import (
    Survey as Survey,
    survey_files as survey_files,
    survey_part as survey_part,
)

__all__ = ["ERMClassifier"]
