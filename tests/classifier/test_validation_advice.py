"""Gaps and words in X: scikit-learn's message, and what this package has for them."""

import numpy as np
import pytest

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path

GAPS = np.array([[0.0], [np.nan], [1.0], [2.0]])
WORDS = np.array([["red"], ["green"], ["red"], ["blue"]], dtype=object)
Y = [0, 0, 1, 1]


@pytest.mark.parametrize("rows", [GAPS, WORDS], ids=["gaps", "words"])
@pytest.mark.parametrize(
    "use",
    [
        lambda rows: ERMClassifier().fit(rows, Y),
        lambda rows: ERMClassifierCV(cv=2).fit(rows, Y),
        lambda rows: erm_path(rows, Y),
        lambda rows: ERMClassifier().fit([[0.0], [1.0]], [0, 1]).predict(rows),
    ],
    ids=["fit", "search", "path", "predict"],
)
def test_the_way_out_is_named(use, rows):
    with pytest.raises(ValueError, match=r"NaN|could not convert") as caught:
        use(rows)
    assert "make_robust_classifier" in "".join(caught.value.__notes__)


def test_other_errors_are_left_alone():
    with pytest.raises(ValueError, match="Found array with 0 sample") as caught:
        ERMClassifier().fit(np.empty((0, 1)), [])
    assert not hasattr(caught.value, "__notes__")
