"""The order of the examples in the gallery: what users have first, members of ensembles last."""

from __future__ import annotations

from pathlib import Path

FIRST = (
    "vendors",
    "good_words",
    "credit_rules",
    "gene_expression",
    "text_classes",
    "quickstart",
    "choosing_c",
    "broken_sensors",
    "competing_members",
)


class FromUsesToMembers:
    """Sort key of sphinx-gallery: the examples above in their order, then all others by name."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of a file."""
        name = Path(filename).stem
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)
