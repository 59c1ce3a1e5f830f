"""Arrays that know which of their columns belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GroupedArray(np.ndarray[Any, Any]):
    """An array that carries ``feature_groups``: one label per column, for the estimator that gets it next.

    Only the array that an encoder hands out has them. Whatever is computed or cut from it has not, because
    columns may then be others.
    """

    feature_groups: NDArray[Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Groups survive pickling, as in the cache of a pipeline or on the way to another process."""
        return grouped, (np.asarray(self), self.feature_groups)


def grouped(rows: Any, groups: NDArray[Any] | None) -> Any:
    """The same rows, an array or a sparse matrix, carrying the groups of their columns.

    Examples
    --------
    >>> rows = grouped(np.zeros((3, 2)), np.array([0, 0]))
    >>> rows.feature_groups.tolist(), rows[:, 1:].feature_groups
    ([0, 0], None)
    """
    found: Any = rows.view(GroupedArray) if isinstance(rows, np.ndarray) else rows
    found.feature_groups = groups
    return found
