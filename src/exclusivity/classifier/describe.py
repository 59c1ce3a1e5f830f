"""How a fitted classifier introduces itself: it says plainly whether its members differ."""

from __future__ import annotations

from html import escape

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from exclusivity._typing import Bools
from exclusivity.objective.losses import LOSSES
from exclusivity.objective.penalties import ExclusivityRegulariser


def note(estimator: BaseEstimator) -> str:
    """One sentence on the members of a fitted classifier: all equal, or on which features; else nothing."""
    ensemble = getattr(estimator, "_ensemble", None)
    if ensemble is None or ensemble.n_members == 1:
        return ""
    if not ensemble.members_are_equal:
        return _difference(estimator.supports_) if estimator._fitted_exclusivity > 1 else ""
    kappa = ExclusivityRegulariser(estimator._fitted_exclusivity).kappa(ensemble.n_members)
    model = "logistic regression" if LOSSES[estimator.loss].is_log_odds else "SVM"
    return f"{ensemble.n_members} equal members = one {model} at cost C/{kappa:g}"


def _difference(supports: Bools) -> str:
    n_features = supports.sum(axis=1)
    n_members = int((n_features > 0).sum())
    share = "no two of them on the same one" if supports.sum(axis=0).max() <= 1 else "some of them shared"
    least, most = n_features[n_features > 0].min(), n_features.max()
    count = f"{least} to {most} features" if least < most else f"{most} feature{'s' * bool(most > 1)}"
    sizes = f"{count} each, {share}"
    surplus = f"; {len(supports) - n_members} without features abstain" if n_members < len(supports) else ""
    return f"{n_members} members on {sizes}{surplus}"


def text(estimator: BaseEstimator, plain: str) -> str:
    """The plain repr with the note behind it."""
    sentence = note(estimator)
    return f"{plain}  # {sentence}" if sentence else plain


def html(estimator: BaseEstimator) -> str:
    """scikit-learn's diagram with the note below it."""
    diagram = str(estimator_html_repr(estimator))
    sentence = note(estimator)
    return f"{diagram}<p>{escape(sentence)}</p>" if sentence else diagram


def mimebundle(estimator: BaseEstimator) -> dict[str, str]:
    """What a notebook asks for."""
    bundle = {"text/plain": repr(estimator)}
    if get_config()["display"] == "diagram":
        bundle["text/html"] = html(estimator)
    return bundle
