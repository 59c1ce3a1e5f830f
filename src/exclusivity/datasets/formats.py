"""The formats of data files that are known, by their names and by the ends of files' names."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from exclusivity.datasets.file_format import Format, TextFormat
from exclusivity.datasets.libsvm_lines import is_packed, plain_suffix

GROUP = "exclusivity.formats"
"""The entry points by which installed packages bring formats of their own."""

_FORMATS: dict[str, Format] = {}


def register_format(format: Format) -> None:  # noqa: A002 -- what it is
    """Add a format to those that ``read_table``, ``erm`` and Dask know, or replace the one of its name.

    A package that is installed names its class as an entry point of the group ``exclusivity.formats``
    instead, so that ``erm`` finds it.

    Parameters
    ----------
    format : Format
        An instance. With Dask it travels to the workers.

    Examples
    --------
    >>> from exclusivity.datasets import format_named, register_format
    >>> register_format(format_named("npy"))
    """
    if not isinstance(format, Format):
        raise TypeError(f"format must be an instance of a subclass of Format; got {format!r}.")
    known_formats()  # what is installed comes first, and may be replaced
    add_format(format)


def add_format(new: Format) -> None:
    """Add or replace a format, without a look at what other packages bring."""
    missing = [attribute for attribute in ("name", "suffixes") if not hasattr(new, attribute)]
    if missing:
        raise ValueError(f"the format {type(new).__name__} does not say its {' and '.join(missing)}.")
    for suffix in new.suffixes:
        if plain_suffix(Path(f"x{suffix}")) != suffix:
            raise ValueError(
                f"the format {new.name!r} has the suffix {suffix!r}; expected a tuple of ends of names, in "
                "small letters with one dot in front, and not of compressed files."
            )
        other = next((known for known in _FORMATS.values() if suffix in known.suffixes), None)
        if other is not None and other.name != new.name:
            raise ValueError(
                f"files that end in {suffix!r} are of the format {other.name!r}; choose another."
            )
    _FORMATS[new.name] = new


def known_formats() -> tuple[str, ...]:
    """The names of all formats.

    Examples
    --------
    >>> from exclusivity.datasets import known_formats
    >>> known_formats()[:3]
    ('libsvm', 'csv', 'tsv')
    """
    _add_installed()
    return tuple(_FORMATS)


@cache
def _add_installed() -> None:
    """What other packages bring; one that is broken is no reason not to read other files."""
    for entry in entry_points(group=GROUP):
        try:
            add_format(entry.load()())
        except Exception as error:
            warnings.warn(
                f"the format {entry.name!r}, {entry.value} of another package, cannot be used: {error!r}",
                UserWarning,
                stacklevel=2,
            )


def format_named(name: str) -> Format:
    """The format of a name.

    Parameters
    ----------
    name : str
        One of ``known_formats()``.

    Examples
    --------
    >>> from exclusivity.datasets import format_named
    >>> format_named("tsv").suffixes
    ('.tsv',)
    """
    known = known_formats()
    if name not in known:
        raise ValueError(f"format must be one of {known}, or None; got {name!r}.")
    return _FORMATS[name]


def format_of(path: str | Path) -> Format:
    """The format that the name of a file gives away.

    Parameters
    ----------
    path : str or Path
        The file, which need not exist.

    Examples
    --------
    >>> from exclusivity.datasets import format_of
    >>> format_of("heart.csv.gz").name, format_of("heart_scale").name
    ('csv', 'libsvm')
    """
    path, known = Path(path), known_formats()
    suffix = plain_suffix(path)
    for found in _FORMATS.values():
        if suffix in found.suffixes and (isinstance(found, TextFormat) or not is_packed(path)):
            return found
    endings = ", ".join(ending for found in _FORMATS.values() for ending in found.suffixes if ending)
    raise ValueError(
        f"the name {path.name!r} does not say what the file is: it ends in none of {endings} (for text "
        f"also with .gz or .bz2 behind that); pass format, one of {known}."
    )
