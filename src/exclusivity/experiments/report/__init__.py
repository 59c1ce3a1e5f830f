"""One self-contained HTML page with everything that a run has found."""

from exclusivity.experiments.report.page import render_page

__all__ = ["render_page"]
