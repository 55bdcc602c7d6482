"""An HTTP server on loopback that misbehaves as told, and a small set in the format of UCI's housing.data."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from distreduce.datasets.download import FileSet, RemoteFile, hash_values
from distreduce.datasets.loading import FILE_SETS

TABLE = np.random.default_rng(0).normal(size=(300, 14))
CONTENT = "\n".join(" ".join(map(repr, row)) for row in TABLE.tolist()).encode()


def small_set(*urls: str, content: bytes = CONTENT) -> FileSet:
    """Boston with other values: the file `content`, found at `urls`."""
    remote = RemoteFile("housing.data", len(content), hashlib.sha256(content).hexdigest(), urls)
    return replace(FILE_SETS["boston"], shape=(300, 13), sha256=hash_values({"table": TABLE}), remote=(remote,))


class MisbehavingServer:
    """Serves `files`; each request to a path takes the next of its `manners`, then good ones.

    good, 404, 503, half (all promised, half sent), wrong (bytes changed), silent (no answer), stuck (half, then
    nothing), trickle (a hundred bytes per tenth of a second), paused (half, then waits for `go`).
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/file": CONTENT}
        self.manners: dict[str, list[str]] = {}
        self.requests: list[str] = []  # paths
        self.go = threading.Event()

    def __enter__(self) -> MisbehavingServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                outer.requests.append(self.path)
                queue = outer.manners.get(self.path, [])
                try:
                    outer.answer(self, queue.pop(0) if queue else "good")
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, path: str = "/file") -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def answer(self, handler: BaseHTTPRequestHandler, manner: str) -> None:
        if manner == "silent":
            self.go.wait(5)
            return
        if manner.isdecimal() or handler.path not in self.files:
            handler.send_error(int(manner) if manner.isdecimal() else 404)
            return
        body = self.files[handler.path]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        self._send(handler, body, manner)

    def _send(self, handler: BaseHTTPRequestHandler, body: bytes, manner: str) -> None:
        half = len(body) // 2
        if manner == "trickle":
            for place in range(0, 5000, 100):
                handler.wfile.write(body[place : place + 100])
                handler.wfile.flush()
                if self.go.wait(0.1):
                    return
        elif manner == "half":
            handler.wfile.write(body[:half])
        elif manner == "wrong":
            handler.wfile.write(body[:-1] + bytes([body[-1] ^ 1]))
        elif manner in ("paused", "stuck"):
            handler.wfile.write(body[:half])
            handler.wfile.flush()
            self.go.wait(20 if manner == "paused" else 5)
            handler.wfile.write(body[half:])
        else:
            handler.wfile.write(body)
