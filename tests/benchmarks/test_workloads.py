"""Rows are what their names say, and the same every time."""

import sys

import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.workloads import (
    WORKLOADS,
    documents,
    documents_of,
    find_workloads,
    library_files,
    library_rows,
    overlapping_rows,
    text_rows,
)

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


def test_generated_rows_are_what_they_say():
    X, y = text_rows(2000, 5000, 30)
    frequency = np.sort(np.diff(X.tocsc().indptr))[::-1]
    assert frequency[0] > 10 * frequency[200] > 50 * frequency[2000], (
        "a few terms are everywhere, most are rare"
    )
    assert 25 < X.nnz / 2000 <= 30
    assert 0.4 < np.mean(y > 0) < 0.8
    X, y = overlapping_rows(20_000, 10)
    wrong = np.mean(np.sign(X @ np.linalg.lstsq(X, y, rcond=None)[0]) != y)
    assert 0.1 < wrong < 0.3


def test_names_and_beginnings_of_workloads():
    assert len(find_workloads(["paper"])) == 8
    assert find_workloads(["dense-2m", "dense-2m"]) == ["dense-2m"]
    assert len(find_workloads(["text"])) == 4
    assert not any(name.startswith("small-") for name in find_workloads(None))
    assert set(find_workloads(None, quick=True)) <= set(WORKLOADS)
    with pytest.raises(ValueError, match="there is no workload 'dens'; choose from paper-sonar"):
        find_workloads(["dens"])


def test_paper_sets_have_150_rows_of_both_classes():
    X, y = WORKLOADS["paper-heart"].make()
    assert X.shape == (150, 13)
    assert set(y) == {-1.0, 1.0}


def test_documents_do_not_overlap():
    found = list(documents_of(SOURCE))
    names = [text.split("\n")[0].split("(")[0].split(":")[0].split()[-1] for text in found]
    assert names == ["first", "Second", "third", "Fourth", "fifth"]
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


def test_modules_are_classes_and_rows_the_same_every_time():
    modules = ("csv", "json", "string")
    texts, names = documents(modules)
    assert list(dict.fromkeys(names)) == list(modules)
    assert any("class Sniffer" in text for text in texts)
    X, y = library_rows("words", classes=True, modules=modules)
    assert X.shape[0] == len(texts)
    assert np.array_equal(np.unique(y), [0, 1, 2])
    documents.cache_clear()
    again, one = library_rows("words", classes=False, modules=modules)
    assert abs(X - again).max() == 0
    assert np.array_equal(one > 0, y == np.argmax(np.bincount(y.astype(int))))


def test_a_machine_without_the_source_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(workloads.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(ValueError, match="not on this machine"):
        documents(("csv", "json", "heapq"))


def test_the_whole_library_has_more_than_twenty_classes():
    """By the number of definitions, without making documents of them: that takes seconds."""
    counted = dict.fromkeys(sys.stdlib_module_names, 0)
    for name, path in library_files(sys.stdlib_module_names):
        text = path.read_text(encoding="utf-8", errors="replace")
        counted[name] += sum(line.lstrip().startswith(("def ", "class ")) for line in text.splitlines())
    assert sum(number >= workloads.FEWEST_DOCUMENTS for number in counted.values()) > 20
