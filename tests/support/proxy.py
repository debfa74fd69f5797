"""An HTTP proxy before a server that loses, doubles and delays requests as it is told."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

# "late": the request arrives when its sender has long been told that it is lost.
Fault = Literal[
    "lose the request",
    "lose the answer",
    "cut the answer",
    "twice",
    "late",
    "409",
    "429",
    "500",
    "501",
    "503",
    "ignore conditions",
]
LATE_SECONDS = 1.5


@dataclass(slots=True)
class Plan:
    """Faults for requests of one method whose path holds ``fragment``, the next ``times`` of them.

    ``after`` so many that pass. ``seen`` counts these requests, the faulty ones among them.
    """

    method: str
    fragment: str
    fault: Fault
    times: int = 1
    after: int = 0
    seen: int = 0


@dataclass
class Proxy:
    """A running proxy; it forwards what no plan is for."""

    endpoint: str
    plans: list[Plan] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, method: str, fragment: str, fault: Fault, times: int = 1) -> Plan:
        """Let the next requests of this kind fail."""
        plan = Plan(method, fragment, fault, times)
        with self.lock:
            self.plans.append(plan)
        return plan

    def fault(self, method: str, path: str) -> Fault | None:
        """What happens to a request."""
        with self.lock:
            for plan in self.plans:
                if plan.method == method and plan.fragment in path:
                    plan.seen += 1
                    if plan.after < plan.seen <= plan.after + plan.times:
                        return plan.fault
        return None


@contextmanager
def proxy_before(endpoint: str) -> Iterator[Proxy]:
    """A proxy on loopback for the server at ``endpoint``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}")
    server.proxy, server.upstream = proxy, urlsplit(endpoint).netloc  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def _handle(self) -> None:
        body = self._body()
        # Amazon's services other than S3 name what they are asked for in a header.
        asked = self.path + self.headers.get("X-Amz-Target", "")
        fault = self.server.proxy.fault(self.command, asked)
        if fault == "lose the request":
            self._hang_up()
        elif fault is not None and fault.isdecimal():
            self._answer(int(fault), [], b"")
        elif fault == "late":
            self._hang_up()
            time.sleep(LATE_SECONDS)
            self._forwarded(dict(self.headers.items()), body)
        else:
            headers = {
                name: value
                for name, value in self.headers.items()
                if not (fault == "ignore conditions" and name.lower() == "if-none-match")
            }
            if fault == "twice":
                self._forwarded(headers, body)
            status, answered, content = self._forwarded(headers, body)
            if fault == "lose the answer":
                self._hang_up()
            elif fault == "cut the answer":
                self._answer(status, answered, content[:20])
            else:
                self._answer(status, answered, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            pass  # the base class has answered it
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunks()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _forwarded(
        self, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        dropped = ("transfer-encoding", "expect", "connection", "content-length")
        kept = {name: value for name, value in headers.items() if name.lower() not in dropped}
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        try:
            # The host stays as it was signed.
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in kept.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length")
        is_head = self.command == "HEAD"
        self.send_header("Content-Length", length if is_head and length else str(len(content)))
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args
