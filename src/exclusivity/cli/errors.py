"""Errors that a person at a terminal can act on, and the exit codes of ``erm``."""

from __future__ import annotations

import difflib
import os
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
  141  whoever read the output went away (as with '| head')"""


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
    """Turn what goes wrong with a file into advice."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(_not_found(path)) from None
    except PermissionError as error:
        raise FileError(_no_permission(path, error)) from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder; give the name of a file.") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def check_output(path: str | None) -> None:
    """Refuse a file that cannot be written now, before hours of work go into it.

    A regular file is replaced by a new one beside it, in the folder that a link leads to; devices and pipes
    are written to.
    """
    if path is None or path == "-":
        return
    is_link = os.path.islink(path)
    target = Path(os.path.realpath(path) if is_link else path)
    folder = target.parent
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file to write, such as {Path(path, 'new')}.")
    if path.endswith(("/", os.sep)):
        raise FileError(f"{path} names a folder; give the name of a file to write.")
    if target.is_symlink():
        raise FileError(
            f"cannot write {path}: its links lead in a circle; remove it, or choose another name."
        )
    if folder.exists() and not folder.is_dir():
        raise FileError(f"cannot write {path}: {folder} is a file and no folder; choose another name.")
    if not folder.is_dir() and is_link:
        raise FileError(
            f"cannot write {path}: it is a link to {target}, and there is no folder {folder}; remove the "
            f"link, or create the folder (mkdir -p {folder})."
        )
    if not folder.is_dir():
        raise FileError(f"cannot write {path}: there is no folder {folder}; create it (mkdir -p {folder}).")
    if target.exists() and not os.access(target, os.W_OK):
        raise FileError(
            f"no permission to write {path}; choose another place, or change the permissions of {target}."
        )
    if not target.exists() or target.is_file():
        _check_folder(path, folder)


def _check_folder(path: str, folder: Path) -> None:
    """Create a file without a name in the folder: permissions alone do not tell whether that works."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except PermissionError:
        raise FileError(
            f"no permission to write {path}; choose another place, or change the permissions of {folder}."
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(
            f"cannot write {path}: no file can be created in {folder} ({reason}); choose another place."
        ) from error


def _not_found(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}, and so no file {path}; check the path."
    if os.path.islink(path):
        return f"{path} is a link to {os.path.realpath(path)}, which is not there; check where it leads."
    near = _near(Path(path), [entry.name for entry in folder.iterdir() if entry.is_file()])
    where = f"the folder {folder.resolve()}"
    hint = f"did you mean {folder / near}?" if near else f"check the path; it was looked for in {where}."
    return f"there is no file {path}; {hint}"


def _near(path: Path, names: list[str]) -> str | None:
    """The name that may have been meant: like this one before its ending, with about the same ending.

    Examples
    --------
    >>> _near(Path("trian.csv"), ["train.csv", "test.csv"]), _near(Path("de"), ["nodate.erm", "de.csv"])
    ('train.csv', 'de.csv')
    >>> _near(Path("de.erm"), ["nodate.erm", "de.csv"])
    """
    stem, _, ending = path.name.partition(".")
    stems: dict[str, str] = {}
    for name in sorted(
        names, key=lambda name: name.partition(".")[2] == ending
    ):  # the same ending comes last
        other, _, its = name.partition(".")
        if its.startswith(ending) or ending.startswith(its) or difflib.get_close_matches(its, [ending]):
            stems[other] = name
    near = difflib.get_close_matches(stem, stems, n=1)
    return stems[near[0]] if near else None


def _no_permission(path: str, error: PermissionError) -> str:
    named = str(error.filename or path)
    return (
        f"no permission for {named}; change its permissions (chmod u+rw {named}), or use a copy that you "
        "may read."
    )
