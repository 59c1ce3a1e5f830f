"""Certificates of linear models against added and removed words, on sparse rows.

A row of a text has a number x_j >= 0 for every word j of the vocabulary, and most are zero. Adding word j
lets x_j grow up to u_j, removing it lets x_j fall down to 0. For the score f(x) = b + sum_j w_j x_j of the
predicted class against another one, the damage of word j is

    d_j = -w_j (u_j - x_j)    where w_j < 0 and words are added,
    d_j = w_j x_j             where w_j > 0 and words are removed.

Whatever r words are changed, f stays positive if and only if f(x) exceeds the sum of the r largest damages. A
prediction stays the same if and only if this holds against every other class.

Words that are not in a row have damages that do not depend on the row: they are sorted once. A row has only
to leave out its own words and to put its own damages in their places.

Of two classes, what a changed word adds to f pays for the rounding errors that it brings, so that a slack of
the row as it is suffices, four times the error of its score. Of more, a word may make the scores of both
classes large and their difference no larger: the slack is that of the largest row.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier import ERMClassifier, ERMClassifierCV
from exclusivity.robustness.sources import is_exactly
from exclusivity.voting.preferences import score_slack

_LINEAR = (ERMClassifier, ERMClassifierCV, LogisticRegression, LinearSVC, SGDClassifier, RidgeClassifier)
_SLACKS = 4


def certify_words(
    model: BaseEstimator, X: Matrix, *, added: bool = True, removed: bool = True, largest: ArrayLike = 1.0
) -> Ints:
    """Count the words that may be added to or removed from each text without changing its prediction.

    Parameters
    ----------
    model : fitted classifier
        A linear one: ERMClassifier or ERMClassifierCV with soft voting, LogisticRegression, LinearSVC,
        SGDClassifier or RidgeClassifier.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Texts as ``model.predict`` takes them: for every word its presence (0 or 1), its count, or a number
        that depends on no other word. Rows that are normalised to length 1 are refused, because a word more
        changes the numbers of all others: use ``CountVectorizer(binary=True)``, or ``TfidfVectorizer`` with
        ``norm=None``.
    added : bool, default=True
        Whether an adversary can add words: the number of a word may grow up to ``largest``.
    removed : bool, default=True
        Whether an adversary can remove words: the number of a word may fall down to 0.
    largest : float or array-like of shape (n_features,), default=1.0
        The largest number that an adversary can give to a word; ``np.inf`` for any number of times (two
        classes). Numbers of X that are above it stay possible.

    Returns
    -------
    radius : ndarray of int, shape (n_samples,)
        Whatever so many words are changed, in whatever order and to whatever extent, the prediction stays the
        same; exact, up to rounding. It is the size of the vocabulary where no number of words is enough, and
        -1 where the prediction itself is within rounding errors.

    Notes
    -----
    A word is a column of X. With n-grams a word more changes several columns.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> X = [[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1]]  # cheap, watches, win, minutes
    >>> y = ["spam", "spam", "work", "work"]
    >>> certify_words(ERMClassifier(1).fit(X, y), X)
    array([1, 1, 1, 1])

    Of a model whose weights all speak for spam no number of added words makes work of it:

    >>> guard = ERMClassifier(1, monotonic_cst=[-1, -1, -1, -1]).fit(X, y)
    >>> certify_words(guard, X, removed=False, largest=np.inf)
    array([4, 4, 0, 0])
    """
    weights, intercepts = _linear_scores(model)
    rows = _words(model, X)
    ceiling = np.broadcast_to(np.asarray(largest, dtype=float), rows.shape[1:])
    if not (ceiling >= 0).all():
        raise ValueError("largest must be numbers of at least 0.")
    if len(weights) > 2 and added and np.isinf(ceiling).any():
        raise ValueError(
            "largest must be finite for more than two classes: a word that all classes like alike could make "
            "their scores so large that rounding decides. Give the largest count that you expect."
        )
    scores = np.asarray(rows @ weights.T) + intercepts
    slack = _SLACKS * score_slack(rows, weights, intercepts, np.asarray(model.coef_).dtype)
    if len(weights) > 2 and added:  # what helps a class against another may hide rounding errors in both
        slack += _SLACKS * score_slack(ceiling[None], weights, intercepts, np.asarray(model.coef_).dtype)
    predicted = scores.argmax(axis=1)
    radius = np.full(len(scores), rows.shape[1], dtype=np.intp)
    for winner, rival in permutations(range(len(weights)), 2):
        some = np.flatnonzero(predicted == winner)
        lead = scores[some, winner] - scores[some, rival] - slack[some, winner] - slack[some, rival]
        duel = weights[winner] - weights[rival]
        found = _radii(rows[some], lead, duel, ceiling if added else np.zeros_like(ceiling), removed)
        radius[some] = np.minimum(radius[some], found)
    return radius


def _radii(rows: Matrix, lead: Floats, weights: Floats, ceiling: Floats, removed: bool) -> Ints:
    """Return how many words may change before each score loses its lead."""
    harmful = np.flatnonzero((weights < 0) & (ceiling > 0))
    damage = -weights[harmful] * ceiling[harmful]
    order = np.argsort(-damage, kind="stable")
    damage = damage[order]
    total = np.cumsum(damage)
    place = np.full(len(weights), len(damage))  # of each word in this order; its end where it does no harm
    place[harmful[order]] = np.arange(len(damage))
    slopes, numbers = weights[rows.indices], rows.data
    own = np.where(slopes > 0, slopes * numbers * removed, 0.0)
    falls = slopes < 0
    own[falls] = -slopes[falls] * np.maximum(ceiling[rows.indices[falls]] - numbers[falls], 0.0)
    radius = np.full(len(lead), -1, dtype=np.intp)
    for row in np.flatnonzero(lead > 0):
        cells = slice(rows.indptr[row], rows.indptr[row + 1])
        places = place[rows.indices[cells]]
        places = places[places < len(damage)]
        # The row's own words left out, others must still be able to take the lead.
        needed = np.searchsorted(total, lead[row] + damage[places].sum()) + 1
        others = damage[:needed].copy()
        others[places[places < needed]] = 0.0
        largest = np.sort(np.concatenate((others, own[cells])), kind="stable")[::-1]
        enough = np.searchsorted(np.cumsum(largest), lead[row])
        radius[row] = len(weights) if enough == len(largest) and needed > len(damage) else enough
    return radius


def _linear_scores(model: BaseEstimator) -> tuple[Floats, Floats]:
    """Return the weights and intercepts of a score for every class; for two classes one of them is zero."""
    if not is_exactly(model, _LINEAR):
        names = ", ".join(kind.__name__ for kind in _LINEAR)
        raise TypeError(
            f"certify_words needs a linear classifier ({names}); got {type(model).__name__}. Of a pipeline "
            "give the last step, and the rows that it sees."
        )
    check_is_fitted(model)
    if getattr(model, "voting", "soft") != "soft":
        raise ValueError("this classifier counts votes; use certify, or set_params(voting='soft').")
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    intercepts = np.broadcast_to(np.asarray(model.intercept_, dtype=float), len(weights))
    if len(model.classes_) == 2:
        return np.vstack([np.zeros_like(weights), weights]), np.append(0.0, intercepts)
    if len(weights) != len(model.classes_) or getattr(model, "multi_class_", "ovr") == "ovo":
        raise ValueError("certify_words needs one score per class; fit with multi_class='ovr'.")
    return weights, intercepts


def _words(model: BaseEstimator, X: Matrix) -> Matrix:
    """Return CSR rows of words, without zeros, or refuse them."""
    checked = validate_data(model, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
    rows = sparse.csr_array(checked, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if (rows.data < 0).any():
        raise ValueError("X must hold numbers of at least 0: presence, counts or weights of words.")
    sizes = np.diff(rows.indptr)
    for power in (1, 2):
        norms = np.asarray((rows**power).sum(axis=1)).ravel()[sizes > 0]
        if (sizes > 1).any() and np.allclose(norms, 1.0, rtol=0, atol=1e-5):
            raise ValueError(
                "the rows of X are normalised: a word more makes the numbers of all others smaller, and the "
                "certificate would be void. Use CountVectorizer(binary=True), or TfidfVectorizer(norm=None)."
            )
    return rows
