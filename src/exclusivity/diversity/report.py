"""Every averaged measure at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from exclusivity.diversity.agreement import interrater_kappa, pairwise_kappa
from exclusivity.diversity.correctness import (
    pairwise_correlation,
    pairwise_disagreement,
    pairwise_double_fault,
    pairwise_q_statistic,
)
from exclusivity.diversity.labels import correctness
from exclusivity.diversity.members import member_predictions, member_weights
from exclusivity.diversity.pairs import mean_over_pairs
from exclusivity.diversity.weights import (
    mutual_angular,
    pairwise_exclusivity,
    pairwise_relaxed_exclusivity,
    weight_matrix,
)
from exclusivity.problem.arrays import Floats, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Attribute, name in the table, and which values mean more diversity.
_ROWS = (
    ("q_statistic", "Q statistic", "lower"),
    ("correlation", "correlation", "lower"),
    ("disagreement", "disagreement", "higher"),
    ("double_fault", "double fault", "lower"),
    ("kappa", "pairwise kappa", "lower"),
    ("interrater_kappa", "interrater kappa", "lower"),
    ("mutual_angular", "mutual angular", "higher"),
    ("exclusivity", "exclusivity", "lower"),
    ("relaxed_exclusivity", "relaxed exclusivity", "lower"),
)


@dataclass(frozen=True)
class DiversityReport:
    """Diversity of an ensemble by every measure; pairwise ones averaged over the pairs of members.

    Attributes
    ----------
    n_members, n_samples : int
    member_accuracy : float
        Mean accuracy of the members.
    q_statistic, correlation, disagreement, double_fault : float
        From correctness.
    kappa : float
        From predicted labels.
    interrater_kappa : float
        From correctness, of all members together.
    mutual_angular, exclusivity, relaxed_exclusivity : float or None
        From weight vectors; None where members have none.
    """

    n_members: int
    n_samples: int
    member_accuracy: float
    q_statistic: float
    correlation: float
    disagreement: float
    double_fault: float
    kappa: float
    interrater_kappa: float
    mutual_angular: float | None
    exclusivity: float | None
    relaxed_exclusivity: float | None

    @classmethod
    def from_predictions(
        cls, predictions: ArrayLike, y_true: ArrayLike, weights: ArrayLike | None = None, *, g: float = 1.0
    ) -> Self:
        """From predicted labels, and weights if there are any.

        Parameters
        ----------
        predictions : array-like of shape (n_samples, n_members)
            Predicted labels.
        y_true : array-like of shape (n_samples,)
            True labels.
        weights : array-like of shape (n_members, n_features), default=None
            Weight vectors of linear members.
        g : float, default=1.0
            Weight of the variance in the mutual angular measure.

        Returns
        -------
        report : DiversityReport

        Examples
        --------
        >>> DiversityReport.from_predictions([[0, 0], [1, 0], [1, 1]], [0, 1, 1]).disagreement
        0.3333333333333333
        """
        right = correctness(predictions, y_true)
        vectors = None if weights is None else weight_matrix(weights)
        if vectors is not None and len(vectors) != right.shape[1]:
            raise ValueError(
                f"weights must have one row for each of the {right.shape[1]} members; got {len(vectors)}."
            )
        return cls(
            n_members=right.shape[1],
            n_samples=right.shape[0],
            member_accuracy=float(right.mean()),
            q_statistic=mean_over_pairs(pairwise_q_statistic(predictions, y_true)),
            correlation=mean_over_pairs(pairwise_correlation(predictions, y_true)),
            disagreement=mean_over_pairs(pairwise_disagreement(predictions, y_true)),
            double_fault=mean_over_pairs(pairwise_double_fault(predictions, y_true)),
            kappa=mean_over_pairs(pairwise_kappa(predictions)),
            interrater_kappa=interrater_kappa(predictions, y_true),
            mutual_angular=None if vectors is None else mutual_angular(vectors, g),
            exclusivity=None if vectors is None else mean_over_pairs(pairwise_exclusivity(vectors)),
            relaxed_exclusivity=(
                None if vectors is None else mean_over_pairs(pairwise_relaxed_exclusivity(vectors))
            ),
        )

    def __str__(self) -> str:
        lines = [
            f"{self.n_members} members on {self.n_samples} samples, mean accuracy {self.member_accuracy:.3f}",
            f"{'measure':<20} {'value':>9}  more diverse if",
        ]
        for attribute, name, direction in _ROWS:
            value = getattr(self, attribute)
            shown = "-" if value is None else f"{value:.4g}"
            lines.append(f"{name:<20} {shown:>9}  {direction}")
        return "\n".join(lines)


def diversity_report(ensemble: BaseEstimator, X: Matrix, y: ArrayLike, *, g: float = 1.0) -> DiversityReport:
    """Measure the diversity of a fitted ensemble on labelled rows, by every measure.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        What :func:`member_predictions` takes, with at least two members.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows; better ones the ensemble was not trained on.
    y : array-like of shape (n_samples,)
        Their labels.
    g : float, default=1.0
        Weight of the variance in the mutual angular measure.

    Returns
    -------
    report : DiversityReport
        ``print`` shows it as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> report = diversity_report(ERMClassifier(n_estimators=5).fit(X, y), X, y)
    >>> report.disagreement, report.kappa, report.mutual_angular
    (0.0, 1.0, 0.0)
    """
    predictions = member_predictions(ensemble, X)
    return DiversityReport.from_predictions(predictions, y, _weights_if_any(ensemble), g=g)


def _weights_if_any(ensemble: BaseEstimator) -> Floats | None:
    """None for members that are not linear, or not over the same classes."""
    try:
        return member_weights(ensemble)
    except (TypeError, ValueError):
        return None
