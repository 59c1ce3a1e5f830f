"""What the choice of C by cross-validation leaves behind, as one value: for model files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring

from exclusivity._typing import Floats
from exclusivity.classifier.cv import best_index, summary


@dataclass(frozen=True, eq=False)
class SearchState:
    """The values of C that an ``ERMClassifierCV`` tried and how they did; all else follows from these.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
    scores : ndarray of shape (n_folds, n_Cs)
    mean_n_iter, max_dual_gap : ndarray of shape (n_Cs,)
    """

    Cs: Floats
    scores: Floats
    mean_n_iter: Floats
    max_dual_gap: Floats

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """The search of a fitted classifier."""
        estimator._template()  # its parameters are those of a classifier
        results = estimator.cv_results_
        return cls(estimator.Cs_, estimator.scores_, results["mean_n_iter"], results["max_dual_gap"])

    def restore(self, estimator: BaseEstimator) -> BaseEstimator:
        """Give the search to a classifier; ValueError or TypeError where its parameters are not allowed."""
        estimator._template()
        with np.errstate(all="ignore"):  # scores may be infinite
            results = summary(self.Cs, [(row, self.mean_n_iter, self.max_dual_gap) for row in self.scores])
        results |= {"mean_n_iter": self.mean_n_iter, "max_dual_gap": self.max_dual_gap}
        best = best_index(results["mean_test_score"], self.Cs)
        estimator.__dict__.update(
            Cs_=self.Cs,
            C_=float(self.Cs[best]),
            best_index_=best,
            best_score_=float(results["mean_test_score"][best]),
            cv_results_=results,
            scores_=self.scores,
            n_splits_=len(self.scores),
            scorer_=check_scoring(estimator, scoring=estimator.scoring),
        )
        return estimator
