"""Fetch a file with a known checksum: https only, in bounded time and size, resumed where it was cut."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from exclusivity import __version__
from exclusivity.datasets.errors import DownloadError
from exclusivity.datasets.registry import RemoteFile

SCHEMES = ("https",)
"""What addresses and the addresses they lead to must start with."""

_CHUNK_BYTES = 1 << 16
# Request time-out, too early, too many requests, and what goes wrong inside servers and proxies.
_PASSING = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Patience:
    """How long to try.

    Attributes
    ----------
    timeout : float
        Seconds without an answer or a byte after which an attempt has failed.
    deadline : float
        Seconds for all attempts together.
    attempts : int
    pause : float
        Seconds before the second attempt; twice as long before each further one.
    """

    timeout: float = 10.0
    deadline: float = 60.0
    attempts: int = 3
    pause: float = 0.5


class _PassingError(Exception):
    """What another attempt may mend."""


class _SameSchemes(HTTPRedirectHandler):
    """Follows no redirection to an address that would not have been accepted in the first place."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(remote: RemoteFile, path: Path, patience: Patience | None = None) -> Path:
    """Download a file, check it, and put it in its place.

    What arrived before a cut stays beside ``path`` (``.name.part``), and the next attempt, also of another
    process, asks for the rest. Only bytes with the right checksum get the name ``path``, all at once.

    Parameters
    ----------
    remote : RemoteFile
    path : Path
        Where the file is to be; its folder is made where it is missing.
    patience : Patience, optional

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    DownloadError
        With the address and the cause.
    """
    _check_scheme(remote.url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Download(remote, path, patience or Patience()).run()
    except DownloadError:
        raise
    except OSError as error:  # the disk: those of the network have become passing or download errors
        raise DownloadError(
            f"{remote.url} cannot be kept in the cache {path.parent} ({error}); set EXCLUSIVITY_CACHE to a "
            "folder that can be written to."
        ) from error


def _check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in SCHEMES:
        raise DownloadError(f"{url} does not start with {' or '.join(SCHEMES)}; nothing else is fetched.")


class _Download:
    """One file on its way.

    What arrives is kept in memory, of which a file takes ``n_bytes`` at most, and on disk only for the next
    attempt: two processes that fetch the same file cannot spoil each other's bytes.
    """

    def __init__(self, remote: RemoteFile, path: Path, patience: Patience) -> None:
        self._remote, self._path, self._patience = remote, path, patience
        self._part = path.with_name(f".{path.name}.part")
        self._end = time.monotonic() + patience.deadline
        self._opener = build_opener(_SameSchemes)

    def run(self) -> Path:
        """Try until it works, or is no use."""
        for attempt in range(self._patience.attempts):
            if attempt:
                time.sleep(max(0.0, min(self._patience.pause * 2 ** (attempt - 1), self._left())))
            try:
                self._accept(*self._receive())
            except _PassingError as error:
                cause = str(error)
            else:
                return self._path
            if self._left() <= 0:
                cause += f"; gave up after {self._patience.deadline:g} s"
                break
        raise DownloadError(f"{self._remote.url} could not be fetched: {cause}.")

    def _left(self) -> float:
        return self._end - time.monotonic()

    def _receive(self) -> tuple[bytes, bool]:
        """The content, and whether its beginning is from an earlier attempt."""
        beginning = self._part.read_bytes() if self._part.exists() else b""
        if len(beginning) >= self._remote.n_bytes:
            return beginning, True
        headers = {"User-Agent": f"exclusivity/{__version__}", "Accept-Encoding": "identity"}
        if beginning:
            headers["Range"] = f"bytes={len(beginning)}-"
        request = Request(self._remote.url, headers=headers)  # noqa: S310 -- the scheme has been checked
        timeout = max(0.001, min(self._patience.timeout, self._left()))
        try:
            response = _network(lambda: self._opener.open(request, timeout=timeout))
        except HTTPError as error:
            with error:
                self._refused(error, beginning)
            return beginning, True
        with response:
            if response.status != HTTPStatus.PARTIAL_CONTENT:
                beginning = b""  # the server sends all of it again
            self._check_answer(response, len(beginning))
            return self._copy(response, beginning), bool(beginning)

    def _refused(self, error: HTTPError, beginning: bytes) -> None:
        if beginning and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # there is no rest: the checksum tells whether what is here is the file
        answer = f"the server answered {error.code} {error.reason}"
        if error.code in _PASSING:
            raise _PassingError(answer)
        raise DownloadError(f"{self._remote.url} could not be fetched: {answer}.")

    def _check_answer(self, response: Any, start: int) -> None:
        if start and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            self._part.unlink(missing_ok=True)
            raise _PassingError("the server sent another part than the one that was asked for")
        if start + (response.length or 0) > self._remote.n_bytes:
            self._too_large()

    def _copy(self, response: Any, beginning: bytes) -> bytes:
        content = bytearray(beginning)
        expected = None if response.length is None else len(beginning) + response.length
        with self._part.open("ab" if beginning else "wb") as part:
            # read1 returns what is there: a server that drips cannot outlast the deadline.
            while chunk := _network(lambda: response.read1(_CHUNK_BYTES)):
                content += chunk
                if len(content) > self._remote.n_bytes:
                    self._too_large()
                part.write(chunk)
                if self._left() <= 0:
                    raise _PassingError(f"only {len(content)} bytes have arrived")
        if expected is not None and len(content) < expected:
            raise _PassingError(f"the connection was cut after {len(content)} of {expected} bytes")
        return bytes(content)

    def _too_large(self) -> None:
        self._part.unlink(missing_ok=True)
        raise DownloadError(
            f"{self._remote.url} is larger than the {self._remote.n_bytes} bytes it should have; "
            "the file on the site has changed."
        )

    def _accept(self, content: bytes, resumed: bool) -> None:
        """Give the content its place if it is right."""
        found = hashlib.sha256(content).hexdigest()
        if found not in self._remote.sha256:
            self._part.unlink(missing_ok=True)
            cause = f"the checksum (sha256) is {found}; expected {' or '.join(self._remote.sha256)}"
            if resumed:
                raise _PassingError(cause)  # the old beginning may not belong to the new end
            raise DownloadError(f"{self._remote.url} is not the file it should be: {cause}.")
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._part.unlink(missing_ok=True)


def _network(action: Callable[[], Any]) -> Any:
    """Do something that the network can spoil."""
    try:
        return action()
    except (HTTPError, DownloadError):
        raise
    except (URLError, http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise _PassingError(f"{reason}" or type(error).__name__) from error
