"""scikit-learn's own checks of the encoder, alone and before a classifier."""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from exclusivity.tables import TableEncoder


@parametrize_with_checks(
    [
        TableEncoder(),
        TableEncoder("linear", sparse_output=True),
        TableEncoder(n_knots=3, dtype=np.float32),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
