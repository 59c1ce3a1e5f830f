"""Plots as SVG text that can stand in a page; none without matplotlib, which is optional."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from typing import Any

# Ink, paper, greys and the first colour of a plot take the colours of its page, which knows light and dark.
_COLOURS = {
    "#000000": "var(--ink)",
    "#222222": "var(--ink)",
    "#555555": "var(--soft)",
    "#8c8c8c": "var(--soft)",
    "#999999": "var(--soft)",
    "#e4e4e4": "var(--line)",
    "#cccccc": "var(--line)",
    "#ffffff": "var(--ground)",
    "#0072b2": "var(--blue)",
}


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def drawn(name: str, size: tuple[float, float], draw: Callable[[Any], None], n_rows: int = 1) -> str | None:
    """What ``draw`` draws, as an element of a page; None without matplotlib.

    Parameters
    ----------
    name : str
        Of the plot within its page.
    size : tuple of float
        Width and height in inches.
    draw : callable
        Takes the axes, an array of them for more than one row.
    n_rows : int, default=1
        Axes below each other.
    """
    if not can_plot():
        return None
    import matplotlib as mpl  # noqa: PLC0415 -- optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The salt makes ids differ between the plots of one page and agree between two runs.
    everywhere: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 10,
    }
    with mpl.rc_context(everywhere):
        figure: Any = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(n_rows, 1, sharex=True))
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return inline_svg(text.getvalue(), name)


def inline_svg(text: str, name: str) -> str:
    """An SVG file as an element of a page: no prolog, metadata or name spaces, own ids, the page's ink."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    body = re.sub(
        r"\b(fill|stroke): (#\w{6})",
        lambda found: f"{found[1]}: {_COLOURS.get(found[2], found[2])}",
        body,
    )
    opening, rest = body.split(">", 1)
    # Without a size of its own it takes that of its box.
    return re.sub(r'\s+(width|height)="[^"]*"', "", opening) + ">" + rest
