"""The methods of Table 1, each as a name and a way to build its estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.baselines import DRMClassifier, PSVMClassifier
from exclusivity.experiments.published import COST, MEMBERS

Labels = NDArray[Any]
Builder = Callable[[Labels, int], Any]
"""(training labels, seed) -> estimator, not fitted."""

# Below what can move a prediction: the matched SVM is an oracle for the certified optimum, and both are
# compared prediction by prediction. (LIBSVM takes minutes for 1e-8 on some splits of australian.)
_TIGHT = 1e-8
_LIBSVM_TIGHT, _LIBSVM_ITERATIONS = 1e-6, 1_000_000
_LIBSVM_NU = 0.5


@dataclass(frozen=True)
class Method:
    """A row of Table 1.

    Attributes
    ----------
    name : str
    group : {"paper", "single", "ours"}
        One of the paper's ten, one of the three machines of its source's comment, or one of our own rows.
    text : str
        What is trained.
    build : callable
        (training labels, seed) -> estimator.
    """

    name: str
    group: str
    text: str
    build: Builder


def feasible_nu(y: Labels, wanted: float = _LIBSVM_NU) -> float:
    """``wanted``, or a little below the largest nu for which the classes' sizes leave a solution.

    Examples
    --------
    >>> import numpy as np
    >>> feasible_nu(np.array([1, -1, -1, -1, -1, -1, -1, -1]))
    0.24...
    """
    smaller = np.unique(y, return_counts=True)[1].min()
    return float(min(wanted, 0.99 * 2 * smaller / len(y)))


def matched_svm(p: int, cost: float) -> BaseEstimator:
    """One SVM by a solver that shares nothing with ours for p = 1, and by the tight PSVM for p = 2."""
    if p == 1:
        return SVC(kernel="linear", C=cost, tol=_LIBSVM_TIGHT, max_iter=_LIBSVM_ITERATIONS)
    return PSVMClassifier(cost, p=2, tol=_TIGHT, max_iter=100_000)


def _erm(members: int, p: int, _y: Labels, _seed: int) -> BaseEstimator:
    return ERMClassifier(members, C=COST, p=p, solver="paper")


def certified_erm(members: int, p: int, cost: float) -> BaseEstimator:
    """The optimum of the paper's objective, with a proof of it."""
    return ERMClassifier(members, C=cost, p=p, solver="newton", tol=_TIGHT)


def _certified(members: int, p: int, _y: Labels, _seed: int) -> BaseEstimator:
    return certified_erm(members, p, COST)


def _matched(members: int, p: int, _y: Labels, _seed: int) -> BaseEstimator:
    return matched_svm(p, COST / members)


def _psvm(p: int, _y: Labels, _seed: int) -> BaseEstimator:
    return PSVMClassifier(COST, p=p)


def _nu_svm(y: Labels, _seed: int) -> BaseEstimator:
    return NuSVC(kernel="linear", nu=feasible_nu(y))


# Matlab's fitensemble of the paper's time: boosting has MinParent = the number of rows, so one split per
# tree; bagging has MinParent = 2 and MinLeaf = 1, so trees are grown to the end.
def _adaboost(members: int, _y: Labels, seed: int) -> BaseEstimator:
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=members, random_state=seed)


def _bagging(members: int, _y: Labels, seed: int) -> BaseEstimator:
    return BaggingClassifier(DecisionTreeClassifier(), n_estimators=members, random_state=seed)


def _drm(members: int, _y: Labels, seed: int) -> BaseEstimator:
    return DRMClassifier(members, random_state=seed)


def _all_methods() -> list[Method]:
    rows: list[Method] = []
    for k in MEMBERS:
        rows += [
            Method(f"L{p}-ERM{k}", "paper", f"ERM, {k} members, p = {p}, Algorithm 2", partial(_erm, k, p))
            for p in (1, 2)
        ]
        rows += [
            Method(f"AdaBoost{k}", "paper", f"AdaBoost, {k} stumps", partial(_adaboost, k)),
            Method(f"Bagging{k}", "paper", f"Bagging, {k} full trees", partial(_bagging, k)),
            Method(f"DRM{k}", "paper", f"DRM (relaxed), {k} members", partial(_drm, k)),
        ]
    rows += [
        Method(f"L{p}-PSVM", "single", f"one SVM of cost {COST:g}, p = {p}", partial(_psvm, p))
        for p in (1, 2)
    ]
    rows.append(Method("nu-SVM", "single", f"nu-SVM, nu = {_LIBSVM_NU} or the largest feasible", _nu_svm))
    for k in MEMBERS:
        for p in (1, 2):
            text = f"ERM, {k} members, p = {p}, certified optimum"
            rows.append(Method(certified_name(k, p), "ours", text, partial(_certified, k, p)))
            text = f"one SVM of the matched cost {COST:g}/{k}, p = {p}"
            rows.append(Method(matched_name(k, p), "ours", text, partial(_matched, k, p)))
    return rows


def erm_name(members: int, p: int) -> str:
    """The row of the paper's algorithm."""
    return f"L{p}-ERM{members}"


def certified_name(members: int, p: int) -> str:
    """The row of the certified optimum of the same objective."""
    return f"L{p}-ERM{members}-certified"


def matched_name(members: int, p: int) -> str:
    """The row of the one SVM it is equivalent to."""
    return f"L{p}-SVM-C/{members}"


METHODS: Mapping[str, Method] = {method.name: method for method in _all_methods()}
"""All rows, the paper's ten first."""
