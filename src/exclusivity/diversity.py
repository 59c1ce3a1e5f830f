"""Measure how different the members of an ensemble are.

Functions take *predictions* of shape (n_samples, n_members), labels of any type, with the true labels
``y_true``, or the weight vectors of the members. :func:`diversity_report` applies all of them to a fitted
ensemble.

N11, N10, N01 and N00 count the samples on which both members of a pair are right, only the first, only the
second, and neither (Kuncheva and Whitaker, "Measures of diversity in classifier ensembles", Machine
Learning 51, 2003).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.classifier._validation import check_choice, check_number
from exclusivity.voting.members import member_predictions, member_weights

__all__ = [
    "DiversityReport",
    "diversity_report",
    "interrater_kappa",
    "mean_over_pairs",
    "member_predictions",
    "member_weights",
    "mutual_angular",
    "pairwise_diversity",
    "pairwise_weight_diversity",
]

_PAIRWISE = ("q_statistic", "correlation", "disagreement", "double_fault", "kappa")


def mean_over_pairs(matrix: ArrayLike) -> float:
    """Return the mean of a pairwise measure over the L(L-1)/2 pairs of different members.

    Parameters
    ----------
    matrix : array-like of shape (n_members, n_members)
        Result of a ``pairwise_`` function; its diagonal does not count.

    Returns
    -------
    mean : float

    Examples
    --------
    >>> mean_over_pairs([[9, 1, 2], [1, 9, 6], [2, 6, 9]])
    3.0
    """
    return float(_pair_values(matrix).mean())


def pairwise_diversity(
    predictions: ArrayLike, y_true: ArrayLike | None = None, *, measure: str = "disagreement"
) -> Floats:
    """Measure the diversity of every pair of members from their predicted labels.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,), default=None
        True labels; required by every measure but "kappa".
    measure : {"disagreement", "double_fault", "q_statistic", "correlation", "kappa"}
        - "disagreement": share of samples on which exactly one is right, (N01 + N10) / N.
        - "double_fault": share of samples on which both are wrong, N00 / N; error rates on the diagonal.
        - "q_statistic": Yule's Q, (N11 N00 - N01 N10) / (N11 N00 + N01 N10).
        - "correlation": of being right, (N11 N00 - N01 N10) / sqrt((N11+N10) (N01+N00) (N11+N01) (N10+N00)).
        - "kappa": Cohen's kappa of the predicted labels, (T1 - T2) / (1 - T2): T1 is the share of equal
          labels, T2 the share expected of independent members with the same label frequencies.

    Returns
    -------
    values : ndarray of shape (n_members, n_members)
        Symmetric. The first two are in [0, 1]; the others in [-1, 1], 1 on the diagonal, 0 for independence.

    Notes
    -----
    Q and correlation are 0/0 exactly when a member is right on all samples or on none. They are then 1 where
    the two are right on the same samples, -1 where exactly one is right on every sample (the values of all
    other such pairs), and otherwise 0: a constant is independent of everything. Kappa is 0/0 exactly when
    both members give one and the same label to all samples; the limit for equal members is 1.

    Examples
    --------
    >>> y = ["a", "a", "b", "b"]
    >>> predictions = [["a", "a", "a"], ["a", "b", "a"], ["a", "b", "b"], ["b", "a", "b"]]
    >>> pairwise_diversity(predictions, y, measure="q_statistic")
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  1.]])
    """
    check_choice({"measure": measure}, "measure", _PAIRWISE)
    if measure == "kappa":
        return _kappa(prediction_matrix(predictions))
    if y_true is None:
        raise ValueError(f"measure={measure!r} compares predictions with true labels; give y_true.")
    right = _correctness(predictions, y_true).astype(float)  # floats hold these counts exactly
    both, n_samples = right.T @ right, len(right)
    totals = np.diag(both)
    first, second = totals[:, None] - both, totals[None, :] - both
    neither = n_samples - both - first - second
    if measure == "disagreement":
        return np.asarray((first + second) / n_samples)
    if measure == "double_fault":
        return np.asarray(neither / n_samples)
    same, crossed = both * neither, first * second
    if measure == "q_statistic":
        denominator = same + crossed
    else:
        spread = totals * (n_samples - totals)
        # One root of the product, not a product of two roots: sqrt(x * x) is x to the last digit.
        denominator = np.sqrt(np.outer(spread, spread))
    values: Floats = (first + second == 0).astype(float) - (both + neither == 0)
    np.divide(same - crossed, denominator, out=values, where=denominator > 0)
    return values


def _correctness(predictions: ArrayLike, y_true: ArrayLike) -> Bools:
    """Return which member is right on which sample, (n_samples, n_members)."""
    labels = prediction_matrix(predictions)
    return np.asarray(labels == truth_vector(y_true, labels)[:, None], dtype=bool)


def _kappa(labels: NDArray[Any]) -> Floats:
    codes, n_labels = label_codes(labels)
    n_samples, n_members = codes.shape
    agreed, expected = np.zeros((n_members, n_members)), np.zeros((n_members, n_members))
    for label in range(n_labels):
        chosen = (codes == label).astype(float)
        agreed += chosen.T @ chosen
        expected += np.outer(chosen.sum(axis=0), chosen.sum(axis=0))
    # Numerator and denominator times N^2 are integers: no rounding decides whether one is zero.
    denominator = n_samples**2 - expected
    kappa = np.ones_like(expected)
    np.divide(n_samples * agreed - expected, denominator, out=kappa, where=denominator > 0)
    return kappa


def pairwise_weight_diversity(weights: ArrayLike, *, measure: str = "angle") -> Floats:
    """Measure the diversity of every pair of members from their weight vectors u and v.

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.
    measure : {"angle", "exclusivity", "relaxed_exclusivity"}
        - "angle": between the lines along the vectors, arccos |cos(u, v)|, in radians from 0 to pi/2.
        - "exclusivity": |u . v|_0, the number of features that both use (Definition 1 of the paper).
        - "relaxed_exclusivity": |u . v|_1 = sum_i |u_i| |v_i| (Definition 2 of the paper).

    Returns
    -------
    values : ndarray of shape (n_members, n_members)
        Symmetric.

    Notes
    -----
    A zero vector has no direction. It is defined here as orthogonal to every other vector (their inner
    product and their exclusivity are zero); two zero vectors are equal members with angle 0.

    Examples
    --------
    >>> pairwise_weight_diversity([[1, 0], [2, 2], [0, -3]]).round(3)
    array([[0.   , 0.785, 1.571],
           [0.785, 0.   , 0.785],
           [1.571, 0.785, 0.   ]])
    >>> pairwise_weight_diversity([[1, 0, 2], [3, 4, 0]], measure="exclusivity")
    array([[2., 1.],
           [1., 2.]])
    """
    check_choice({"measure": measure}, "measure", ("angle", "exclusivity", "relaxed_exclusivity"))
    matrix = _weight_matrix(weights)
    if measure == "exclusivity":
        used = (matrix != 0).astype(float)
        return np.asarray(used @ used.T)
    if measure == "relaxed_exclusivity":
        return np.asarray(np.abs(matrix) @ np.abs(matrix).T)
    # Scaled first, so that no square over- or underflows; zero rows stay zero.
    scaled = matrix / _positive(np.abs(matrix).max(axis=1, keepdims=True))
    units = scaled / _positive(np.linalg.norm(scaled, axis=1, keepdims=True))
    angles = np.zeros((len(units), len(units)))
    for i, unit in enumerate(units[:-1]):
        apart = np.linalg.norm(units[i + 1 :] - unit, axis=1)
        along = np.linalg.norm(units[i + 1 :] + unit, axis=1)
        # tan(angle / 2) = |u - v| / |u + v|: exact for equal vectors, where arccos loses half the digits.
        # The smaller over the larger is the angle of the lines, whatever the signs.
        angles[i, i + 1 :] = 2 * np.arctan2(np.minimum(apart, along), np.maximum(apart, along))
    return np.asarray(angles + angles.T)


def mutual_angular(weights: ArrayLike, g: float = 1.0) -> float:
    """Return the mean of the angles of all pairs minus ``g`` times their variance.

    Large if the vectors point in different directions (mean) and do so evenly (variance).

    Parameters
    ----------
    weights : array-like of shape (n_members, n_features)
        One weight vector per member.
    g : float, default=1.0
        Weight of the variance, not negative.

    Returns
    -------
    measure : float
        At most pi/2, reached by orthogonal vectors; 0 for parallel ones; not below -g pi^2 / 16.

    References
    ----------
    P. Xie, Y. Deng, E. Xing, "Diversifying restricted Boltzmann machine for document modeling", KDD 2015.

    Examples
    --------
    >>> round(mutual_angular([[1, 0], [2, 2], [0, -3]]), 3)
    0.91
    """
    check_number({"g": g}, "g", least=0)
    angles = _pair_values(pairwise_weight_diversity(weights))
    return float(angles.mean() - g * angles.var())


def _pair_values(matrix: ArrayLike) -> Floats:
    """Return the L(L-1)/2 entries above the diagonal, one per unordered pair of members."""
    values = np.asarray(matrix, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ValueError(
            f"A pairwise measure is a square matrix of at least two members; got shape {values.shape}."
        )
    return np.asarray(values[np.triu_indices(len(values), k=1)])


def _weight_matrix(weights: ArrayLike) -> Floats:
    matrix = np.asarray(weights, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise ValueError(
            "weights must have one row per member and one column per feature, at least two members and one "
            f"feature; got shape {matrix.shape}."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError("weights contain NaN or infinity.")
    return matrix


def _positive(lengths: Floats) -> Floats:
    return np.where(lengths > 0, lengths, 1.0)


def interrater_kappa(predictions: ArrayLike, y_true: ArrayLike) -> float:
    """Measure the agreement of all members on which samples are easy, beyond chance (Fleiss).

    1 - [sum over samples of l (L - l) / L] / [N (L - 1) p (1 - p)], where l of the L members are right on a
    sample and p is their mean accuracy.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    kappa : float
        In [-1/(L-1), 1]; 0 is agreement by chance. Equals 1 - D / (2 p (1 - p)) with D the mean
        disagreement over pairs. 1, the limit for equal members, if all are right (or wrong) everywhere.

    Examples
    --------
    >>> interrater_kappa([[1, 1], [1, 0], [1, 1], [0, 0]], [1, 1, 1, 1])
    0.4666666666666667
    """
    right = _correctness(predictions, y_true)
    n_votes, n_members = right.size, right.shape[1]
    n_right = right.sum(axis=1)
    total = int(n_right.sum())
    if total in (0, n_votes):
        return 1.0
    split = int((n_right * (n_members - n_right)).sum())
    # With p = total / (N L), in integers: split N L / [(L-1) total (N L - total)].
    return float(1.0 - split * n_votes / ((n_members - 1) * total * (n_votes - total)))


_MORE_DIVERSE_IF_HIGHER = ("disagreement", "mutual_angular")


@dataclass(frozen=True)
class DiversityReport:
    """Hold the diversity of an ensemble by every measure; pairwise ones averaged over pairs of members.

    Attributes
    ----------
    n_members, n_samples : int
    member_accuracy : float
        Mean accuracy of the members.
    q_statistic, correlation, disagreement, double_fault, kappa : float
        See :func:`pairwise_diversity`.
    interrater_kappa : float
        From correctness, of all members at once.
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
        """Measure predicted labels, and weight vectors if there are any.

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
        right = _correctness(predictions, y_true)
        values: dict[str, float | None] = {
            measure: mean_over_pairs(pairwise_diversity(predictions, y_true, measure=measure))
            for measure in _PAIRWISE
        }
        if weights is None:
            values |= dict.fromkeys(("mutual_angular", "exclusivity", "relaxed_exclusivity"))
        else:
            vectors = _weight_matrix(weights)
            if len(vectors) != right.shape[1]:
                raise ValueError(
                    f"weights must have one row for each of the {right.shape[1]} members; got {len(vectors)}."
                )
            values["mutual_angular"] = mutual_angular(vectors, g)
            for measure in ("exclusivity", "relaxed_exclusivity"):
                values[measure] = mean_over_pairs(pairwise_weight_diversity(vectors, measure=measure))
        return cls(
            n_members=right.shape[1],
            n_samples=right.shape[0],
            member_accuracy=float(right.mean()),
            interrater_kappa=interrater_kappa(predictions, y_true),
            **values,  # type: ignore[arg-type]
        )

    def __str__(self) -> str:
        lines = [
            f"{self.n_members} members on {self.n_samples} samples, mean accuracy {self.member_accuracy:.3f}",
            f"{'measure':<20} {'value':>9}  more diverse if",
        ]
        for field in fields(self)[3:]:
            value = getattr(self, field.name)
            shown = "-" if value is None else f"{value:.4g}"
            direction = "higher" if field.name in _MORE_DIVERSE_IF_HIGHER else "lower"
            lines.append(f"{field.name.replace('_', ' '):<20} {shown:>9}  {direction}")
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
    try:
        weights = member_weights(ensemble)
    except (TypeError, ValueError):  # not linear, or not over the same classes
        weights = None
    return DiversityReport.from_predictions(predictions, y, weights, g=g)


def prediction_matrix(predictions: ArrayLike) -> NDArray[Any]:
    """Return the predictions as an array of at least one sample (rows) and two members (columns)."""
    labels = np.asarray(predictions)
    if labels.ndim != 2 or labels.shape[0] < 1 or labels.shape[1] < 2:
        raise ValueError(
            "predictions must have one row per sample and one column per member, at least one sample and "
            f"two members; got shape {labels.shape}."
        )
    _refuse_missing(labels, "predictions")
    return labels


def truth_vector(y_true: ArrayLike, predictions: NDArray[Any]) -> NDArray[Any]:
    """Return the true labels as a vector that fits ``predictions`` in length and kind."""
    truth = np.asarray(y_true)
    if truth.shape != (len(predictions),):
        raise ValueError(
            f"y_true must hold one label for each of the {len(predictions)} rows of predictions; "
            f"got shape {truth.shape}."
        )
    _refuse_missing(truth, "y_true")
    # Encoded predictions would be compared with names and count as wrong, every one of them.
    if _text_kinds(truth).isdisjoint(_text_kinds(predictions)):
        raise ValueError(
            f"y_true holds labels such as {truth.flat[0]!r} and predictions such as "
            f"{predictions.flat[0]!r}: one is text and the other is not. Decode the predictions first."
        )
    return truth


def label_codes(labels: NDArray[Any]) -> tuple[Ints, int]:
    """Return the position of every label among the distinct labels, and how many of these there are."""
    if labels.dtype.kind != "O":
        names, codes = np.unique(labels.ravel(), return_inverse=True)
        return codes.reshape(labels.shape), len(names)
    # Objects need not have an order of their own; their text gives one that no shuffling changes.
    positions = {name: position for position, name in enumerate(sorted(set(labels.flat), key=str))}
    codes = np.fromiter((positions[name] for name in labels.flat), dtype=np.intp, count=labels.size)
    return codes.reshape(labels.shape), len(positions)


def _text_kinds(labels: NDArray[Any]) -> set[bool]:
    """Return {True} for strings, {False} for labels of other types, both for a mixture."""
    if labels.dtype.kind == "O":
        return {isinstance(label, str) for label in labels.flat}
    return {labels.dtype.kind in "UT"}


def _refuse_missing(labels: NDArray[Any], name: str) -> None:
    if labels.dtype.kind in "fO" and bool(np.any(labels != labels)):  # noqa: PLR0124 -- only NaN differs
        raise ValueError(f"{name} contains NaN, which is not a label.")
