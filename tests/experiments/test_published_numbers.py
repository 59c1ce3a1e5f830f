"""The transcription of the paper's tables agrees with itself."""

import numpy as np
import pytest

from exclusivity.experiments.published import (
    AVERAGE_RANKS,
    ERM_METHODS,
    PAPER_METHODS,
    TABLE1,
    TABLE1_DATASETS,
    TABLE2,
)


@pytest.mark.parametrize("dataset", TABLE1_DATASETS)
def test_ranks_follow_the_means(dataset):
    cells = sorted((TABLE1[dataset, method] for method in PAPER_METHODS), key=lambda cell: cell.rank)
    assert np.all(np.diff([cell.mean for cell in cells]) >= 0)
    assert {cell.rank for cell in cells} <= set(range(1, 11))


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_average_ranks_follow_the_ranks(method):
    mean = np.mean([TABLE1[dataset, method].rank for dataset in TABLE1_DATASETS])
    assert AVERAGE_RANKS[method] == pytest.approx(mean, abs=0.051)


def test_known_cells():
    assert TABLE1["german", "L2-ERM30"] == (25.75, 1.10, 1)
    assert TABLE1["ionosphere", "DRM30"] == (19.70, 3.48, 6)
    assert TABLE1["splice", "nu-SVM"] == (34.91, 2.84, None)
    assert TABLE2["DRM10"] == 168.5657
    assert len(ERM_METHODS) == 4
    assert len(TABLE1) == 8 * 13
