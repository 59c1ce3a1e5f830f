"""The order of the examples in the gallery."""

from __future__ import annotations

from pathlib import Path

FIRST = ("quickstart", "choosing_c", "competing_members", "broken_sensors")


class FromSimpleToLong:
    """Sort key of sphinx-gallery: the examples above in their order, then all others by name."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """The place of a file."""
        name = Path(filename).stem
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)
