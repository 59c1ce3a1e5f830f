"""What the snippets of a documentation page define, so that its examples can be tested further."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def names_of(page, number=0):
    """The names that one snippet of docs/``page``, by default the first, defines."""
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    namespace = {}
    exec(compile(snippets[number], page, "exec"), namespace)  # noqa: S102 -- our own pages
    return namespace
