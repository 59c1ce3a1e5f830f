"""Docstrings are written to be read in ``help()``: this makes reStructuredText of their formulas.

``|w|`` would be a substitution and ``coef_`` a link, an indented formula a quotation. Escapes are added here,
and indented formulas become LaTeX, on the way to the site, so that the source can stay plain.
"""

from __future__ import annotations

import re
from typing import Any

_QUOTED = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_SPECIAL = re.compile(r"\||(?<=\w)_(?!\w)")
# "name : type" of a Parameters section; numpydoc knows what to do with the name.
_ENTRY = re.compile(r"(?m)^( *[\w*, ]+ : )")
_FORMULA_INDENT = 4

_LATEX = [
    (r"\|(\w+)\|", r"\\lVert \1 \\rVert"),
    (r"\|", r"\\mid"),
    (r"(?<![\w/])(\w+|\([^()]+\))/(\w+)", r"\\tfrac{\1}{\2}"),
    (r"_(\w{2,})", r"_{\1}"),
    (r"\b(alpha|beta|gamma|kappa|phi|sum|max)(?![a-z])", r"\\\1"),
    (r"\b(mean|regulariser)\(", r"\\operatorname{\1}("),
    (r" \. ", r" \\cdot "),
    (r",   ", r", \\quad "),
]
"""What the formulas of docstrings are made of, and the same in LaTeX."""


def to_latex(formula: str) -> str:
    r"""Return a formula of a docstring as LaTeX, line below line.

    >>> print(to_latex("gamma/2 |W_j|_1^2 + C sum_i phi(x_i . w)"))
    \tfrac{\gamma}{2} \lVert W_j \rVert_1^2 + C \sum_i \phi(x_i \cdot w)
    """
    for pattern, latex in _LATEX:
        formula = re.sub(pattern, latex, formula)
    lines = [line.strip() for line in formula.splitlines()]
    return (
        lines[0] if len(lines) == 1 else r" \\ ".join(lines).join([r"\begin{gathered} ", r" \end{gathered}"])
    )


def escape(text: str) -> str:
    r"""Escape bars and trailing underscores outside of backticks.

    >>> print(escape("|w_j| of ``coef_`` and coef_"))
    \|w_j\| of ``coef_`` and coef\_
    """
    parts = _QUOTED.split(text)
    for i in range(0, len(parts), 2):
        pieces = _ENTRY.split(parts[i])
        pieces[::2] = [_SPECIAL.sub(r"\\\g<0>", piece) for piece in pieces[::2]]
        parts[i] = "".join(pieces)
    return "".join(parts)


def to_rst(lines: list[str]) -> list[str]:
    r"""Return the lines of a docstring as reStructuredText.

    >>> to_rst(["Minimises", "", "    |w|^2", "", "over w. See coef_."])
    ['Minimises', '', '.. math::', '', '    \\lVert w \\rVert^2', '', 'over w. See coef\\_.']
    """
    result: list[str] = []
    before = 0  # indent of the text above
    literal = False
    for paragraph in "\n".join(lines).split("\n\n"):
        filled = [line for line in paragraph.split("\n") if line]
        indent = _indent(filled[0]) if filled else before
        if not literal and result and indent >= before + _FORMULA_INDENT:
            result += [" " * before + ".. math::", ""]
            literal = True
        elif indent <= before:
            literal = False
        result += [" " * indent + to_latex(paragraph)] if literal else _escape_text(paragraph)
        result.append("")
        if filled and not literal:
            before = _indent(filled[-1])
    return result[:-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _escape_text(paragraph: str) -> list[str]:
    """Escape what stands above the first ``>>>`` of a paragraph."""
    text, *examples = re.split(r"(?m)^(?= *>>> )", paragraph, maxsplit=1)
    return "".join([escape(text), *examples]).split("\n")


def process(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite a docstring; sphinx calls this with each."""
    lines[:] = to_rst(lines)


def setup(app: Any) -> dict[str, bool]:
    """Run before numpydoc, which listens with priority 500."""
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}
