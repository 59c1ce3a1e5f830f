"""Names for the arrays of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""A float64 array: everything that is computed."""

Matrix = Any
"""What users hold: a dense ndarray or a CSR matrix or array, of float32, float64, integers or booleans."""

Ints = NDArray[np.intp]
"""Numbers of classes, members, columns or rows; counts."""

Bools = NDArray[np.bool_]
"""Which of several: columns of a member, rows of a class."""

RandomState = int | np.random.RandomState | None
"""A seed, or a generator of scikit-learn's kind; None draws anew."""
