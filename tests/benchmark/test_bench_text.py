"""Documents of the standard library: complete, apart from each other, the same every time."""

import sys

import numpy as np
import pytest

from exclusivity.benchmark import library_text
from exclusivity.benchmark.library_text import documents, documents_of, library_files, library_rows

SOURCE = '''
"""A module."""
import os

@decorated
def first(x):
    def inner():
        return x
    return inner

class Second(Base):
    """Says what it is."""
    size = 3

    @property
    async def third(self):
        return 4

    class Fourth:
        pass

if os.name:
    def fifth(): return 5
'''


def test_documents_do_not_overlap():
    found = list(documents_of(SOURCE))
    assert [text.split("\n")[0].split("(")[0].split(":")[0].split()[-1] for text in found] == [
        "first",
        "Second",
        "third",
        "Fourth",
        "fifth",
    ]
    lines = [line for text in found for line in text.split("\n") if line.strip()]
    assert len(lines) == len(set(lines)), "no line twice"
    assert found[1] == 'class Second(Base):\n    """Says what it is."""\n    size = 3\n'
    assert "return inner" in found[0]


def test_what_cannot_be_parsed_has_no_documents():
    assert list(documents_of("print 'two'")) == []
    assert list(documents_of("\0")) == []


def test_files_are_those_of_the_library_without_tests():
    paths = [path for _, path in library_files({"json", "csv", "tkinter", "test"})]
    assert {path.name for path in paths} >= {"csv.py", "decoder.py", "encoder.py"}
    assert not any("tkinter" in path.parts or "test" in path.parts for path in paths)


def test_modules_are_classes():
    texts, names = documents(("csv", "json", "string"))
    assert list(dict.fromkeys(names)) == ["csv", "json", "string"]
    assert any("class Sniffer" in text for text in texts)
    X, y = library_rows("words", classes=True, modules=("csv", "json", "string"))
    assert X.shape[0] == len(texts)
    assert np.array_equal(np.unique(y), [0, 1, 2])
    _, one = library_rows("chars", classes=False, modules=("csv", "json", "string"))
    assert np.array_equal(one > 0, y == np.argmax(np.bincount(y.astype(int))))


def test_rows_are_the_same_every_time():
    first, _ = library_rows("chars", classes=True, modules=("csv", "json"))
    documents.cache_clear()
    again, _ = library_rows("chars", classes=True, modules=("csv", "json"))
    assert first.shape == again.shape
    assert abs(first - again).max() == 0


def test_a_machine_without_the_source_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(library_text.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(ValueError, match="not on this machine"):
        documents(("csv", "json", "heapq"))


def test_the_whole_library_has_more_than_twenty_classes():
    """By the number of definitions, without making documents of them: that takes seconds."""
    counted = dict.fromkeys(sys.stdlib_module_names, 0)
    for name, path in library_files(sys.stdlib_module_names):
        text = path.read_text(encoding="utf-8", errors="replace")
        counted[name] += sum(line.lstrip().startswith(("def ", "class ")) for line in text.splitlines())
    assert sum(number >= library_text.FEWEST_DOCUMENTS for number in counted.values()) > 20
