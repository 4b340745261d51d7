"""Turn every failure of a command into one sentence and an exit status."""

import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final, TypeAlias

import orjson
import trio

from actors.cli.group import CommandError, ExitCode, advise_on, echo
from specs.errors import PlaceError, ProtoflyError
from specs.jsonvalue import one_line
from transports.urls import read_host_port

Meanings: TypeAlias = tuple[tuple[type[ProtoflyError], ExitCode, str], ...]
"""For each error the exit status, and advice; empty: the error has the advice."""


def match_meaning(error: ProtoflyError, meanings: Meanings) -> CommandError | None:
    """Return the sentence and the status for an error; None: the table has none.

    Args:
        error: The error.
        meanings: Sentence and status by type of error.
    """
    for kind, code, usual in meanings:
        if isinstance(error, kind):
            advice = _specific_advice(error) or usual
            return CommandError(f"{error}; {advice}" if advice else str(error), code)
    return None


def _specific_advice(error: ProtoflyError) -> str | None:
    """Return advice that fits the cause of an error better than that of its type, if any."""
    if isinstance(error, PlaceError) and _is_disk_full(error.__cause__):
        return "free space on its disk"
    return certificate_advice(str(error))


def _is_disk_full(cause: BaseException | None) -> bool:
    import sqlite3  # noqa: PLC0415 - as in `meanings`

    if isinstance(cause, sqlite3.Error):
        # An error that the module itself raises has no code.
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT}


def certificate_advice(why: str) -> str | None:
    """Return what helps against a server's certificate that has expired; None: it has not.

    Args:
        why: Reason for which a connection failed.
    """
    from transports.tls import NOT_ACCEPTED  # noqa: PLC0415 - as in `meanings`

    is_expired = NOT_ACCEPTED in why and "has expired" in why
    return "renew the certificate of the node" if is_expired else None


@cache
def meanings() -> Meanings:
    """Return exit status and advice for errors of the layers below."""
    # Files of keys, stores and policies are slow to import, and only needed to explain an error.
    from actors.catalogue.errors import TrustFileError  # noqa: PLC0415
    from actors.http.config import HttpPlaceError, OpenMetricsError  # noqa: PLC0415
    from actors.keys.key_file import KeyFileError  # noqa: PLC0415
    from actors.kit.errors import TraceDirectoryError  # noqa: PLC0415
    from actors.node.errors import RegistryFileError, StateFileError  # noqa: PLC0415
    from actors.node.login.provider import UsedTokensError  # noqa: PLC0415
    from actors.policy.store import PolicyFileError  # noqa: PLC0415
    from actors.runtime.store.file import StoreFileError  # noqa: PLC0415
    from transports.errors import (  # noqa: PLC0415
        CertificateError,
        DialError,
        ListenError,
        LocalServerError,
    )

    return (
        (
            CertificateError,
            ExitCode.CANNOT_CONNECT,
            "name its authority with --ca, or correct --node",
        ),
        (DialError, ExitCode.CANNOT_CONNECT, "start a node there, or name another with --node"),
        (
            ListenError,
            ExitCode.FAILED,
            "choose another place with --listen; port 0 picks a free one",
        ),
        (LocalServerError, ExitCode.CONFIGURATION, ""),
        (TraceDirectoryError, ExitCode.CONFIGURATION, ""),
        (RegistryFileError, ExitCode.CONFIGURATION, "name another with --registry"),
        (StateFileError, ExitCode.CONFIGURATION, "name another with --state"),
        (StoreFileError, ExitCode.CONFIGURATION, "name another with --store"),
        (KeyFileError, ExitCode.CONFIGURATION, "name another with --identity"),
        (UsedTokensError, ExitCode.CONFIGURATION, "name another with --used-tokens"),
        (PolicyFileError, ExitCode.CONFIGURATION, ""),
        (TrustFileError, ExitCode.CONFIGURATION, "correct it"),
        (
            HttpPlaceError,
            ExitCode.FAILED,
            "choose another place with --http; port 0 picks a free one",
        ),
        (
            OpenMetricsError,
            ExitCode.CONFIGURATION,
            "name a token with --http-token-file, or listen on 127.0.0.1",
        ),
    )


