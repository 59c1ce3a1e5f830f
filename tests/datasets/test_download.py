"""Downloads from a server on this machine that misbehaves in all the ways that servers do."""

import contextlib
import hashlib
import http.server
import re
import socket
import threading
import time

import pytest

from exclusivity.datasets import DownloadError, download
from exclusivity.datasets.download import Patience, fetch
from exclusivity.datasets.registry import RemoteFile

CONTENT = b"".join(b"%d 1:%d\n" % (i % 2, i) for i in range(2000))
IMPATIENT = Patience(timeout=5, deadline=20, attempts=3, pause=0.001)


class Server(http.server.ThreadingHTTPServer):
    """Answers with one script after the other, the last one for ever, and remembers what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts, self.requests, self.stop = [whole], [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/data/set"

    def handle_error(self, request, client_address):
        """A client that has gone is what these tests are about."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append((self.path, dict(self.headers)))
        server.scripts[min(len(server.requests), len(server.scripts)) - 1](self)

    def log_message(self, *arguments):
        pass

    def send(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


def whole(handler):
    handler.send(200, CONTENT, Content_Length=len(CONTENT))


def half(handler):
    handler.send(200, CONTENT[: len(CONTENT) // 2], Content_Length=len(CONTENT))


def rest(handler):
    start = int(re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"])[1])
    body = CONTENT[start:]
    handler.send(
        206, body, Content_Length=len(body), Content_Range=f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
    )


def status(code):
    return lambda handler: handler.send(code, b"sorry", Content_Length=5)


def hang(handler):
    handler.server.stop.wait(30)


def drip(handler):
    handler.send(200, Content_Length=len(CONTENT))
    with contextlib.suppress(OSError):
        for byte in CONTENT:
            handler.wfile.write(bytes([byte]))
            if handler.server.stop.wait(0.02):
                break


@pytest.fixture
def server(isolated, monkeypatch):
    monkeypatch.setattr(download, "SCHEMES", ("http",))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.stop.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def path(isolated):
    return isolated / "cache" / "set"


def remote(url, content=CONTENT, n_bytes=None):
    return RemoteFile(url, (hashlib.sha256(content).hexdigest(),), n_bytes or len(CONTENT))


def part(path):
    return path.with_name(".set.part")


def files(path):
    return sorted(file.name for file in path.parent.iterdir())


class TestGood:
    def test_first_attempt(self, server, path):
        assert fetch(remote(server.url), path) == path
        assert path.read_bytes() == CONTENT
        assert files(path) == ["set"]
        [(where, headers)] = server.requests
        assert where == "/data/set"
        assert headers["User-Agent"].startswith("exclusivity/")
        assert headers["Accept-Encoding"] == "identity"
        assert "Range" not in headers

    def test_one_of_several_checksums(self, server, path):
        wanted = RemoteFile(server.url, ("0" * 64, hashlib.sha256(CONTENT).hexdigest()), len(CONTENT) + 1)
        assert fetch(wanted, path, IMPATIENT).read_bytes() == CONTENT

    def test_without_a_length(self, server, path):
        server.scripts = [lambda handler: handler.send(200, CONTENT)]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT

    def test_redirection_with_the_same_scheme(self, server, path):
        server.scripts = [lambda handler: handler.send(302, Location="/elsewhere", Content_Length=0), whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert server.requests[1][0] == "/elsewhere"

    def test_old_file_is_replaced(self, server, path):
        path.parent.mkdir()
        path.write_bytes(b"old")
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT


class TestRetry:
    @pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
    def test_passing_trouble(self, server, path, code):
        server.scripts = [status(code), status(code), whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert len(server.requests) == 3

    def test_trouble_that_does_not_pass(self, server, path):
        server.scripts = [status(503)]
        with pytest.raises(DownloadError, match=r"could not be fetched: the server answered 503 Service Una"):
            fetch(remote(server.url), path, IMPATIENT)
        assert len(server.requests) == 3
        assert not path.exists()

    @pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 416, 501])
    def test_no_use(self, server, path, code):
        server.scripts = [status(code)]
        with pytest.raises(
            DownloadError, match=f"{server.url} could not be fetched: the server answered {code} "
        ):
            fetch(remote(server.url), path, IMPATIENT)
        assert len(server.requests) == 1
        assert files(path) == []

    def test_pauses_grow(self, server, path, monkeypatch):
        pauses = []
        monkeypatch.setattr(time, "sleep", pauses.append)
        server.scripts = [status(500)]
        with pytest.raises(DownloadError):
            fetch(remote(server.url), path, Patience(attempts=5, pause=0.25))
        assert pauses == [0.25, 0.5, 1, 2]

    def test_nobody_there(self, isolated, path, monkeypatch):
        monkeypatch.setattr(download, "SCHEMES", ("http",))
        with socket.socket() as taken:  # bound, but it does not listen
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/set"
            with pytest.raises(DownloadError, match=r"could not be fetched: .*refused"):
                fetch(remote(url), path, IMPATIENT)

    def test_answer_that_is_no_http(self, server, path):
        server.scripts = [lambda handler: handler.wfile.write(b"what?\r\n\r\n"), whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT


class TestTime:
    def test_hang(self, server, path):
        server.scripts = [hang]
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"could not be fetched: .*timed out"):
            fetch(remote(server.url), path, Patience(timeout=0.5, deadline=120, attempts=2, pause=0.001))
        assert time.monotonic() - start < 25
        assert len(server.requests) == 2

    def test_hang_once(self, server, path):
        server.scripts = [hang, whole]
        patience = Patience(timeout=0.5, deadline=60, attempts=6, pause=0.001)
        assert fetch(remote(server.url), path, patience).read_bytes() == CONTENT

    def test_hang_in_the_middle(self, server, path):
        def stall(handler):
            handler.send(200, CONTENT[:1000], Content_Length=len(CONTENT))
            hang(handler)

        server.scripts = [stall, rest]
        # A second and a half for the first thousand bytes, however busy the machine is.
        patience = Patience(timeout=1.5, deadline=60, attempts=6, pause=0.001)
        assert fetch(remote(server.url), path, patience).read_bytes() == CONTENT
        assert server.requests[1][1]["Range"] == "bytes=1000-"

    def test_drip(self, server, path):
        """Every byte comes in time, and all of them would take minutes."""
        server.scripts = [drip]
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"only \d+ bytes have arrived; gave up after 1 s"):
            fetch(remote(server.url), path, Patience(timeout=5, deadline=1, attempts=9, pause=0.001))
        assert time.monotonic() - start < 25

    def test_pause_is_not_longer_than_the_deadline(self, server, path):
        server.scripts = [status(500)]
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"gave up after 0.2 s"):
            fetch(remote(server.url), path, Patience(deadline=0.2, attempts=9, pause=60))
        assert time.monotonic() - start < 25


class TestContent:
    def test_wrong_checksum(self, server, path):
        with pytest.raises(DownloadError) as caught:
            fetch(remote(server.url, b"something else"), path, IMPATIENT)
        found, expected = (hashlib.sha256(text).hexdigest() for text in (CONTENT, b"something else"))
        assert str(caught.value) == (
            f"{server.url} is not the file it should be: the checksum (sha256) is {found}; "
            f"expected {expected}."
        )
        assert len(server.requests) == 1
        assert files(path) == []

    @pytest.mark.parametrize("headers", [{"Content_Length": len(CONTENT)}, {}])
    def test_too_large(self, server, path, headers):
        server.scripts = [lambda handler: handler.send(200, CONTENT, **headers)]
        with pytest.raises(
            DownloadError, match="is larger than the 999 bytes it should have; the file on the site"
        ):
            fetch(remote(server.url, n_bytes=999), path, IMPATIENT)
        assert files(path) == []

    def test_endless(self, server, path):
        def pour(handler):
            handler.send(200)
            with contextlib.suppress(OSError):
                while not handler.server.stop.is_set():
                    handler.wfile.write(bytes(1 << 16))

        server.scripts = [pour]
        with pytest.raises(DownloadError, match="is larger than"):
            fetch(remote(server.url), path, IMPATIENT)


class TestResume:
    def test_cut_and_resumed(self, server, path):
        server.scripts = [half, rest]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert server.requests[1][1]["Range"] == f"bytes={len(CONTENT) // 2}-"
        assert files(path) == ["set"]

    def test_cut_for_good_and_resumed_by_another_call(self, server, path):
        server.scripts = [half]
        with pytest.raises(DownloadError, match=rf"cut after {len(CONTENT) // 2} of {len(CONTENT)} bytes"):
            fetch(remote(server.url), path, Patience(attempts=1))
        assert files(path) == [".set.part"]
        server.scripts = [rest]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert len(server.requests) == 2
        assert files(path) == ["set"]

    def test_cut_chunks(self, server, path):
        def chunked(handler):
            handler.protocol_version = "HTTP/1.1"
            handler.send(200, b"3e8\r\n" + CONTENT[:1000] + b"\r\n3e8\r\n", Transfer_Encoding="chunked")
            handler.close_connection = True

        server.scripts = [chunked, rest]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert server.requests[1][1]["Range"] == "bytes=1000-"

    def test_server_without_ranges(self, server, path):
        server.scripts = [half, whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT

    def test_another_range_than_asked_for(self, server, path):
        def wrong(handler):
            handler.send(206, CONTENT, Content_Range=f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}")

        server.scripts = [half, wrong, whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert "Range" not in server.requests[2][1]

    def test_range_that_would_be_too_long(self, server, path):
        path.parent.mkdir()
        part(path).write_bytes(CONTENT[:1000])
        server.scripts = [rest]
        with pytest.raises(DownloadError, match="is larger than the 5000 bytes"):
            fetch(remote(server.url, n_bytes=5000), path, IMPATIENT)

    def test_beginning_of_another_file(self, server, path):
        path.parent.mkdir()
        part(path).write_bytes(b"x" * 1000)
        server.scripts = [rest, whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert "Range" not in server.requests[1][1]

    @pytest.mark.parametrize("spare", [0, 1])
    def test_complete_already(self, server, path, spare):
        """With bytes to spare the server is asked for the rest, and says that there is none."""
        path.parent.mkdir()
        part(path).write_bytes(CONTENT)
        server.scripts = [status(416)]
        assert (
            fetch(remote(server.url, n_bytes=len(CONTENT) + spare), path, IMPATIENT).read_bytes() == CONTENT
        )
        assert len(server.requests) == spare
        assert files(path) == ["set"]

    @pytest.mark.parametrize("garbage", [b"x" * 1000, b"x" * len(CONTENT), b"x" * 2 * len(CONTENT)])
    def test_garbage_of_any_length(self, server, path, garbage):
        path.parent.mkdir()
        part(path).write_bytes(garbage)
        server.scripts = [status(416), whole] if len(garbage) < len(CONTENT) else [whole]
        assert fetch(remote(server.url), path, IMPATIENT).read_bytes() == CONTENT
        assert files(path) == ["set"]


class TestSafety:
    @pytest.mark.parametrize(
        "url", ["http://127.0.0.1/set", "ftp://127.0.0.1/set", "file:///etc/passwd", "set"]
    )
    def test_https_only(self, path, url):
        with pytest.raises(DownloadError, match=r"does not start with https; nothing else is fetched"):
            fetch(remote(url), path)
        assert not path.parent.exists()

    @pytest.mark.parametrize("place", ["https://127.0.0.1/set", "ftp://127.0.0.1/set"])
    def test_redirection_elsewhere(self, server, path, place):
        server.scripts = [lambda handler: handler.send(302, Location=place, Content_Length=0)]
        with pytest.raises(DownloadError, match=f"{place} does not start with http; nothing else is fetched"):
            fetch(remote(server.url), path, IMPATIENT)

    def test_redirection_to_a_file(self, server, path):
        server.scripts = [lambda handler: handler.send(302, Location="file:///etc/passwd", Content_Length=0)]
        with pytest.raises(DownloadError, match="the server answered 302"):
            fetch(remote(server.url), path, IMPATIENT)

    def test_cache_that_cannot_be_written(self, server, path):
        path.parent.write_bytes(b"a file where the folder should be")
        with pytest.raises(DownloadError, match=r"cannot be kept in the cache .*set EXCLUSIVITY_CACHE"):
            fetch(remote(server.url), path, IMPATIENT)

    def test_nothing_half_written(self, server, path, monkeypatch):
        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(DownloadError, match="No space left"):
            fetch(remote(server.url), path, IMPATIENT)
        assert files(path) == [".set.part"]

    def test_two_at_once(self, server, path):
        """Both get the file, whatever they do to each other's part."""
        found = []
        barrier = threading.Barrier(2)

        def both(handler):
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait(1)
            whole(handler)

        server.scripts = [both]
        threads = [
            threading.Thread(target=lambda: found.append(fetch(remote(server.url), path, IMPATIENT)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [path, path]
        assert path.read_bytes() == CONTENT
