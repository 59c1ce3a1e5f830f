"""Small pieces of HTML; all text goes through escaping here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from exclusivity import __version__
from exclusivity.pages.style import STYLE


def page(title: str, *body: str) -> str:
    """A whole page that loads nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="exclusivity {text(__version__)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{text(title)}</h1>{''.join(body)}\n</body>\n</html>\n"
    )


# Control characters, line and paragraph separators, changes of the direction of text, halves of characters.
_INVISIBLE = "\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"[{_INVISIBLE}]")
CONTROLS_IN_LINES = re.compile(f"(?![\\n\\t])[{_INVISIBLE}]")
"""The same but for ends of lines and tabs."""


def printable(value: object, *, lines: bool = False) -> str:
    r"""Return a text with its control characters written out, so that it changes nothing but its own line.

    Parameters
    ----------
    value : object
    lines : bool, default=False
        Whether ends of lines and tabs stay.

    Examples
    --------
    >>> print(printable("a\x1b[2J\nb"))
    a\x1b[2J\nb
    """
    controls = CONTROLS_IN_LINES if lines else _CONTROLS
    return controls.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def text(value: object) -> str:
    """Plain text."""
    return escape(printable(value, lines=True), quote=True)


def paragraph(value: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{text(value)}</p>"


def counts(facts: Iterable[tuple[object, str]]) -> str:
    """Numbers that a reader looks for first, each with its word."""
    items = "".join(f"<li><b>{text(number)}</b>{text(word)}</li>" for number, word in facts)
    return f'<ul class="counts">{items}</ul>'


def duration(seconds: float) -> str:
    """A time as one would say it.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.0279, 0.9999, 65.43, 168.5657, 7500)]
    ['27.9 ms', '1 s', '65.4 s', '2 min 49 s', '2 h 5 min']
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def section(anchor: str, title: str, *body: str) -> str:
    """A section with its heading."""
    return f'<section id="{text(anchor)}"><h2>{text(title)}</h2>{"".join(body)}</section>'


def figure(svg: str | None, caption: str) -> str:
    """A plot with its caption; a note where there is no plot."""
    drawing = (
        f'<div class="plot" role="img" aria-label="{text(caption)}">{svg}</div>'
        if svg
        else '<div class="plot absent">no plot: matplotlib is not installed</div>'
    )
    return f"<figure>{drawing}<figcaption>{text(caption)}</figcaption></figure>"


def gallery(figures: Iterable[str]) -> str:
    """Figures side by side where there is room."""
    return f'<div class="gallery">{"".join(figures)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table in a box that scrolls sideways; cells are HTML, header and caption are text.

    The caption stands outside of the box: it should wrap, not scroll.
    """
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<p class="caption">{text(caption)}</p><div class="scroll" tabindex="0">'
        f'<table aria-label="{text(caption)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
