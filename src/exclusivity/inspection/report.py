"""model_report: a fitted model as one HTML page that needs nothing else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from exclusivity import __version__
from exclusivity.inspection import drawing
from exclusivity.inspection.batches import by_batches
from exclusivity.inspection.report_plots import ReportPlots
from exclusivity.inspection.scores import Scores, scores_of
from exclusivity.inspection.summary import ModelSummary, summarise
from exclusivity.pages import counts, figure, gallery, page, paragraph, section, table, text
from exclusivity.problem.arrays import Matrix

_MOST_MEMBERS = 60
_MOST_PROBLEMS = 12
_MOST_CLASSES = 30
_WHY_EQUAL = (
    "For exclusivity up to 1 the objective is convex and treats all members alike, so that its optimum is "
    "one SVM, shared by all of them. For members that use different features fit with exclusivity above 1."
)


def model_report(
    model: Any,
    X: Matrix = None,
    y: Any = None,
    *,
    feature_names: object = None,
    title: str = "Report on a model",
) -> str:
    """Describe a fitted model in one self-contained HTML page.

    The page shows the parameters, whether the members differ and which features each of them uses, how the
    fit came to its end and what it could prove; for an ``ERMClassifierCV`` the scores along C. With
    rows and labels it adds accuracies, a confusion matrix and, where votes are counted, what stays right when
    features break; of a table, what each column adds to the score. Plots (SVG) need matplotlib; without it
    the numbers are there.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV or Pipeline that ends with one
        Fitted.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), default=None
        Rows to judge the model on, as a rule others than those it was fitted to.
    y : array-like of shape (n_samples,), default=None
        Their labels. Give both or neither.
    feature_names : sequence of str, default=None
        Names of the features; None takes those seen in ``fit``.
    title : str, default="Report on a model"
        The heading.

    Returns
    -------
    html : str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.inspection import model_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> page = model_report(ERMClassifier(30).fit(scale(X), y))
    >>> "30 equal members = one SVM at cost C/30" in page
    True
    """
    if (X is None) != (y is None):
        raise ValueError("model_report needs rows and their labels, or neither; only one of them was given.")
    summary = summarise(model, feature_names=feature_names)
    names = drawing.input_names(model, feature_names)
    plots = ReportPlots(model, names)
    scores = None if X is None else scores_of(y, by_batches(model, X, model.predict))
    parts = [_head(summary, scores), _columns(plots.additive(X)), _members(summary, plots)]
    if scores is not None:
        parts.append(_quality(scores))
        if summary.parameters["voting"] != "soft":
            parts.append(_certificates(plots.certified(X, y)))
    if summary.kind == "ERMClassifierCV":
        parts.append(section("path", "The choice of C", figure(plots.path(), "Scores on rows left out.")))
    parts += [_training(summary, plots), _parameters(summary)]
    return page(title, "<main>", *parts, f'<p class="note">exclusivity {text(__version__)}</p></main>')


def _head(summary: ModelSummary, scores: Scores | None) -> str:
    facts: list[tuple[object, str]] = [
        (summary.n_members, "members"),
        (summary.n_features, "features"),
        (len(summary.classes), "classes"),
    ]
    if scores is not None:
        facts = [
            (f"{scores.accuracy:.1%}", f"accuracy on {scores.n_rows} rows"),
            (f"{scores.balanced_accuracy:.1%}", "balanced accuracy"),
            (
                f"{scores.constant_accuracy:.1%}",
                f"for always {scores.most_frequent}, {scores.constant_balanced_accuracy:.1%} balanced",
            ),
            *facts,
        ]
    chosen = "" if summary.chosen_C is None else f" that chose C = {summary.chosen_C:.4g}"
    before = f" after {', '.join(summary.steps)}" if summary.steps else ""
    return (
        paragraph(summary.kind + chosen + before)
        + counts(facts)
        + _caution(scores)
        + _verdict_on_training(summary)
    )


def _caution(scores: Scores | None) -> str:
    if scores is None or not scores.hardly_beats_a_constant:
        return ""
    sentence = f"In these rows {scores.caution()} Fit with class_weight='balanced', or choose another C."
    return f'<p class="bad">{text(sentence)}</p>'


def _verdict_on_training(summary: ModelSummary) -> str:
    failed = [problem.name for problem in summary.problems if not problem.converged]
    if failed:
        return (
            f'<p class="bad">Not converged: {text(", ".join(failed[:5]))}. '
            "Raise max_iter, or scale the features.</p>"
        )
    gaps = [problem.gap for problem in summary.problems]
    if np.all(np.isnan(gaps)):
        return paragraph("Converged. Above exclusivity 1 there is no bound on the distance from the optimum.")
    return paragraph(
        f"Converged: proven to be within {np.nanmax(gaps):.1e} (relative) of the optimum, and asked for "
        f"{summary.parameters['tol']:g}."
    )


def _members(summary: ModelSummary, plots: ReportPlots) -> str:
    notes = []
    if summary.note:
        notes.append(f'<p class="callout"><b>{text(summary.note)}.</b></p>')
    if summary.members_are_equal and summary.n_members > 1:
        notes.append(paragraph(_WHY_EQUAL))
    figures = _wide(plots.components())
    rows = [
        [
            "all" if summary.members_are_equal and summary.n_members > 1 else text(member.number),
            text(member.n_features),
            text(", ".join(f"{name} ({weight:+.3g})" for name, weight in member.strongest)) or "abstains",
        ]
        for member in summary.members[:_MOST_MEMBERS]
    ]
    caption = "Features of the members, the largest weights first"
    if len(summary.members) > _MOST_MEMBERS:
        caption += f"; the first {_MOST_MEMBERS} of {len(summary.members)} members"
    if summary.steps:
        caption += ". Weights are those of scaled features"
    listing = table(["member", "features", "largest weights"], rows, caption + ".")
    return section(
        "members",
        "The members",
        *notes,
        figures,
        f'<div class="wrapped">{listing}</div>',
    )


def _columns(drawn: list[tuple[str | None, str]]) -> str:
    """The columns of a table, where the model takes one."""
    if not drawn:
        return ""
    return section("columns", "The columns", _wide(drawn))


def _wide(drawn: list[tuple[str | None, str]]) -> str:
    return "".join(
        f'<div class="wide" style="--natural: {_natural_width(svg):.0f}px">{figure(svg, caption)}</div>'
        for svg, caption in drawn
    )


def _natural_width(svg: str | None) -> float:
    """At this width the letters of a plot can be read: a phone scrolls, a screen does not blow it up."""
    found = re.search(r'viewBox="0 0 ([\d.]+)', svg or "")
    return 0.0 if found is None else 1.15 * float(found.group(1))


def _quality(scores: Scores) -> str:
    shown = range(min(len(scores.classes), _MOST_CLASSES))
    names = [str(label) for label in scores.classes]
    rows = [
        [
            text(names[i]),
            text(scores.support[i]),
            _share(scores.precision[i]),
            _share(scores.recall[i]),
            _share(scores.f1[i]),
        ]
        for i in shown
    ]
    more = "" if len(names) <= _MOST_CLASSES else f", the first {_MOST_CLASSES} of {len(names)} classes"
    counts_of = scores.confusion_of(len(shown))
    confusion = [[text(names[i]), *(text(counts_of[i, j]) for j in shown)] for i in shown]
    return section(
        "quality",
        "Predictions",
        table(["class", "rows", "precision", "recall", "F1"], rows, f"By class{more}."),
        table(
            ["true class", *(f"as {names[j]}" for j in shown)],
            confusion,
            f"Confusion matrix{more}: rows are true classes, columns predictions.",
        ),
    )


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"


def _certificates(drawn: tuple[str | None, Any, Any]) -> str:
    svg, curve, balanced = drawn
    rows = [[text(r), *map(_share, shares)] for r, shares in enumerate(zip(curve, balanced, strict=True))]
    caption = "Predictions that are right and stay right whatever values so many features take."
    header = ["broken features", "certified accuracy", "balanced"]
    listing = table(header, rows, "Certified accuracy; balanced: the mean over the classes.")
    return section(
        "certificates",
        "When features break",
        gallery([figure(svg, caption), f"<div>{listing}</div>"]),
    )


def _training(summary: ModelSummary, plots: ReportPlots) -> str:
    rows = [
        [
            text(problem.name),
            text(problem.n_iter),
            text(f"{problem.objective:.6g}"),
            "no bound" if np.isnan(problem.gap) else text(f"{problem.gap:.1e}"),
            "yes" if problem.converged else '<span class="bad">no</span>',
        ]
        for problem in summary.problems[:_MOST_PROBLEMS]
    ]
    more = len(summary.problems) - _MOST_PROBLEMS
    caption = "How each binary problem ended" + (f"; {more} more are left out." if more > 0 else ".")
    header = ["problem", "iterations", "objective", "duality gap", "converged"]
    return section(
        "training",
        "The fit",
        table(header, rows, caption),
        figure(*plots.convergence()),
    )


def _parameters(summary: ModelSummary) -> str:
    rows = [
        [text(name), f"<code>{text(_short(repr(value)))}</code>"]
        for name, value in summary.parameters.items()
    ]
    listing = table(["parameter", "value"], rows, f"Parameters of {summary.kind}.")
    return section("parameters", "Parameters", f'<div class="parameters">{listing}</div>')


def _short(value: str) -> str:
    return value if len(value) <= 200 else f"{value[:200]}..."
