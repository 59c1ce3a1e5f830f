"""Real text that every machine has: functions and classes of Python's standard library, by their module.

A document is the source of one function or method, or the head of one class (up to its first method), so that
no text belongs to two documents. Its class is the top-level module it comes from. Another version of Python
has another library: times are comparable within a run, and the report says which Python it was.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from exclusivity.benchmark.generators import Floats

Analyzer = Literal["words", "chars"]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

FEWEST_DOCUMENTS = 100
SMALL_MODULES = ("asyncio", "email", "importlib", "logging", "urllib")
_ANALYZERS: dict[Analyzer, dict[str, Any]] = {
    "words": {"token_pattern": r"[^\W\d_]{2,}"},  # the words of names_like_this apart
    "chars": {"analyzer": "char", "ngram_range": (2, 4)},
}
# Some systems ship these apart from Python, or not at all; the files of encodings were written by a program.
_LEFT_OUT = {
    "distutils",
    "encodings",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "test",
    "tkinter",
    "turtledemo",
    "venv",
}
_TESTS = {"tests", "test"}
# A document is its first thousand characters: few are longer, and their n-grams would take most of the time.
_CHARACTERS = 1000


def library_rows(
    analyzer: Analyzer, *, classes: bool, modules: tuple[str, ...] | None = None
) -> tuple[Any, Floats]:
    """Rows of tf-idf weights: words, or character 2- to 4-grams.

    Parameters
    ----------
    analyzer : {"words", "chars"}
    classes : bool
        Whether y numbers all modules; otherwise it is +1 for the module with most documents, -1 for the rest.
    modules : tuple of str, optional
        Only these; None means all with at least 100 documents.

    Examples
    --------
    >>> X, y = library_rows("words", classes=False, modules=("json", "csv"))
    >>> X.format, X.dtype.name, X.indices.dtype.name, sorted(set(y.tolist()))
    ('csr', 'float64', 'int32', [-1.0, 1.0])
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 -- a second to import

    texts, names = documents(modules)
    X = TfidfVectorizer(**_ANALYZERS[analyzer]).fit_transform(texts)
    _, y = np.unique(names, return_inverse=True)
    if classes:
        return X, y.astype(float)
    return X, np.where(y == np.argmax(np.bincount(y)), 1.0, -1.0)


@cache
def documents(modules: tuple[str, ...] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts and the modules they come from, in the order of paths and lines."""
    pairs = [
        (text, name)
        for name, path in library_files(modules or sys.stdlib_module_names)
        for text in documents_of(path.read_text(encoding="utf-8", errors="replace"))
    ]
    sizes = Counter(name for _, name in pairs)
    fewest = 1 if modules else FEWEST_DOCUMENTS
    kept = [(text, name) for text, name in pairs if sizes[name] >= fewest]
    if len({name for _, name in kept}) < 2:
        raise ValueError("the source of Python's standard library is not on this machine.")
    texts, names = zip(*kept, strict=True)
    return texts, names


def library_files(modules: Collection[str]) -> Iterator[tuple[str, Path]]:
    """The source files of these top-level modules with their names, without tests."""
    root = Path(sysconfig.get_path("stdlib"))
    for name in sorted(set(modules) - _LEFT_OUT):
        alone = root / f"{name}.py"
        if alone.is_file():
            yield name, alone
        for path in sorted((root / name).rglob("*.py")):
            if not _TESTS.intersection(path.relative_to(root).parts):
                yield name, path


def documents_of(source: str) -> Iterator[str]:
    r"""The functions, methods and heads of classes of one file, in its order; none where it cannot be parsed.

    Examples
    --------
    >>> list(documents_of("class A:\n    x = 1\n    def f(self):\n        return 2\ny = 3\n"))
    ['class A:\n    x = 1', '    def f(self):\n        return 2']
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.splitlines()
    for node in _definitions(tree):
        yield "\n".join(lines[node.lineno - 1 : _last_line(node)])[:_CHARACTERS]


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """Functions and classes in the order of lines; what a function defines belongs to the function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions(child)


def _last_line(node: Definition) -> int:
    """A function's own last line; a class ends before the first definition in it."""
    if isinstance(node, ast.ClassDef):
        for each in _definitions(node):
            first = min(line.lineno for line in (each, *each.decorator_list))
            return max(first - 1, node.lineno)
    return node.end_lineno or node.lineno
