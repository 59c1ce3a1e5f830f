"""Training rows for the benchmarks: generated, from data files, and real text that every machine has."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Rows = tuple[Any, Floats]

COSTS = (2.0, 0.2, 1 / 15)  # the last is the paper's C = 2 with 30 members
TEXT_COSTS = (0.1, 1.0, 10.0)
PAPER_SETS = ("sonar", "german", "australian", "heart", "ionosphere", "diabetes", "liver", "splice")


def overlapping_rows(n_rows: int, n_features: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return Gaussian rows of two classes that overlap: about one row in five on the wrong side.

    >>> X, y = overlapping_rows(1000, 5)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 5), [-1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    return X, np.where(X @ direction + 0.7 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)


def text_rows(n_rows: int, n_terms: int, terms_per_row: int, seed: int = 0) -> Rows:
    """Return rows of tf-idf weights of unit length over terms with Zipf-like frequencies.

    ``terms_per_row`` words are drawn for every row; repeated words count once, with a larger weight.

    >>> X, y = text_rows(40, 500, 20)
    >>> bool(np.allclose(X.multiply(X).sum(axis=1), 1.0)), X.indices.dtype.name
    (True, 'int32')
    """
    rng = np.random.default_rng(seed)
    # The frequency of a term falls as 1 / (rank + 10); this inverts its distribution function.
    spread = np.log((n_terms + 10.0) / 10.0)
    ranks = 10.0 * (np.exp(rng.random(n_rows * terms_per_row) * spread) - 1)
    terms = rng.permutation(n_terms)[np.minimum(ranks.astype(np.int64), n_terms - 1)]
    rows = np.repeat(np.arange(n_rows), terms_per_row)
    counts = sparse.csr_matrix((np.ones(len(terms)), (rows, terms)), shape=(n_rows, n_terms))
    counts.sum_duplicates()
    documents = np.bincount(counts.indices, minlength=n_terms)
    weights = (1 + np.log(counts.data)) * np.log(1 + n_rows / (1.0 + documents[counts.indices]))
    lengths = np.sqrt(np.add.reduceat(weights**2, counts.indptr[:-1]))
    weights /= np.repeat(lengths, np.diff(counts.indptr))
    structure = (counts.indices.astype(np.int32), counts.indptr.astype(np.int32))
    X = sparse.csr_matrix((weights, *structure), shape=(n_rows, n_terms))
    scores = X @ rng.standard_normal(n_terms)
    scores /= scores.std()
    return X, np.where(scores + 0.5 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)


def class_rows(n_rows: int, n_features: int, n_classes: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return Gaussian clouds around one centre per class, close enough to overlap.

    >>> X, y = class_rows(200, 6, 4)
    >>> X.shape, np.unique(y).tolist()
    ((200, 6), [0.0, 1.0, 2.0, 3.0])
    """
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((n_classes, n_features)) / np.sqrt(n_features)
    y = rng.integers(n_classes, size=n_rows)
    return centres[y] + rng.standard_normal((n_rows, n_features)), y.astype(float)


def data_rows(name: str, n_rows: int | None = None) -> Rows:
    """Return a data set of the paper, or so many random rows of it."""
    from reproduction.datasets import load_dataset  # noqa: PLC0415 -- the generators need no package

    bunch = load_dataset(name, download=False)
    rows = np.random.default_rng(0).permutation(len(bunch.target))[:n_rows] if n_rows else slice(None)
    return bunch.data[rows], bunch.target[rows]


# Real text: functions and classes of Python's standard library, by their module. Another version of Python
# has another library, so times are comparable within a run.
FEWEST_DOCUMENTS = 100
SMALL_MODULES = ("asyncio", "email", "importlib", "logging", "urllib")
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
# A document is its first thousand characters: few are longer, and their n-grams would take most of the time.
_CHARACTERS = 1000
_ANALYZERS: dict[str, dict[str, Any]] = {
    "words": {"token_pattern": r"[^\W\d_]{2,}"},  # names_like_this are several words
    "chars": {"analyzer": "char", "ngram_range": (2, 4)},
}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def library_rows(analyzer: str, *, classes: bool, modules: tuple[str, ...] | None = None) -> Rows:
    """Return tf-idf weights of words ("words") or of character 2- to 4-grams ("chars").

    With ``classes`` y numbers the modules; otherwise it is +1 for the module with most documents, -1 for the
    rest. ``modules`` restricts them; None takes all with at least 100 documents.

    >>> X, y = library_rows("words", classes=False, modules=("json", "csv"))
    >>> X.format, X.dtype.name, X.indices.dtype.name, sorted(set(y.tolist()))
    ('csr', 'float64', 'int32', [-1.0, 1.0])
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 -- a second to import

    texts, names = documents(modules)
    X = TfidfVectorizer(**_ANALYZERS[analyzer]).fit_transform(texts)
    _, y = np.unique(names, return_inverse=True)
    return X, y.astype(float) if classes else np.where(y == np.argmax(np.bincount(y)), 1.0, -1.0)


@cache
def documents(modules: tuple[str, ...] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return texts and the modules they come from, in the order of paths and lines."""
    pairs = [
        (text, name)
        for name, path in library_files(modules or sys.stdlib_module_names)
        for text in documents_of(path.read_text(encoding="utf-8", errors="replace"))
    ]
    sizes = Counter(name for _, name in pairs)
    kept = [(text, name) for text, name in pairs if modules or sizes[name] >= FEWEST_DOCUMENTS]
    if len({name for _, name in kept}) < 2:
        raise ValueError("the source of Python's standard library is not on this machine.")
    texts, names = zip(*kept, strict=True)
    return texts, names


