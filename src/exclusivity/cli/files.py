"""Exit codes, errors that a person at a terminal can act on, and the files that commands read and write."""

from __future__ import annotations

import argparse
import difflib
import glob
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DONE = 0
FAILED = 1
USAGE = 2
BAD_FILE = 3
NOT_CONVERGED = 4
INTERRUPTED = 130
PIPE_CLOSED = 141

EXIT_STATUS = """exit status:
  0    done
  1    the command failed; the reason is on standard error
  2    the command line is wrong
  3    a file cannot be read or written, or its content is wrong
  4    done, but a fit did not reach its tolerance (the model was written)
  130  interrupted with Ctrl-C
  141  output pipe closed (as with '| head')"""

TEXT, BINARY, MODEL = "text", "binary", "model"
"""Kinds of outputs: what may go to standard output, what may not, and model files."""

_MODEL_BEGINS = b"\x89ERM\r\n\x1a\n"
_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class CommandError(Exception):
    """Ends a command with a message instead of a traceback."""

    exit_code = FAILED


class UsageError(CommandError):
    """Options that do not go together."""

    exit_code = USAGE


class FileError(CommandError):
    """A file that cannot be used; the message says what to do about it."""

    exit_code = BAD_FILE


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn errors of the operating system about a file into advice."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(_not_found(path)) from None
    except PermissionError as error:
        named = error.filename or path
        raise FileError(
            f"no permission for {named}; change its permissions (chmod u+rw {named}), or use a copy."
        ) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def _not_found(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}, and so no file {path}; check the path."
    names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    near = difflib.get_close_matches(Path(path).name, names, n=1, cutoff=0.8)
    hint = f"did you mean {folder / near[0]}?" if near else f"check the path (looked in {folder.resolve()})."
    return f"there is no file {path}; {hint}"


def check_outputs(args: argparse.Namespace, command: object) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that exist, before anything is read.

    Outputs that exist need ``--force``; empty files do not, and a model file may replace another one. An
    output that is also an input is always refused, by whatever name or link it goes. ``command.INPUTS`` are
    the arguments that name files to read; ``command.OUTPUTS`` map those that name files to write to ``TEXT``,
    ``BINARY`` or ``MODEL``.
    """
    for name, kind in getattr(command, "OUTPUTS", {}).items():
        path = getattr(args, name)
        if path in _STDOUT:
            path = "-"
            setattr(args, name, path)
        if path == "-" and kind != TEXT:
            raise UsageError(f"--{name}: this cannot go to standard output; give the name of a file.")
        if path is None or path == "-":
            continue
        check_output(path)
        if os.path.isfile(path):
            _check_replaced(path, kind, args, getattr(command, "INPUTS", ()))
        elif os.path.exists(path) and kind == MODEL:
            raise FileError(f"{path} is a device or a pipe; a model needs a regular file.")


def _check_replaced(path: str, kind: str, args: argparse.Namespace, inputs: tuple[str, ...]) -> None:
    for given in inputs:
        if any(os.path.samestat(os.stat(path), read) for read in _inputs(getattr(args, given))):
            raise FileError(f"{path} is also an input ({given}); choose another name for the output.")
    if args.force:
        return
    with file_errors(path), open(path, "rb") as stream:
        beginning = stream.read(len(_MODEL_BEGINS))
    if beginning and not (kind == MODEL and beginning == _MODEL_BEGINS):
        raise FileError(f"{path} exists; choose another name, or replace it with --force.")


def _inputs(given: str | list[str] | None) -> Iterator[os.stat_result]:
    """Find the files of an argument: one, several or a pattern; - is standard input."""
    for text in given if isinstance(given, list) else [] if given is None else [given]:
        for path in [text] if text == "-" or os.path.exists(text) else glob.glob(text, recursive=True):
            try:
                yield os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
            except (OSError, ValueError):  # a stream without a file behind it
                continue


def check_output(path: str) -> None:
    """Refuse a file that cannot be written now, before hours of work go into it."""
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    folder = target.parent
    if target.is_dir() or path.endswith(("/", os.sep)):
        raise FileError(f"{path} is a folder; give the name of a file to write.")
    if not folder.exists():
        raise FileError(f"cannot write {path}: there is no folder {folder}; create it (mkdir -p {folder}).")
    try:
        if os.path.lexists(target) and not os.access(target, os.W_OK):
            target.stat()  # raises where links lead in a circle
            raise PermissionError
        if not target.exists() or target.is_file():
            tempfile.TemporaryFile(dir=folder).close()  # permissions alone do not show whether that works
    except OSError as error:
        reason = "no permission" if isinstance(error, PermissionError) else error.strerror
        raise FileError(f"cannot write {path} ({reason}); choose another place.") from error
