"""Small pieces of HTML; all text goes through escaping here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def text(value: object) -> str:
    """Plain text."""
    return escape(str(value), quote=True)


def paragraph(value: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{text(value)}</p>"


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


def two_lines(first: str, second: str) -> str:
    """A cell with our number above and the paper's below."""
    return f"{text(first)}<small>{text(second)}</small>"