def library_files(modules: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield the source files of these top-level modules with their names, without tests."""
    root = Path(sysconfig.get_path("stdlib"))
    for name in sorted(set(modules) - _LEFT_OUT):
        if (root / f"{name}.py").is_file():
            yield name, root / f"{name}.py"
        for path in sorted((root / name).rglob("*.py")):
            if not {"tests", "test"}.intersection(path.relative_to(root).parts):
                yield name, path


def documents_of(source: str) -> Iterator[str]:
    r"""Yield the functions, methods and heads of classes of one file; none where it cannot be parsed.

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
    """Yield functions and classes in the order of lines; what a function defines belongs to the function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions(child)


def _last_line(node: Definition) -> int:
    """Return a function's own last line; a class ends before the first definition in it."""
    if isinstance(node, ast.ClassDef):
        for each in _definitions(node):
            first = min(line.lineno for line in (each, *each.decorator_list))
            return max(first - 1, node.lineno)
    return node.end_lineno or node.lineno


@dataclass(frozen=True)
class Workload:
    """Training rows with a title; ``make`` gives X (dense or CSR) and y: -1 and +1, or a number per class."""

    title: str
    make: Callable[[], Rows]
    costs: tuple[float, ...] = COSTS


_LIBRARY = "the standard library's functions and classes"
WORKLOADS: dict[str, Workload] = {
    **{
        f"paper-{name}": Workload(f"150 rows of {name}", partial(data_rows, name, 150)) for name in PAPER_SETS
    },
    "ijcnn1": Workload("the paper's largest set, ijcnn1", partial(data_rows, "ijcnn1")),
    "dense-500k": Workload("500,000 x 50, dense, overlapping", partial(overlapping_rows, 500_000, 50)),
    "dense-2m": Workload("2,000,000 x 28, dense, overlapping", partial(overlapping_rows, 2_000_000, 28)),
    "dense-20k": Workload("20,000 x 200, dense, overlapping", partial(overlapping_rows, 20_000, 200)),
    "sparse-wide": Workload(
        "20,000 x 1,000,000, text-like, 400 words per row", partial(text_rows, 20_000, 1_000_000, 400)
    ),
    "sparse-long": Workload(
        "200,000 x 50,000, text-like, 75 words per row", partial(text_rows, 200_000, 50_000, 75)
    ),
    "classes-10": Workload("20,000 x 256, ten classes, one-vs-rest", partial(class_rows, 20_000, 256, 10)),
    **{
        f"text-{analyzer}{suffix}": Workload(
            f"{_LIBRARY}, {what}, {which} against the rest",
            partial(library_rows, analyzer, classes=bool(suffix)),
            TEXT_COSTS,
        )
        for suffix, which in (("", "its largest module"), ("-classes", "every module"))
        for analyzer, what in (("words", "words"), ("chars", "character 2- to 4-grams"))
    },
    "small-dense": Workload("20,000 x 20, dense, overlapping", partial(overlapping_rows, 20_000, 20)),
    "small-sparse": Workload("2,000 x 20,000, text-like, 75 words", partial(text_rows, 2_000, 20_000, 75)),
    "small-classes": Workload("2,000 x 32, five classes, one-vs-rest", partial(class_rows, 2_000, 32, 5)),
    "small-text": Workload(
        "five modules of the standard library, words, one-vs-rest",
        partial(library_rows, "words", classes=True, modules=SMALL_MODULES),
    ),
}
QUICK = ("paper-heart", "small-dense", "small-sparse", "small-classes", "small-text")


def find_workloads(wanted: Sequence[str] | None, *, quick: bool = False) -> list[str]:
    """Return the names that were asked for; "text" means all that begin with "text-".

    >>> find_workloads(["dense", "ijcnn1"])
    ['dense-500k', 'dense-2m', 'dense-20k', 'ijcnn1']
    """
    if wanted is None:
        return list(QUICK) if quick else [name for name in WORKLOADS if not name.startswith("small-")]
    found: dict[str, None] = {}
    for word in wanted:
        matches = [name for name in WORKLOADS if name == word] or [
            name for name in WORKLOADS if name.startswith(f"{word}-")
        ]
        if not matches:
            raise ValueError(f"there is no workload {word!r}; choose from {', '.join(WORKLOADS)}.")
        found |= dict.fromkeys(matches)
    return list(found)
