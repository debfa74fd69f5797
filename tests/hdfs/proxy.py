"""A server before the NameNode that loses requests, or their answers, as networks do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal["lose the request", "lose the answer", "be silent from then on"]
_SILENCE = "be silent from then on"


@dataclass
class Proxy:
    """``faults``: by the name of a method of the NameNode, what happens to its next requests.

    ``at``: what happens to the request of that number; ``requests`` counts them.
    """

    authority: str
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    at: dict[int, Fault] = field(default_factory=dict)
    requests: int = 0
    is_silent: bool = False

    def add(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let a fault happen to the next ``times`` requests of ``method``."""
        self.faults.setdefault(method, []).extend([fault] * times)

    def next_fault(self, request: bytes) -> Fault | None:
        """What happens to a request."""
        self.requests += 1
        if self.requests in self.at:
            return self.at.pop(self.requests)
        for method, faults in self.faults.items():
            if faults and method.encode() in request:
                return faults.pop(0)
        return None


@dataclass
class _Connection:
    """What its two threads tell each other.

    ``loses_answer``: the next answer is the one to lose; ``ended``: no more are handed on.
    """

    loses_answer: bool = False
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def proxy_before(authority: str) -> Iterator[Proxy]:
    """A proxy of the NameNode at ``authority``."""
    host, port = authority.split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(f"127.0.0.1:{listener.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client = listener.accept()[0]
                    server = socket.create_connection((host, int(port)))
                    connection = _Connection()
                    asking = (proxy, connection, client, server)
                    threading.Thread(target=_ask, args=asking, daemon=True).start()
                    answering = (connection, server, client)
                    threading.Thread(target=_answer, args=answering, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield proxy
        # Wakes the thread that accepts.
        listener.shutdown(socket.SHUT_RDWR)


def _ask(
    proxy: Proxy, connection: _Connection, client: socket.socket, server: socket.socket
) -> None:
    """Hand on requests, each of which comes in one piece."""
    with suppress(OSError), client, server:
        while request := client.recv(1 << 16):
            fault = proxy.next_fault(request)
            if fault == _SILENCE:
                # Nothing is read here: a test may end the silence in the same moment.
                proxy.is_silent = True
            if proxy.is_silent or fault == "lose the request":
                break
            connection.loses_answer = fault == "lose the answer"
            server.sendall(request)
            if connection.loses_answer:
                connection.ended.wait()
                break
        for each in (client, server):
            each.shutdown(socket.SHUT_RDWR)


def _answer(connection: _Connection, server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while (answer := server.recv(1 << 16)) and not connection.loses_answer:
            client.sendall(answer)
    connection.ended.set()
