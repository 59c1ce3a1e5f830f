"""The systems of Table 1, each as a name and an estimator.

AdaBoost and Bagging have the trees that Matlab's ``fitensemble`` grew at the paper's time: boosting has
MinParent = the number of rows, so one split per tree; bagging has MinParent = 2 and MinLeaf = 1, so trees are
grown to the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from reproduction.data import Floats
from reproduction.drm import DRMClassifier
from reproduction.psvm import PSVMClassifier
from reproduction.published import COST, MEMBERS

# Below what can move a prediction: the matched SVM is an oracle for the certified optimum, and both are
# compared prediction by prediction. (LIBSVM takes minutes for 1e-8 on some splits of australian.)
_TIGHT = 1e-8
_LIBSVM_TIGHT, _LIBSVM_ITERATIONS = 1e-6, 1_000_000


def paper_erm(members: int, p: int, cost: float = COST) -> ERMClassifier:
    """Return the paper's ensemble, trained by its Algorithm 2."""
    return ERMClassifier(members, C=cost, p=p, solver="paper")


def certified_erm(members: int, p: int, cost: float = COST) -> ERMClassifier:
    """Return the optimum of the paper's objective, with a proof of it."""
    return ERMClassifier(members, C=cost, p=p, solver="newton", tol=_TIGHT)


def matched_svm(p: int, cost: float) -> Any:
    """Return one SVM by a solver that shares nothing with the package's: LIBSVM or the tight PSVM."""
    if p == 1:
        return SVC(kernel="linear", C=cost, tol=_LIBSVM_TIGHT, max_iter=_LIBSVM_ITERATIONS)
    return PSVMClassifier(cost, p=2, tol=_TIGHT, max_iter=100_000)


def erm_name(members: int, p: int) -> str:
    """Return the row of the paper's algorithm."""
    return f"L{p}-ERM{members}"


def certified_name(members: int, p: int) -> str:
    """Return the row of the certified optimum of the same objective."""
    return f"L{p}-ERM{members}-certified"


def matched_name(members: int, p: int) -> str:
    """Return the row of the one SVM that the optimum is equivalent to."""
    return f"L{p}-SVM-C/{members}"


def _all_systems() -> dict[str, Any]:
    stump, tree = DecisionTreeClassifier(max_depth=1), DecisionTreeClassifier()
    systems: dict[str, Any] = {}
    for k in MEMBERS:
        systems |= {erm_name(k, p): paper_erm(k, p) for p in (1, 2)}
        systems[f"AdaBoost{k}"] = AdaBoostClassifier(stump, n_estimators=k)
        systems[f"Bagging{k}"] = BaggingClassifier(tree, n_estimators=k)
        systems[f"DRM{k}"] = DRMClassifier(k)
    systems |= {f"L{p}-PSVM": PSVMClassifier(COST, p=p) for p in (1, 2)}
    systems["nu-SVM"] = NuSVC(kernel="linear")
    for k in MEMBERS:
        for p in (1, 2):
            systems[certified_name(k, p)] = certified_erm(k, p)
            systems[matched_name(k, p)] = matched_svm(p, COST / k)
    return systems


SYSTEMS = _all_systems()
"""Name -> estimator: the paper's ten first, then the single machines of its source's comment, then ours."""


def build(name: str, y: Floats, seed: int) -> Any:
    """Return a fresh estimator for these training labels; the seed is for those that draw random numbers."""
    model = clone(SYSTEMS[name])
    if isinstance(model, AdaBoostClassifier | BaggingClassifier):
        model.set_params(random_state=seed)
    if isinstance(model, NuSVC):
        model.set_params(nu=feasible_nu(y))
    return model


def feasible_nu(y: Floats, wanted: float = 0.5) -> float:
    """Return ``wanted``, or a little below the largest nu for which the classes' sizes leave a solution.

    Examples
    --------
    >>> feasible_nu(np.array([1, -1, -1, -1, -1, -1, -1, -1]))
    0.24...
    """
    smaller = np.unique(y, return_counts=True)[1].min()
    return float(min(wanted, 0.99 * 2 * smaller / len(y)))
