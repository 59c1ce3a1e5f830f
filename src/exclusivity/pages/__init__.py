"""What our pages are made of: HTML that stands alone, one look, plots as part of the page."""

from exclusivity.pages.markup import (
    counts,
    duration,
    figure,
    gallery,
    page,
    paragraph,
    section,
    table,
    text,
)
from exclusivity.pages.svg import can_plot, drawn, inline_svg

__all__ = [
    "can_plot",
    "counts",
    "drawn",
    "duration",
    "figure",
    "gallery",
    "inline_svg",
    "page",
    "paragraph",
    "section",
    "table",
    "text",
]
