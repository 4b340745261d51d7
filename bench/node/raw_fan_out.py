"""Writes the same bytes to many sockets, and nothing else: what a fan-out costs at the least.

A process of its own, as the node is. Its first connection commands it: a line with
the bytes, in hexadecimal digits, and then an `x` for each time that all others get them.
"""

import socket
import sys


def main() -> None:
    """Serve so many connections, until the first one is closed."""
    count = int(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0), backlog=count + 1) as listener:
        print(listener.getsockname()[1], flush=True)
        commander, *others = (listener.accept()[0] for _ in range(count + 1))
    for other in others:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with commander.makefile("rb") as commands:
        data = bytes.fromhex(commands.readline().decode())
        while commands.read(1):
            for other in others:
                other.sendall(data)


if __name__ == "__main__":
    main()
