"""model_report: a fitted model as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from io import StringIO
from string import Template
from typing import Any

import numpy as np

from exclusivity import __version__
from exclusivity._text import printable
from exclusivity._typing import Matrix
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.inspection import drawing
from exclusivity.inspection.additive import AdditiveDisplay, is_additive
from exclusivity.inspection.displays import (
    CertifiedAccuracyDisplay,
    ComponentsDisplay,
    ConvergenceDisplay,
    PathDisplay,
)
from exclusivity.inspection.summary import by_batches, caution, scores_of, summarise
from exclusivity.robustness import certify

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
    if scores is not None and summary["parameters"].get("voting") != "soft":
        radii = by_batches(model, X, lambda rows: certify(model, rows))
        sections.append(("certificates", "When features break", _certificates(radii, y, predicted)))
    if summary["kind"] == "ERMClassifierCV":
        figure = _figure(
            "path", _SIZE, partial(PathDisplay.from_estimator, model), "Scores on held-out rows."
        )
        sections.append(("path", "The choice of C", figure))
    sections.append(("training", "The fit", _training(summary, fitted)))
    values = ((name, repr(value)) for name, value in summary["parameters"].items())
    rows = [(name, value if len(value) <= 200 else f"{value[:200]}...") for name, value in values]
    listing = _table(["parameter", "value"], rows, f"Parameters of {summary['kind']}.")
    sections.append(("parameters", "Parameters", f'<div class="parameters">{listing}</div>'))
    body = "".join(
        f'<section id="{anchor}"><h2>{heading}</h2>{html}</section>'
        for anchor, heading, html in sections
        if html
    )
    page = Template(files("exclusivity.inspection").joinpath("report.html").read_text("utf-8"))
    content = _head(summary, scores) + body
    return page.substitute(version=_text(__version__), title=_text(title), content=content)


def _head(summary: dict[str, Any], scores: dict[str, Any] | None) -> str:
    what = summary["kind"]
    if summary.get("chosen_C") is not None:
        what += f" that chose C = {summary['chosen_C']:.4g}"
    if summary.get("steps"):
        what += f" after {', '.join(summary['steps'])}"
    facts: list[tuple[object, str]] = [(summary["features"], "columns")]
    if "members" in summary:
        facts = [(summary["members"], "members"), (summary["features"], "features")]
    facts.append((len(summary["classes"]), "classes"))
    warning = ""
    if scores is not None:
        constant, warning = scores["constant"], caution(scores)
        always = f"for always {constant['class']}, {constant['balanced_accuracy']:.1%} balanced"
        facts = [
            (f"{scores['accuracy']:.1%}", f"accuracy on {scores['rows']} rows"),
            (f"{scores['balanced_accuracy']:.1%}", "balanced accuracy"),
            (f"{constant['accuracy']:.1%}", always),
            *facts,
        ]
    if warning:
        warning = f"In these rows {warning} Fit with class_weight='balanced', or choose another C."
    items = "".join(f"<li><b>{_text(number)}</b>{_text(word)}</li>" for number, word in facts)
    counts = f'{_paragraph(what)}<ul class="counts">{items}</ul>'
    return counts + (_paragraph(warning, "bad") if warning else "") + _convergence_verdict(summary)


def _convergence_verdict(summary: dict[str, Any]) -> str:
    failed = [problem["name"] for problem in summary["problems"] if not problem["converged"]]
    if failed:
        names = ", ".join(failed[:5])
        return _paragraph(f"Not converged: {names}. Raise max_iter, or scale the features.", "bad")
    gaps = [problem["dual_gap"] for problem in summary["problems"]]
    if np.all(np.isnan(gaps)):
        return _paragraph("Converged. Above exclusivity 1 there is no bound on the distance to the optimum.")
    proof = f"Converged: proven to be within {np.nanmax(gaps):.1e} (relative) of the optimum, and asked for "
    return _paragraph(f"{proof}{summary['parameters']['tol']:g}.")


def _columns(model: Any, X: object) -> str:
    """Draw the contributions of the columns of a table, one plot per binary problem."""
    is_robust = isinstance(model, RobustAdditiveClassifier)
    if not (is_robust or is_additive(model)):
        return ""
    estimator = model if is_robust else model[0]
    n_problems = len(model.points_ if is_robust else model[-1].components_)
    html = ""
    for problem in range(min(n_problems, _MOST_PROBLEMS_DRAWN)):
        shown = AdditiveDisplay.from_estimator(model, X, problem=problem, plot=False)
        caption = f"What each column adds to the score, {shown.title}; a cross is a missing value."
        caption += " The band is what a broken cell can add." if is_robust else ""
        caption += " Grey: the rows of this report." if X is not None else ""
        if len(estimator.columns_) > len(shown.panels):
            caption += " Columns that move the score less are left out."
        html += _figure(f"additive{problem}", shown.size, shown.plot, caption, wide=True)
    return html


def _members(summary: dict[str, Any], model: Any, feature_names: object) -> str:
    if "by_member" not in summary:
        return ""
    fitted = drawing.last_step(model, "components_")
    names = drawing.feature_names(model, feature_names)
    members = summary["by_member"]
    notes = f'<p class="callout"><b>{_text(summary["note"])}.</b></p>' if summary["note"] else ""
    notes += _paragraph(_WHY_EQUAL) if members[0]["member"] == "all" else ""
    rows = [
        [
            member["member"],
            member["features_used"],
            ", ".join(f"{name} ({weight:+.3g})" for name, weight in member["largest_weights"].items())
            or "abstains",
        ]
        for member in members[:_MOST_MEMBERS]
    ]
    caption = "Features of the members, the largest weights first"
    if len(members) > _MOST_MEMBERS:
        caption += f"; the first {_MOST_MEMBERS} of {summary['members']} members"
    caption += ". Weights are those of scaled features." if summary["steps"] else "."
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
    left_out = []
    if len(columns) < n_features:
        left_out.append(f"the {len(columns)} of {n_features} features with the largest weights")
    if n_shown < n_members:
        left_out.append(f"the first {n_shown} of {n_members} members")
    html = ""
    titles = drawing.problem_names(fitted.classes_, fitted.multi_class_)
    for problem, title in enumerate(titles[:_MOST_PROBLEMS_DRAWN]):
        rows = np.broadcast_to(stored[problem][:, columns], (n_shown, len(columns)))
        display = ComponentsDisplay(rows, [names[j] for j in columns], title=title)
        caption = f"Weights of the members, {title}: {', '.join(left_out) or 'all features'}."
        if n_problems > _MOST_PROBLEMS_DRAWN and problem == _MOST_PROBLEMS_DRAWN - 1:
            caption += f" {n_problems - _MOST_PROBLEMS_DRAWN} problems are not drawn."
        html += _figure(f"components{problem}", display.size, display.plot, caption, wide=True)
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
    of = partial(CertifiedAccuracyDisplay.from_predictions, radii, y, predicted, plot=False)
    plain = of(name="all rows alike")
    balanced = of(balanced=True, name="balanced: all classes alike")

    def plot(ax: Any) -> None:
        plain.plot(ax)
        balanced.plot(ax)
        ax.set_ylabel("certified accuracy")

    pairs = zip(plain.certified, balanced.certified, strict=True)
    rows = [[r, *map(_share, shares)] for r, shares in enumerate(pairs)]
    header = ["broken features", "certified accuracy", "balanced"]
    listing = _table(header, rows, "Certified accuracy; balanced: the mean over the classes.")
    caption = "Predictions that are right and stay right whatever values so many features take."
    return f'<div class="gallery">{_figure("certified", _SIZE, plot, caption)}<div>{listing}</div></div>'


def _training(summary: dict[str, Any], fitted: Any) -> str:
    rows = [
        [
            problem["name"],
            problem["iterations"],
            f"{problem['objective']:.6g}",
            "no bound" if np.isnan(problem["dual_gap"]) else f"{problem['dual_gap']:.1e}",
            "yes" if problem["converged"] else "NO",
        ]
        for problem in summary["problems"][:_MOST_PROBLEMS]
    ]
    more = len(summary["problems"]) - _MOST_PROBLEMS
    ended = "How each binary problem ended" + (f"; {more} more are left out." if more > 0 else ".")
    header = ["problem", "iterations", "objective", "duality gap", "converged"]
    if not hasattr(fitted, "history_"):
        return _table(header, rows, ended)
    names = drawing.history_names(fitted)
    n_drawn = min(len(names), _MOST_CURVES)
    shown = ConvergenceDisplay(fitted.history_[:n_drawn], names[:n_drawn], tol=fitted.tol)
    caption = "Objective and, where it is known, relative duality gap at every iteration"
    caption += f"; {len(names) - n_drawn} problems are not drawn." if n_drawn < len(names) else "."
    return _table(header, rows, ended) + _figure("convergence", shown.size, shown.plot, caption)


def _text(value: object) -> str:
    return escape(printable(value, lines=True), quote=True)


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"


def _paragraph(value: str, css: str = "") -> str:
    return f'<p class="{css}">{_text(value)}</p>' if css else f"<p>{_text(value)}</p>"


def _figure(
    name: str, size: tuple[float, float], plot: Callable[..., object], caption: str, *, wide: bool = False
) -> str:
    """Return a plot with its caption; a wide one scrolls on a small screen, and is not enlarged much."""
    shown = '<div class="plot absent">no plot: matplotlib is not installed</div>'
    if find_spec("matplotlib") is not None:
        svg = _draw(name, size, plot)
        shown = f'<div class="plot" role="img" aria-label="{_text(caption)}">{svg}</div>'
    html = f"<figure>{shown}<figcaption>{_text(caption)}</figcaption></figure>"
    return f'<div class="wide" style="--natural: {83 * size[0]:.0f}px">{html}</div>' if wide else html


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


def _draw(name: str, size: tuple[float, float], plot: Callable[..., object]) -> str:
    """Return what ``plot`` draws on an axes, as an SVG element."""
    import matplotlib as mpl  # noqa: PLC0415 -- optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The salt makes ids reproducible.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}
    with mpl.rc_context(settings):
        figure: Any = Figure(figsize=size, layout="constrained")
        plot(ax=figure.subplots())
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
