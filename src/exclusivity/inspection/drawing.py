"""What the displays share: axes, colours, and a way into pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.pages.markup import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# Okabe and Ito: told apart by everybody, and in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#555555", "#8A6D00")
QUIET = "#8c8c8c"


def new_axes(n_rows: int = 1, size: tuple[float, float] = (6.4, 4.2)) -> Any:
    """A figure's axes, one below the other with a common x axis; an array for more than one."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 -- optional
    except ImportError as error:
        raise ImportError('Displays need matplotlib: pip install "exclusivity[plot]".') from error
    _, axes = plt.subplots(n_rows, 1, figsize=size, sharex=True, layout="constrained")
    return axes


def literal(text: object) -> str:
    """Return a name from data for matplotlib to draw as it is: no formula, and in every legend."""
    shown = printable(text).replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown  # legends leave out what begins with _


def tidy(ax: Axes) -> None:
    """No box around the axes, a light grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)


def legend(ax: Axes, *, outside: bool) -> None:
    """A legend without a frame; outside the axes where lines would run through it."""
    if outside:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        ax.legend(frameon=False, fontsize="small")


def last_step(estimator: BaseEstimator, needed: str) -> BaseEstimator:
    """The estimator itself, or the last step of a pipeline, if it has what is needed."""
    step = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not hasattr(step, needed):
        raise ValueError(
            f"{type(step).__name__} has no {needed}: give a fitted classifier that has it, or a pipeline "
            "that ends with one."
        )
    return step


def feature_names(estimator: BaseEstimator, given: Any) -> list[str]:
    """The names to write on axes: those given, those seen in ``fit``, or numbers."""
    n_features = int(estimator.n_features_in_)
    if given is None:
        given = getattr(estimator, "feature_names_in_", [f"feature {j}" for j in range(n_features)])
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(f"feature_names must have one name per feature, {n_features}; got {len(names)}.")
    return names


def input_names(model: BaseEstimator, given: Any) -> list[str]:
    """The names of what a classifier, or the last step of a pipeline, weighs.

    Those given, else the ones that the steps before make of the names seen in ``fit``, else numbers.
    """
    fitted = last_step(model, "components_")
    if given is None and fitted is not model and hasattr(model, "feature_names_in_") and len(model.steps) > 1:
        try:
            given = model[:-1].get_feature_names_out()
        except (AttributeError, ValueError):  # a step that does not tell
            given = None
    return feature_names(fitted, given)


def problem_names(classes: NDArray[Any], multi_class: str) -> list[str]:
    """What each binary problem separates; long labels are cut, as each is in many names."""
    labels = [cut(str(label)) for label in classes]
    if len(labels) == 2:
        return [f"{labels[1]} against {labels[0]}"]
    if multi_class == "ovr":
        return [f"{label} against the rest" for label in labels]
    return [f"{a} against {b}" for i, a in enumerate(labels) for b in labels[i + 1 :]]


def cut(name: str, most: int = 60) -> str:
    """A name that is not too long to be drawn."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def check_problem(problem: int, n_problems: int) -> None:
    """Raise unless ``problem`` numbers one of the binary problems."""
    if not isinstance(problem, (int, np.integer)) or not 0 <= problem < n_problems:
        raise ValueError(f"problem must be an integer from 0 to {n_problems - 1}; got {problem!r}.")
