"""Whether a server can be reached, asked before a client that would try for minutes."""

from __future__ import annotations

import socket
from contextlib import suppress

_ANSWER_S = 5.0


def answering(servers: str) -> bool:
    """Whether one of these, HOST:PORT with commas between, takes a connection."""
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        with suppress(OSError, ValueError):
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
            return True
    return False
