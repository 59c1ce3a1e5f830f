"""The one result of all readers of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class TableData:
    """What a table holds.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features), float64
        The features; a ``scipy.sparse.csr_matrix`` where the file was in LIBSVM format.
    target : ndarray of shape (n_rows,), or None
        The target column: float64 where it holds numbers, else text (dtype object). None where no target
        was asked for.
    feature_names : tuple of str, or None
        The names of the columns of ``data`` where the file has them.

    Examples
    --------
    >>> import numpy as np
    >>> TableData(np.zeros((3, 2)), None, ("age", "mass")).feature_names
    ('age', 'mass')
    """

    data: NDArray[np.float64] | sparse.csr_matrix
    target: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
