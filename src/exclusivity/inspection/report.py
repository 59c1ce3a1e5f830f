"""model_report: a fitted model as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import Any

import numpy as np

from exclusivity import __version__
from exclusivity._text import printable
from exclusivity._typing import Matrix
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.inspection import drawing
from exclusivity.inspection.additive import AdditiveDisplay, is_additive
from exclusivity.inspection.batches import by_batches
from exclusivity.inspection.displays import (
    CertifiedAccuracyDisplay,
    ComponentsDisplay,
    ConvergenceDisplay,
    PathDisplay,
    radii_of,
)
from exclusivity.inspection.scores import caution, scores_of
from exclusivity.inspection.summary import ModelSummary, summarise

# Limits of tables, and of plots: beyond them a plot is megabytes in which nothing can be seen.
_MOST_MEMBERS, _MOST_PROBLEMS, _MOST_CLASSES = 60, 12, 30
_MOST_FEATURES_DRAWN, _MOST_PROBLEMS_DRAWN, _MOST_CURVES = 200, 4, 24
_SIZE = (5.2, 3.4)
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

    The page shows the parameters, whether the members differ and which features each of them uses, and the
    end of the fit with its certificate; for an ``ERMClassifierCV`` the scores along C. With rows and labels
    it adds accuracies, a confusion matrix and, for votes and robust additive models, certified accuracies;
    for a table, the contribution of each column to the score. Plots (SVG) need matplotlib, the
    numbers do not.

    Parameters
    ----------
    model : RobustAdditiveClassifier, ERMClassifier, ERMClassifierCV, or Pipeline that ends with the latter
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
    is_robust = isinstance(model, RobustAdditiveClassifier)
    fitted = model if is_robust else drawing.last_step(model, "components_")
    predicted = None if X is None else by_batches(model, X, model.predict)
    scores = None if predicted is None else scores_of(y, predicted)
    sections = [
        ("columns", "The columns", _columns(model, X)),
        ("members", "The members", _members(summary, model, feature_names)),
        ("quality", "Predictions", "" if scores is None else _quality(scores)),
    ]
    if scores is not None and summary.parameters.get("voting") != "soft":
        radii = by_batches(model, X, lambda rows: radii_of(model, rows))
        sections.append(("certificates", "When features break", _certificates(radii, y, predicted)))
    if summary.kind == "ERMClassifierCV":
        svg = _draw("path", _SIZE, lambda ax: PathDisplay.from_estimator(model, ax=ax))
        sections.append(("path", "The choice of C", _figure(svg, "Scores on held-out rows.")))
    sections.append(("training", "The fit", _training(summary, fitted)))
    sections.append(("parameters", "Parameters", _parameters(summary)))
    body = "".join(
        f'<section id="{anchor}"><h2>{heading}</h2>{html}</section>'
        for anchor, heading, html in sections
        if html
    )
    return _PAGE.format(
        version=_text(__version__), title=_text(title), style=_STYLE, head=_head(summary, scores), body=body
    )


def _head(summary: ModelSummary, scores: dict[str, Any] | None) -> str:
    facts: list[tuple[object, str]] = []
    warning = ""
    if scores is not None:
        constant = scores["constant"]
        facts += [
            (f"{scores['accuracy']:.1%}", f"accuracy on {scores['rows']} rows"),
            (f"{scores['balanced_accuracy']:.1%}", "balanced accuracy"),
            (
                f"{constant['accuracy']:.1%}",
                f"for always {constant['class']}, {constant['balanced_accuracy']:.1%} balanced",
            ),
        ]
        warning = caution(scores)
    facts += [(summary.n_members, "members")] if summary.n_members else []
    facts += [
        (summary.n_features, "features" if summary.n_members else "columns"),
        (len(summary.classes), "classes"),
    ]
    items = "".join(f"<li><b>{_text(number)}</b>{_text(word)}</li>" for number, word in facts)
    if warning:
        warning = f"In these rows {warning} Fit with class_weight='balanced', or choose another C."
    chosen = "" if summary.chosen_C is None else f" that chose C = {summary.chosen_C:.4g}"
    before = f" after {', '.join(summary.steps)}" if summary.steps else ""
    return (
        f'{_paragraph(summary.kind + chosen + before)}<ul class="counts">{items}</ul>'
        f"{_paragraph(warning, 'bad') if warning else ''}{_convergence_verdict(summary)}"
    )


def _convergence_verdict(summary: ModelSummary) -> str:
    failed = [problem.name for problem in summary.problems if not problem.converged]
    if failed:
        names = ", ".join(failed[:5])
        return _paragraph(f"Not converged: {names}. Raise max_iter, or scale the features.", "bad")
    gaps = [problem.gap for problem in summary.problems]
    if np.all(np.isnan(gaps)):
        return _paragraph(
            "Converged. Above exclusivity 1 there is no bound on the distance from the optimum."
        )
    return _paragraph(
        f"Converged: proven to be within {np.nanmax(gaps):.1e} (relative) of the optimum, and asked for "
        f"{summary.parameters['tol']:g}."
    )


def _columns(model: Any, X: object) -> str:
    """Draw the contributions of the columns of a table, one plot per binary problem."""
    is_robust = isinstance(model, RobustAdditiveClassifier)
    if not (is_robust or is_additive(model)):
        return ""
    n_problems, columns = (
        len(model.points_ if is_robust else model[-1].components_),
        (model if is_robust else model[0]).columns_,
    )
    below = " Grey: the rows of this report." if X is not None else ""
    html = ""
    for problem in range(min(n_problems, _MOST_PROBLEMS_DRAWN)):
        shown = AdditiveDisplay.from_estimator(model, X, problem=problem, plot=False)
        is_cut = len(columns) > len(shown.panels)
        more = " Columns that move the score less are left out." if is_cut else ""
        band = " The band is what a broken cell can add." if is_robust else ""
        caption = f"What each column adds to the score, {shown.title}; a cross is a missing value."
        caption += f"{band}{below}{more}"
        html += _wide_figure(_draw(f"additive{problem}", shown.size, shown.plot), caption)
    return html


def _members(summary: ModelSummary, model: Any, feature_names: object) -> str:
    if not summary.members:
        return ""
    fitted = drawing.last_step(model, "components_")
    names = drawing.feature_names(model, feature_names)
    are_shared = summary.members_are_equal and summary.n_members > 1
    notes = f'<p class="callout"><b>{_text(summary.note)}.</b></p>' if summary.note else ""
    notes += _paragraph(_WHY_EQUAL) if are_shared else ""
    rows = [
        [
            "all" if are_shared else member.number,
            member.n_features,
            ", ".join(f"{name} ({weight:+.3g})" for name, weight in member.strongest) or "abstains",
        ]
        for member in summary.members[:_MOST_MEMBERS]
    ]
    caption = "Features of the members, the largest weights first"
    if len(summary.members) > _MOST_MEMBERS:
        caption += f"; the first {_MOST_MEMBERS} of {summary.n_members} members"
    caption += ". Weights are those of scaled features." if summary.steps else "."
    listing = _table(["member", "features", "largest weights"], rows, caption)
    return f'{notes}{_heat_maps(fitted, names)}<div class="wrapped">{listing}</div>'


def _heat_maps(fitted: Any, names: list[str]) -> str:
    """Draw the weights of the members, one heat map per binary problem."""
    weights = fitted.components_
    n_problems, n_members, n_features = weights.shape
    # Members that are stored once have a stride of zero, and the display says how many there are.
    stored = weights[:, :1] if weights.strides[1] == 0 else weights[:, :_MOST_MEMBERS]
    n_shown = n_members if weights.strides[1] == 0 else stored.shape[1]
    largest = np.argsort(-np.abs(stored).max(axis=(0, 1)), kind="stable")
    columns = np.sort(largest[:_MOST_FEATURES_DRAWN])
    shown_names = [names[j] for j in columns]
    left_out = []
    if len(columns) < n_features:
        left_out.append(f"the {len(columns)} of {n_features} features with the largest weights")
    if n_shown < n_members:
        left_out.append(f"the first {n_shown} of {n_members} members")
    html = ""
    titles = drawing.problem_names(fitted.classes_, fitted.multi_class_)
    for problem, title in enumerate(titles[:_MOST_PROBLEMS_DRAWN]):
        rows = np.broadcast_to(stored[problem][:, columns], (n_shown, len(columns)))
        display = ComponentsDisplay(rows, shown_names, title=title)
        caption = f"Weights of the members, {title}: {', '.join(left_out) or 'all features'}."
        if n_problems > _MOST_PROBLEMS_DRAWN and problem == _MOST_PROBLEMS_DRAWN - 1:
            caption += f" {n_problems - _MOST_PROBLEMS_DRAWN} problems are not drawn."
        n_rows = 1 if display.members_are_equal else n_shown
        letters = max(len(drawing.cut(name)) for name in shown_names)
        size = np.clip(0.25 * len(columns) + 2, 5, 12), np.clip(0.22 * n_rows, 0.6, 7) + 0.4 + 0.075 * letters
        html += _wide_figure(_draw(f"components{problem}", size, display.plot), caption)
    return html


def _quality(scores: dict[str, Any]) -> str:
    shown, n_classes = scores["classes"][:_MOST_CLASSES], len(scores["classes"])
    more = f", the first {_MOST_CLASSES} of {n_classes} classes" if n_classes > _MOST_CLASSES else ""
    metrics = [
        [found["class"], found["rows"], *(_share(found[key]) for key in ("precision", "recall", "f1"))]
        for found in shown
    ]
    html = _table(["class", "rows", "precision", "recall", "F1"], metrics, f"By class{more}.")
    header = ["true class", *(f"as {found['class']}" for found in shown)]
    confusion = scores["confusion_matrix"][: len(shown), : len(shown)].toarray()
    counts = [[found["class"], *row] for found, row in zip(shown, confusion, strict=True)]
    caption = f"Confusion matrix{more}: rows are true classes, columns predictions."
    return html + _table(header, counts, caption)


def _certificates(radii: Any, y: Any, predicted: Any) -> str:
    plain, balanced = (
        CertifiedAccuracyDisplay.from_predictions(
            radii, y, predicted, balanced=is_balanced, name=name, plot=False
        )
        for is_balanced, name in ((False, "all rows alike"), (True, "balanced: all classes alike"))
    )

    def plot(ax: Any) -> None:
        plain.plot(ax=ax)
        balanced.plot(ax=ax)
        ax.set_ylabel("certified accuracy")

    pairs = zip(plain.certified, balanced.certified, strict=True)
    rows = [[r, *map(_share, shares)] for r, shares in enumerate(pairs)]
    header = ["broken features", "certified accuracy", "balanced"]
    listing = _table(header, rows, "Certified accuracy; balanced: the mean over the classes.")
    caption = "Predictions that are right and stay right whatever values so many features take."
    svg = _draw("certified", _SIZE, plot)
    return f'<div class="gallery">{_figure(svg, caption)}<div>{listing}</div></div>'


def _training(summary: ModelSummary, fitted: Any) -> str:
    rows = [
        [
            problem.name,
            problem.n_iter,
            f"{problem.objective:.6g}",
            "no bound" if np.isnan(problem.gap) else f"{problem.gap:.1e}",
            "yes" if problem.converged else "NO",
        ]
        for problem in summary.problems[:_MOST_PROBLEMS]
    ]
    more = len(summary.problems) - _MOST_PROBLEMS
    ended = "How each binary problem ended" + (f"; {more} more are left out." if more > 0 else ".")
    header = ["problem", "iterations", "objective", "duality gap", "converged"]
    if not hasattr(fitted, "history_"):
        return _table(header, rows, ended)
    names = drawing.history_names(fitted)
    n_drawn = min(len(names), _MOST_CURVES)
    display = ConvergenceDisplay(fitted.history_[:n_drawn], names[:n_drawn], tol=fitted.tol)
    has_gaps = bool(np.isfinite(fitted.dual_gap_).any())
    svg = _draw("convergence", (5.2, 4.8) if has_gaps else _SIZE, display.plot)
    caption = f"Objective{' and relative duality gap' if has_gaps else ''} at every iteration"
    caption += f"; {len(names) - n_drawn} problems are not drawn." if n_drawn < len(names) else "."
    return _table(header, rows, ended) + _figure(svg, caption)


def _parameters(summary: ModelSummary) -> str:
    values = {name: repr(value) for name, value in summary.parameters.items()}
    rows = [[name, value if len(value) <= 200 else f"{value[:200]}..."] for name, value in values.items()]
    listing = _table(["parameter", "value"], rows, f"Parameters of {summary.kind}.")
    return f'<div class="parameters">{listing}</div>'


def _text(value: object) -> str:
    return escape(printable(value, lines=True), quote=True)


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"


def _paragraph(value: str, css: str = "") -> str:
    return f'<p class="{css}">{_text(value)}</p>' if css else f"<p>{_text(value)}</p>"


def _figure(svg: str | None, caption: str) -> str:
    plot = (
        f'<div class="plot" role="img" aria-label="{_text(caption)}">{svg}</div>'
        if svg
        else '<div class="plot absent">no plot: matplotlib is not installed</div>'
    )
    return f"<figure>{plot}<figcaption>{_text(caption)}</figcaption></figure>"


def _wide_figure(svg: str | None, caption: str) -> str:
    """Return a figure that scrolls on a small screen, and is not enlarged much on a large one."""
    width = re.search(r'viewBox="0 0 ([\d.]+)', svg or "")
    pixels = 0.0 if width is None else 1.15 * float(width[1])
    return f'<div class="wide" style="--natural: {pixels:.0f}px">{_figure(svg, caption)}</div>'


def _table(header: Sequence[str], rows: Iterable[Iterable[object]], caption: str) -> str:
    """Return a table in a box that scrolls sideways."""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{_text(first)}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<p class="caption">{_text(caption)}</p><div class="scroll" tabindex="0">'
        f'<table aria-label="{_text(caption)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _draw(name: str, size: tuple[float, float], plot: Callable[[Any], object]) -> str | None:
    """Return what ``plot`` draws on an axes, as an SVG element; None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    import matplotlib as mpl  # noqa: PLC0415 -- optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The salt makes ids reproducible.
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 10,
    }
    with mpl.rc_context(settings):
        figure: Any = Figure(figsize=size, layout="constrained")
        plot(figure.subplots())
        stream = StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
        figure.clear()
    return inline_svg(stream.getvalue(), name)


