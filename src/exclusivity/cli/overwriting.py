"""What a command may replace: never what it reads, and without ``--force`` only what it wrote before.

A command module says in ``INPUTS`` which of its arguments are read, and in ``OUTPUTS`` which are written and
what is written there. ``check`` runs before every command. Which file a name means is decided by the file
system, so that links and other spellings of a path are the same file; what a file is, by its first bytes.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exclusivity.cli.errors import FileError, UsageError, check_output, file_errors

_HEAD = 4096
_SHOWN = 24


@dataclass(frozen=True)
class FileKind:
    """A kind of file that commands write.

    Attributes
    ----------
    noun : str
        What messages call it.
    beginning : bytes
        A regular expression that matches the first bytes of such files and of few others.
    is_text : bool
        Whether it may go to standard output, by the name ``-``.
    is_replaced : bool
        Whether only a regular file will do, and no device or pipe.
    """

    noun: str
    beginning: bytes
    is_text: bool = False
    is_replaced: bool = False


MODEL = FileKind("a model file", rb"\x89ERM\r\n\x1a\n", is_replaced=True)
PREDICTIONS = FileKind("a file of predictions", rb'label(,"?score|\r?\n)|\{"classes":', is_text=True)
RADII = FileKind("a file of certified radii", rb"label,radius\r?\n", is_text=True)
REPORT = FileKind(
    "a report of erm", rb'<!DOCTYPE html>[^\0]{,500}<meta name="generator" content="exclusivity'
)
GRAPH = FileKind("an ONNX graph of erm", rb"\x08.\x12\x0bexclusivity")

_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
"""What the system calls standard output; opened by such a name, a file behind it would be replaced."""

_ROLES = {"data": "as DATA", "model": "as MODEL"}  # all others are options


def check(args: argparse.Namespace, command: object) -> None:
    """Refuse outputs that are inputs, that hold something else, or that cannot be written.

    Parameters
    ----------
    args : Namespace
    command : module
        With or without ``INPUTS`` and ``OUTPUTS``.
    """
    inputs = list(_inputs(args, getattr(command, "INPUTS", ())))
    _check_stdout(inputs)
    for name, kind in getattr(command, "OUTPUTS", {}).items():
        if getattr(args, name) in _STDOUT:
            setattr(args, name, "-")
        path = getattr(args, name)
        if path is not None:
            _check_file(path, kind, inputs, force=args.force)


def _inputs(args: argparse.Namespace, names: tuple[str, ...]) -> Iterator[tuple[str, str, os.stat_result]]:
    """What is read as what, with what tells files apart; what is not there is none of an output's worries."""
    for name in names:
        given = getattr(args, name)
        for text in given if isinstance(given, list) else [] if given is None else [given]:
            paths = [text] if text == "-" or os.path.exists(text) else glob.glob(text, recursive=True)
            for path in paths:
                status = _status(path, sys.stdin)
                if status is not None:
                    yield path, _ROLES.get(name, f"for --{name}"), status


def _status(path: str, stream: Any) -> os.stat_result | None:
    """Of a regular file: a pipe or a terminal may be read and written."""
    try:
        status = os.fstat(stream.fileno()) if path == "-" else os.stat(path)
    except (OSError, ValueError):  # not there, or a stream without a file behind it
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _check_stdout(inputs: list[tuple[str, str, os.stat_result]]) -> None:
    target = _status("-", sys.stdout)
    for path, role, status in inputs:
        if target is not None and os.path.samestat(target, status):
            raise FileError(f"standard output goes to {path}, which is read {role}; choose another file.")


def _check_file(
    path: str, kind: FileKind, inputs: list[tuple[str, str, os.stat_result]], *, force: bool
) -> None:
    if path == "-":
        if not kind.is_text:
            raise UsageError(f"{kind.noun} cannot go to standard output; give the name of a file.")
        return
    check_output(path)
    target = _status(path, None)
    if target is None and kind.is_replaced and os.path.exists(path):
        raise FileError(
            f"{path} is a device or a pipe, and {kind.noun} needs a regular file; choose another name."
        )
    if target is None:
        return
    for read, role, status in inputs:
        if os.path.samestat(target, status):
            also = "" if read == path else f" by the name {'standard input' if read == '-' else read}"
            raise FileError(
                f"{path} is read {role}{also}, and {kind.noun} would take its place; choose another name for "
                "the output."
            )
    if not force:
        _check_kind(path, kind)


def _check_kind(path: str, kind: FileKind) -> None:
    head = _head(path)
    if head and not re.match(kind.beginning, head, re.DOTALL):
        raise FileError(
            f"{path} exists and is not {kind.noun}: it begins with {_shown(head)}; choose another name, or "
            "add --force to replace it."
        )


def _head(path: str) -> bytes:
    with file_errors(path), open(path, "rb") as stream:
        return stream.read(_HEAD)


def _shown(head: bytes) -> str:
    """The beginning of a file, for people."""
    line = head[:_SHOWN].split(b"\n")[0].rstrip(b"\r")
    return repr(line.decode("utf-8", "backslashreplace"))