_CHECKS_PORTS: Final[ContextVar[bool | None]] = ContextVar("checks_ports", default=None)
"""Whether a dry run checks addresses to listen at; None: no dry run."""


@contextmanager
def dry_run(*, ports: bool) -> Iterator[None]:
    """Let `run` only check the needs of its work, while the context is open.

    Args:
        ports: Whether addresses to listen at must be free.
    """
    token = _CHECKS_PORTS.set(ports)
    try:
        yield
    finally:
        _CHECKS_PORTS.reset(token)


def run(
    work: Callable[[], Awaitable[ExitCode]],
    *,
    check: Callable[[], None] | None = None,
    listen: Mapping[str, Sequence[str]] | None = None,
) -> ExitCode:
    """Run a command's work under Trio; its known failures become `CommandError`.

    Args:
        work: The command's work.
        check: Checks the files that are opened at the start, and programs, without changes. Raises
            the errors that the start would raise. A dry run does nothing else.
        listen: Addresses that the work listens at, by the options that name the first of them.

    Raises:
        CommandError: The work failed with a known error.
    """
    checks_ports = _CHECKS_PORTS.get()
    try:
        if checks_ports is None:
            return trio.run(work)
        if check is not None:
            check()
        if checks_ports:
            _check_ports(listen or {})
    except (ProtoflyError, BaseExceptionGroup) as error:
        known = first_known(error)
        if known is None:
            raise
        raise explain(known) from error
    return ExitCode.OK


def _check_ports(places: Mapping[str, Sequence[str]]) -> None:
    for option, place in ((option, place) for option, each in places.items() for place in each):
        host, port = read_host_port(place)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        advice = f"choose another place with {option}"
        with advise_on(OSError, what=f"cannot listen at {place}", advice=advice):
            socket.create_server((host, port), family=family).close()


def explain(error: ProtoflyError | KeyboardInterrupt) -> CommandError:
    """Turn an error into a sentence for the person at the terminal."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return CommandError("interrupted", ExitCode.INTERRUPTED)
    return match_meaning(error, meanings()) or CommandError(one_line(str(error)), ExitCode.FAILED)


def first_known(error: BaseException) -> ProtoflyError | KeyboardInterrupt | None:
    """Return the error that a person can act on, from an error, its groups and its causes.

    The errors of the layers below (`meanings`) come before those that only pass them on.
    """
    known = [each for each in _flat(error) if isinstance(each, ProtoflyError | KeyboardInterrupt)]
    first = (CommandError, KeyboardInterrupt, *(kind for kind, _, _ in meanings()))
    return next((each for each in known if isinstance(each, first)), next(iter(known), None))


def _flat(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _flat(each)
        return
    yield error
    if error.__cause__ is not None:
        yield from _flat(error.__cause__)


# The output of commands on stdout: one JSON object per line.


class Table:
    """A table that is printed row by row; columns widen as needed."""

    def __init__(self, *head: str) -> None:
        self._widths = [0] * len(head)
        self._head: tuple[str, ...] | None = head

    def print(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print rows; the head precedes the first ones."""
        if self._head is not None and rows:
            rows, self._head = [self._head, *rows], None
        for cells in rows:
            self._widths = [max(pair) for pair in zip(self._widths, map(len, cells), strict=True)]
        for cells in rows:
            padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
            echo("  ".join(padded).rstrip())


def say(schema: str, **fields: object) -> None:
    """Print one JSON object of a schema, at once."""
    echo(orjson.dumps({"schema": f"protofly.{schema}/1", **fields}).decode())


def say_ready(role: str, domain: str, **fields: object) -> None:
    """Print the ready line: the first line of a process that serves.

    Args:
        role: `node` or `runtime`.
        domain: Domain of the process.
        **fields: Further fields of the line.
    """
    say("ready", role=role, domain=domain, **fields, pid=os.getpid())
