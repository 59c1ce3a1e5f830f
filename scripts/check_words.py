"""Refuse words that have a plainer textbook term: ``python scripts/check_words.py``, a part of ``make lint``.

Reads README, the documentation, and the docstrings, messages and comments of the package (what ``--help``
prints is among them), C included. A line that needs the word all the same is quoted in ``ALLOWED``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

TERMS = {
    r"gaps? (?:in|of) (?:a |the )?(?:tables?|columns?|cells?)|dates(?:,| and) gaps": "missing value",
    r"\bwalk(?:s|ed|ing)?\b": "solver run, iteration",
    r"\btravel(?:s|led|ling)?\b": "be sent",
    r"\bbands? of rows\b|\brows in a band\b": "active set, working set",
    r"\bplanes of the kernel\b|\bblends?\b": "two-dimensional subspace, convex combination",
    r"\btravellers?\b": "solver run",
    r"\bcompany\b": "batch",
    r"\bleash\b|\bpilot\b": "trust region, warm start",
    r"\bpull(?:s|ed)?\b|\btilt(?:s|ed)?\b": "dual weights, shift",
    r"\bmeetings?\b|\bhears?\b|\bdoubts?\b": "barrier, poll, warning",
    r"\b(?:electorate|ballots?)\b": "voting ensemble, member preferences",
    r"\brows (?:in play|left out)\b": "active rows, held-out rows",
    r"\b(?:is|are|be|was|were|been) told\b|\btold (?:apart|of|from|by)\b": "reported, distinguished",
    r"\bdealt\b": "assigned",
    r"\bprice of (?:robustness|the vote)\b|\bmean price\b": "accuracy loss",
    r"\bhonest(?:ly)?\b": "valid",
    r"\bat (?:its|their) word\b": "assumed exact",
    r"\bas (?:ever|it comes|they come)\b": "as before, unprepared",
    r"\bstrangers?\b": "untrusted source, new user",
    r"\b(?:nobody|somebody|anybody)\b": "no one by name: say who or what",
    r"\bfor ever\b": "permanently",
    r"\bgo(?:es)? on from\b": "continue from",
    r"\bis no (?:error|number|bug)\b": "is not a ...",
    r"\bwhat the (?:loops|solver) says?\b": "the estimate",
}
"""Patterns of words, and what a textbook says."""

ALLOWED = {
    "random walk": "a term of probability theory",
    "pull request": "a term of git hosts",
}
"""Quotations in which a word may stand."""

CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each passage that a reader sees."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
        yield from enumerate(text.splitlines(), 1)
        return
    if path.suffix in (".c", ".h"):
        for found in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, re.sub(r"``?[^`]*``?", "", " ".join(node.value.split()))


def complaints(path: Path) -> Iterator[str]:
    """Yield one line for each word to replace."""
    for number, passage in prose(path):
        text = passage
        for quotation in ALLOWED:
            text = text.replace(quotation, "")
        for pattern, plain in TERMS.items():
            for found in re.finditer(pattern, text, re.IGNORECASE):
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r}: {plain}"


def main() -> int:
    """Print what is to be replaced; 1 if anything is."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("docs/research/*.md")]
    pages.remove(ROOT / "CHANGELOG.md")  # earlier releases stay as they were
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.[ch]"), *ROOT.glob("examples/*.py")]
    found = [line for path in sorted(pages) + sorted(sources) for line in complaints(path)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
