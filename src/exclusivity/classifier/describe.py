"""How a fitted classifier introduces itself: it says plainly when its members are all equal."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr

from exclusivity.problem import ExclusivityRegulariser


def note(estimator: Any) -> str:
    """One sentence for a fitted classifier of several equal members, else nothing."""
    ensemble = getattr(estimator, "_ensemble", None)
    if ensemble is None or ensemble.n_members == 1 or not ensemble.members_are_equal:
        return ""
    kappa = ExclusivityRegulariser(estimator._fitted_exclusivity).kappa(ensemble.n_members)
    return f"{ensemble.n_members} equal members = one SVM at cost C/{kappa:g}"


def text(estimator: Any, plain: str) -> str:
    """The plain repr with the note behind it."""
    sentence = note(estimator)
    return f"{plain}  # {sentence}" if sentence else plain


def html(estimator: Any) -> str:
    """scikit-learn's diagram with the note below it."""
    diagram = str(estimator_html_repr(estimator))
    sentence = note(estimator)
    return f"{diagram}<p>{escape(sentence)}</p>" if sentence else diagram


def mimebundle(estimator: Any) -> dict[str, str]:
    """What a notebook asks for."""
    bundle = {"text/plain": repr(estimator)}
    if get_config()["display"] == "diagram":
        bundle["text/html"] = html(estimator)
    return bundle
