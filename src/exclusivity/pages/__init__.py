"""What our pages are made of: HTML that stands alone, one look, plots as part of the page."""

from exclusivity.pages.markup import (
    counts,
    duration,
    figure,
    formula,
    gallery,
    page,
    paragraph,
    section,
    table,
    text,
    two_lines,
)
from exclusivity.pages.svg import can_plot, drawn, inline_svg

__all__ = [
    "can_plot",
    "counts",
    "drawn",
    "duration",
    "figure",
    "formula",
    "gallery",
    "inline_svg",
    "page",
    "paragraph",
    "section",
    "table",
    "text",
    "two_lines",
]