def inline_svg(svg: str, name: str) -> str:
    """Return an SVG file as an element of a page: no prolog, metadata or namespaces, and own ids."""
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    opening, rest = body.split(">", 1)
    # Without a size of its own it takes that of its box.
    return re.sub(r'\s+(width|height)="[^"]*"', "", opening) + ">" + rest


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="exclusivity {version}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1><main>{head}{body}<p class="note">exclusivity {version}</p></main>
</body>
</html>
"""
_STYLE = """
:root { --ink: #1d1d1f; --soft: #5f6368; --line: #dcdfe3; --ground: #ffffff; --tint: #f5f6f8;
  --bad: #a01b13; --blue: #0072b2; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ea; --soft: #a3a8b0; --line: #3a3f46; --ground: #16181c; --tint: #22262c;
    --bad: #ff9d94; --blue: #4aa8e0; }
  .plot svg { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--ink); background: var(--ground);
  overflow-wrap: anywhere; font: 16px/1.55 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem; break-after: avoid; }
p, li { max-width: 46rem; }
.scroll { overflow-x: auto; margin: .2rem 0 .8rem; }
table { border-collapse: collapse; font-size: .82rem; }
th, td { padding: .25rem .3rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody th, thead th:first-child { text-align: left; font-weight: 600; position: sticky; left: 0;
  background: var(--ground); }
.wrapped :is(td, th):last-child { white-space: normal; text-align: left; min-width: 14rem; }
.parameters td { white-space: normal; text-align: left; min-width: 12rem;
  font-family: ui-monospace, monospace; }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
figure { margin: .6rem 0; max-width: 44rem; break-inside: avoid; }
:is(.wide, .gallery) figure { max-width: none; }
.plot svg { width: 100%; height: auto; display: block; }
.wide .plot { overflow-x: auto; }
.wide .plot svg { min-width: var(--natural); max-width: calc(1.5 * var(--natural)); }
.plot.absent { background: var(--tint); color: var(--soft); padding: 2rem 1rem; text-align: center; }
.callout { background: var(--tint); border-left: .4rem solid var(--blue); padding: .6rem .9rem;
  max-width: 50rem; }
.bad { color: var(--bad); font-weight: 600; }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.counts li { background: var(--tint); border-radius: .5rem; padding: .4rem .8rem; }
.counts b { font-size: 1.3rem; margin-right: .3rem; }
.note, .caption, figcaption { color: var(--soft); font-size: .86rem; }
.caption { margin: 1rem 0 0; break-after: avoid; }
@media print {
  @page { size: A4; margin: 14mm; }
  body { font-size: 10.5pt; padding: 0; max-width: none; }
  .scroll { overflow: visible; }
  table { font-size: 6.6pt; } th, td { padding: 1pt 2.5pt; }
  tbody th, thead th:first-child { position: static; }
  .gallery { grid-template-columns: 1fr 1fr; }
}
"""
