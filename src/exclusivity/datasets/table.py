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

    @property
    def labels(self) -> NDArray[Any] | None:
        """The target as classes: whole numbers as such, text and other numbers as they are."""
        if self.target is None or self.target.dtype.kind != "f" or self.first_measured is not None:
            return self.target
        return np.asarray(self.target.astype(np.int64))

    @property
    def first_measured(self) -> float | None:
        """Of a target of numbers: the first that is not whole, or too large to be exact."""
        numbers = np.asarray(self.target)
        is_class = (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
        return None if is_class.all() else float(numbers[int(np.argmin(is_class))])
