"""Write files as a whole or not at all: the old one stays until the new one is safely on disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex


@contextmanager
def whole_file(path: Path) -> Iterator[BufferedWriter]:
    """Open a file to write to, which takes its place at ``path`` when all went well.

    It is written beside its place (``.name.<random>.tmp``), flushed to disk, and renamed. A crash, a kill or
    a full disk at any moment leaves the old file; at worst the temporary one stays behind. A new file gets
    the usual permissions of new files, a replaced one keeps those it had. A link stays a link.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.exists():  # the temporary file would be named
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    mode = _mode_of(path)
    temporary = path.with_name(f".{path.name[:100]}.{token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)  # less the umask
    try:
        with open(descriptor, "wb") as stream:
            if mode is not None:
                os.chmod(temporary, mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _mode_of(path: Path) -> int | None:
    """Return the permissions of the file that is to be replaced; None where there is none."""
    if not path.exists():
        return None
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if not path.is_file():
        raise ValueError(f"{path} is no ordinary file; give another name.")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is write-protected; give another name or change its permissions.")
    return stat.S_IMODE(path.stat().st_mode)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a loss of power, where the system can do that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # some network file systems cannot; the file itself is safe
            os.fsync(descriptor)
        os.close(descriptor)
