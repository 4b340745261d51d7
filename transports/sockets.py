"""Open TCP and Unix sockets, listen and accept; errors of the system become errors of links."""

import errno
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import trio

from specs.limits.protocol import ACCEPT_PAUSE
from transports.errors import DialError, LinkClosedError, ListenError
from transports.urls import join_host_port, read_host_port

# Background tasks that end with the block of code that has started them.


@asynccontextmanager
async def open_background() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    One error, of the block or of a task, is raised as itself; several are raised as a group.

    If cancelled, the tasks are cancelled, too, and have ended when this returns.

    Raises:
        Exception: The only error of the block and the tasks.
        ExceptionGroup: Several errors.
    """
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        error = group.exceptions[0]
        raise error from error.__cause__


_BACKLOG: Final = 4096
"""Connections that the kernel keeps until they are accepted: a mass reconnect fits (RELIABILITY
R3). Linux keeps at most `net.core.somaxconn`, which is as much by default.
"""

_OWNER_ONLY: Final = 0o600
"""Mode of a Unix socket: no other user of this machine may connect."""


async def dial_tcp(address: str) -> trio.SocketStream:
    """Connect to `host:port`.

    If cancelled, nothing is left open.

    Raises:
        DialError: `address` is no address, or no listener is there.
    """
    try:
        host, port = read_host_port(address)
        return await trio.open_tcp_stream(host, port)
    except ValueError as exc:
        raise DialError(address, str(exc)) from exc
    except OSError as exc:
        raise DialError(address, _os_reason(exc)) from exc


async def dial_unix(path: str) -> trio.SocketStream:
    """Connect to a Unix socket.

    If cancelled, nothing is left open.

    Raises:
        DialError: No listener is there.
    """
    try:
        return await trio.open_unix_socket(path)
    except OSError as exc:
        raise DialError(path, _os_reason(exc)) from exc


async def bind_tcp(where: str) -> tuple[trio.SocketListener, str]:
    """Listen on `host:port`; return the listener and its numeric address.

    If the host is a name with several addresses, only the first one is used.

    If cancelled while a name is resolved, nothing is bound.

    Raises:
        ListenError: The address is in use, not allowed, or no address.
    """
    try:
        host, port = read_host_port(where)
        first, *rest = await trio.open_tcp_listeners(port, host=host, backlog=_BACKLOG)
    except ValueError as exc:
        raise ListenError(where, str(exc)) from exc
    except OSError as exc:
        raise ListenError(where, _os_reason(exc)) from exc
    for other in rest:
        await other.aclose()
    name = first.socket.getsockname()
    return first, join_host_port(str(name[0]), int(name[1]))


@asynccontextmanager
async def reserve_tcp(where: str) -> AsyncIterator[str]:
    """Reserve `host:port` for processes of this user that listen there together (`bind_shared`).

    The reservation itself does not listen; the port stays reserved while the context is open.

    Args:
        where: The address; of a name its first address; port 0 picks a free port.

    Yields:
        The address as a number.

    If cancelled, nothing is reserved.

    Raises:
        ListenError: The address is in use, also by others that would share it, not allowed, or no
            address.
    """
    listener, address = await bind_tcp(where)
    await listener.aclose()
    with _shared_socket(address):
        yield address


def bind_shared(address: str) -> trio.SocketListener:
    """Listen at an address that `reserve_tcp` has reserved, together with other processes.

    The system distributes connections among the processes.

    Args:
        address: The address as a number.

    Raises:
        ListenError: The address is in use by others, or not allowed.
    """
    bound = _shared_socket(address)
    bound.listen(_BACKLOG)
    bound.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return trio.SocketListener(trio.socket.from_stdlib_socket(bound))


def _shared_socket(address: str) -> socket.socket:
    host, port = read_host_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind((host, port))
    except OSError as exc:
        bound.close()
        raise ListenError(address, _os_reason(exc)) from exc
    return bound


@contextmanager
def bind_unix(path: str) -> Iterator[trio.SocketListener]:
    """Listen on a Unix socket that only its owner may use while the context is open.

    A socket that a dead process left there is replaced. When the context is left, the socket is
    removed.

    Raises:
        ListenError: Another process listens there, or no socket can be made there.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        os.fchmod(bound.fileno(), _OWNER_ONLY)  # Linux gives the file this mode from the start
        bound.bind(path)
        Path(path).chmod(_OWNER_ONLY)
        bound.listen(_BACKLOG)
        bound.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as exc:
        bound.close()
        raise ListenError(path, _os_reason(exc)) from exc
    mark = _inode(path)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
    try:
        yield listener
    finally:
        listener.socket.close()
        if mark is not None and _inode(path) == mark:
            with suppress(OSError):
                Path(path).unlink()


def _remove_stale(path: str) -> None:
    """Remove a socket without a listener; leave any other file alone."""
    if not Path(path).exists() or not stat.S_ISSOCK(Path(path).stat().st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the standard library's signature
        if probe.connect_ex(path) == errno.ECONNREFUSED:
            Path(path).unlink()


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


async def next_stream(listener: trio.SocketListener) -> trio.SocketStream:
    """Accept one connection; if the system is out of resources, wait and try again.

    If cancelled, no connection is lost.

    Raises:
        LinkClosedError: The listener was closed.
    """
    while True:
        try:
            return await listener.accept()
        except trio.ClosedResourceError as exc:
            raise LinkClosedError("listener") from exc
        except OSError:  # out of descriptors or memory, or the peer has left already
            await trio.sleep(ACCEPT_PAUSE)


async def next_streams(listener: trio.SocketListener, most: int) -> list[trio.SocketStream]:
    """Wait for one connection, and accept it with all others that are waiting, up to a maximum.

    Accepting one connection at a time would be too slow if many peers reconnect: the queue of the
    system would overflow, and peers would retry only after a second.

    If cancelled, no connection is lost.

    Raises:
        LinkClosedError: The listener was closed.
    """
    return [await next_stream(listener), *_accept_waiting(listener, most - 1)]


def _accept_waiting(listener: trio.SocketListener, most: int) -> list[trio.SocketStream]:
    streams: list[trio.SocketStream] = []
    if listener.socket.fileno() < 0:
        return streams
    queue = socket.socket(fileno=listener.socket.fileno())  # lent while no task waits
    try:
        while len(streams) < most:
            accepted, _ = queue.accept()
            streams.append(trio.SocketStream(trio.socket.from_stdlib_socket(accepted)))
    except OSError:  # no further connection; a lack of descriptors is met by the next one
        return streams
    finally:
        queue.detach()
    return streams


def _os_reason(error: OSError) -> str:
    """Return the reason of an error as half a sentence, without the address."""
    cause = error.__cause__  # Trio's own error has the address; its cause stands here
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    os_error = cause if isinstance(cause, OSError) else error
    if os_error.errno is not None and os_error.errno > 0:
        return os.strerror(os_error.errno).lower()
    return (os_error.strerror or str(os_error)).lower()  # a name that cannot be looked up
