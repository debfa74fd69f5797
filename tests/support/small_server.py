"""A server that answers as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ELSEWHERE = "/elsewhere"
# Status and content: bytes, or what becomes JSON; or what answers by itself.
Answer = tuple[int, Any] | Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer_to: Callable[[str], Answer]) -> Iterator[str]:
    """The address of a server, for as long as the context lasts.

    ``answer_to`` gets the path that was asked for, without parameters. An answer of status 302
    leads to ``ELSEWHERE``.
    """

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = answer_to(self.path.partition("?")[0])
            if callable(answer):
                answer(self)
                return
            status, content = answer
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", ELSEWHERE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
