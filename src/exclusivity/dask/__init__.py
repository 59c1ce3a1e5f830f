"""The same classifiers on Dask collections: rows stay with the workers, sums are sent."""

try:
    from exclusivity.dask._estimator import ERMClassifier, RobustAdditiveClassifier
except ModuleNotFoundError as error:  # pragma: no cover -- the tests have Dask
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        "exclusivity.dask needs Dask; install it with: pip install 'exclusivity[dask]'.", name=error.name
    ) from error

__all__ = ["ERMClassifier", "RobustAdditiveClassifier"]
