"""Free ports for the servers that tests start.

They are below those that systems give to outgoing connections (32768 to 60999 on Linux), which
could take a port between its choice and the start of its server.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_PORTS = range(20_000, 32_768)


def free_port() -> int:
    """A port that nobody listens on."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """So many different ones."""
    with ExitStack() as held:
        return [held.enter_context(_listening()).getsockname()[1] for _ in range(count)]


def _listening() -> socket.socket:
    # Not the module's own generator: several processes may have seeded it alike.
    generator = random.SystemRandom()
    while True:
        try:
            return socket.create_server(("127.0.0.1", generator.choice(_PORTS)))
        except OSError:  # taken
            continue
