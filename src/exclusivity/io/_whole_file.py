"""Write files as a whole or not at all: the old one stays until the new one is safely on disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE


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
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    is_new = not path.exists()
    if not (is_new or path.is_file()):
        raise ValueError(f"{path} is no ordinary file; give another name.")
    if not (is_new or os.access(path, os.W_OK)):
        raise PermissionError(f"{path} is write-protected; give another name or change its permissions.")
    temporary = path.with_name(f".{path.name[:100]}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:  # with the permissions of new files
            if not is_new:
                os.chmod(temporary, S_IMODE(path.stat().st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        temporary.unlink(missing_ok=True)
        raise
