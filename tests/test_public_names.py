"""Every public name says what it is, what it takes and how it is used, and has a place in the reference."""

from __future__ import annotations

import dataclasses
import doctest
import enum
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import exclusivity

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "api.md"
INDEX = ROOT / "docs" / "index.md"

FOR_USERS = (
    "callbacks",
    "dask",
    "datasets",
    "diversity",
    "inspection",
    "io",
    "partition",
    "robustness",
    "tables",
)
FOR_EXTENSION = ("objective", "rows", "solvers")
"""Modules for those who build on the package: a summary and a page are enough."""
INSIDE = ("additive", "classifier", "cli", "kernels", "versions", "voting")
"""The first is reached through the package itself, the second through the command ``erm``."""


SCIKIT_LEARN_CALLS = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")
"""Methods of a callback: nobody else calls them, and their arguments are scikit-learn's protocol."""


def public(*modules):
    """Full names of everything in ``__all__`` of the modules that exist."""
    for module in modules:
        path = f"exclusivity.{module}".rstrip(".")
        if importlib.util.find_spec(path) is not None:
            names = set(importlib.import_module(path).__all__) - {"__version__"}
            yield from (f"{path}.{name}" for name in sorted(names))


def resolve(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def is_constant(thing):
    return not (inspect.isclass(thing) or inspect.isfunction(thing))


# Constants cannot carry docstrings; their lines in the reference are asked for below.
USER_NAMES = [path for path in public("", *FOR_USERS) if not is_constant(resolve(path))]
OTHER_NAMES = [path for path in public(*FOR_EXTENSION) if not is_constant(resolve(path))]
OTHER_NAMES.append("exclusivity.classifier.ERMPath")


def sections(docstring):
    """Title of a numpydoc section -> its text; the summary and what follows it is under ""."""
    parts = re.split(r"(?m)^([A-Z][A-Za-z ]+)\n-{3,}\n", inspect.cleandoc(docstring or ""))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(docstring):
    """Names that have an entry with a text under Parameters or Attributes."""
    found = set()
    for title in ("Parameters", "Attributes"):
        for entry in re.findall(r"(?m)^(\S[^:\n]*)(?: : .*)?$", sections(docstring).get(title, "")):
            found |= {name.strip(" *") for name in entry.split(",")}
    return found


def complaints_about_summary(thing):
    summary = sections(thing.__doc__)[""].split("\n\n")[0]
    generated = dataclasses.is_dataclass(thing) and summary.startswith(f"{thing.__name__}(")
    if not summary or generated:
        return ["no summary"]
    return [] if summary.rstrip().endswith((".", ":", ",")) else ["the summary is not a sentence"]


def takes(thing):
    if inspect.isclass(thing) and issubclass(thing, enum.Enum | Exception):
        return []  # nobody makes an enumeration; errors of Python's own kind take a message
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def complaints_about_parameters(thing):
    known = described(thing.__doc__)
    return [f"parameter {name} is not described" for name in takes(thing) if name not in known]


def complaints_about_methods(thing):
    """Public methods and properties that are ours, described as functions are."""
    for name, member in inspect.getmembers_static(thing):
        function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("exclusivity"):
            yield from (f"{name}: {text}" for text in complaints_about_summary(function))
            if not isinstance(member, property) and name not in SCIKIT_LEARN_CALLS:
                yield from (f"{name}: {text}" for text in complaints_about_parameters(function))


def needs_example(thing):
    """Not what others return or raise: records, enumerations and errors."""
    passive = inspect.isclass(thing) and issubclass(thing, enum.Enum | Exception)
    return not passive and not dataclasses.is_dataclass(thing)


def complaints_about_example(thing):
    examples = doctest.DocTestParser().get_examples(thing.__doc__ or "")
    runs = [example for example in examples if not example.options.get(doctest.SKIP)]
    return [] if runs else ["no example that runs"]


def complaints(thing, *, for_users=True):
    found = complaints_about_summary(thing)
    if for_users:
        found += complaints_about_parameters(thing)
        if inspect.isclass(thing):
            found += complaints_about_methods(thing)
        if needs_example(thing):
            found += complaints_about_example(thing)
    return found


FORM = {
    "PR02": "no parameter that does not exist",
    "PR03": "in the order of the signature",
    "PR04": "each with its type",
    "PR05": "which is not a sentence",
    "PR06": "and has its Python name",
    "PR08": "what it means begins with a capital letter",
    "PR09": "and ends with a full stop",
    "PR10": "and a colon stands between spaces",
    "RT04": "what comes back begins with a capital letter",
    "SS03": "summaries end with a full stop",
}
"""What numpydoc's validator is asked about. It would also have every name see others and show examples."""


def own_methods(path):
    thing = resolve(path)
    methods = vars(thing).items() if inspect.isclass(thing) else ()
    yield from (f"{path}.{name}" for name, it in methods if inspect.isfunction(it) and name[0] != "_")


@pytest.mark.parametrize("path", USER_NAMES + OTHER_NAMES)
def test_docstrings_have_the_form_that_numpydoc_wants(path):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc comes with [dev]").validate
    for each in (path, *own_methods(path)):
        assert not [error for error in validate(each)["errors"] if error[0] in FORM], each


@pytest.mark.parametrize("path", USER_NAMES)
def test_names_for_users_are_described(path):
    assert not complaints(resolve(path))


@pytest.mark.parametrize("path", [path for path in OTHER_NAMES if ".objective." in path])
def test_functions_of_the_objective_describe_what_they_take(path):
    assert inspect.isclass(resolve(path)) or not complaints_about_parameters(resolve(path))


@pytest.mark.parametrize("path", OTHER_NAMES)
def test_other_names_have_a_summary(path):
    assert not complaints(resolve(path), for_users=False)


def reference_names():
    """What the reference lists: module by module, lines of autosummary and ``py:data``."""
    text = REFERENCE.read_text(encoding="utf-8")
    for module, listed in re.findall(r"(?m)^\.\. currentmodule:: (\S+)\n((?:(?!```).*\n)*)", text):
        names = re.findall(r"(?m)^(?:   |\.\. py:data:: )([A-Za-z]\w*)$", listed)
        yield from (f"{module}.{name}" for name in names)


def test_the_reference_lists_every_public_name_once_and_nothing_else():
    listed = list(reference_names())
    expected = {*public("", *FOR_USERS, *FOR_EXTENSION), "exclusivity.classifier.ERMPath"}
    assert sorted(set(listed)) == sorted(expected), "edit docs/api.md"
    assert len(listed) == len(set(listed))


def test_there_are_at_most_a_hundred_names():
    assert len(list(reference_names())) <= 100


def test_every_module_is_known_to_these_tests():
    modules = {module.name for module in pkgutil.iter_modules(exclusivity.__path__)}
    private = {name for name in modules if name.startswith("_")}
    assert modules - private <= {*FOR_USERS, *FOR_EXTENSION, *INSIDE}


def test_every_page_is_in_the_table_of_contents():
    entries = re.findall(r"(?m)^(?:[^`<\n]+ <)?([\w/-]+)>?$", INDEX.read_text(encoding="utf-8"))
    pages = {page.stem for page in REFERENCE.parent.glob("*.md")} - {"index"}
    pages |= {f"research/{page.stem}" for page in REFERENCE.parent.glob("research/*.md")}
    assert pages <= set(entries), "name the page in a toctree of docs/index.md"


def test_a_docstring_without_its_parts_is_noticed():
    def good(one, *others, two=2, **more):
        """Do it.

        Parameters
        ----------
        one, two : int
            Numbers.
        *others, **more
            The rest.

        Examples
        --------
        >>> good(1)
        """

    def silent(one):
        pass

    def skipped(one):
        """Do it

        Parameters
        ----------
        other : int
            Not one.

        Examples
        --------
        >>> skipped(1)  # doctest: +SKIP
        """

    @dataclasses.dataclass
    class Generated:
        one: int

    class Half:
        """Half of it.

        Examples
        --------
        >>> Half()
        """

        def method(self, one):
            """Do it.

            With one argument.
            """

    Half.method.__module__ = "exclusivity.imagined"
    assert complaints(good) == []
    assert complaints(silent) == ["no summary", "parameter one is not described", "no example that runs"]
    assert complaints(skipped) == [
        "the summary is not a sentence",
        "parameter one is not described",
        "no example that runs",
    ]
    assert complaints(Generated) == ["no summary", "parameter one is not described"]
    assert complaints(Half) == ["method: parameter one is not described"]


def test_escapes_for_the_site():
    spec = importlib.util.spec_from_file_location("plain_docstrings", ROOT / "docs" / "plain_docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module).failed == 0
    docstring = inspect.cleandoc(
        """Of |w| and ``coef_``.

        Over

            sum_j |W_j|
              + gamma/2

            max(0, 1 - y_ij)

        for x_i. See `name_`.

        Parameters
        ----------
        coef_ : ndarray (n_features_in_,)
            The norm |w|.

            - a list of |v|

        Examples
        --------
        >>> clf.coef_ | 1
        coef_
        """
    )
    rst = "\n".join(module.to_rst(docstring.split("\n")))
    expected = docstring.replace("Of |w|", r"Of \|w\|").replace("norm |w|", r"norm \|w\|")
    expected = (
        expected.replace("|v|", r"\|v\|").replace("in_,", r"in\_,").replace("Over\n", "Over\n\n.. math::\n")
    )
    formula = r"\begin{gathered} \sum_j \lVert W_j \rVert \\ + \tfrac{\gamma}{2} \end{gathered}"
    expected = expected.replace("sum_j |W_j|\n      + gamma/2", formula)
    expected = expected.replace("max(0, 1 - y_ij)", r"\max(0, 1 - y_{ij})")
    assert rst == expected
