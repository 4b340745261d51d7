"""Ports for programs that cannot be told to take a free one."""

import errno
import random
import socket

_CANDIDATES = range(10_000, 30_000)
"""Below those that systems give to connections: none of these takes it before the program does."""


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port of an address that nobody has, neither for TCP nor for UDP."""
    while True:
        port = random.choice(_CANDIDATES)  # noqa: S311 - two tests at once seldom have the same
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as probe:
                    probe.bind((host, port))
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise
        else:
            return port
