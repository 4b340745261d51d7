"""The gate of a listener: admission of connections before their handshake."""

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, final

import trio
from typing_extensions import override

from specs.limits.protocol import ACCEPT_BATCH, HANDSHAKE_TIMEOUT
from specs.reply_code import TurnedAway


class Guest:
    """A connection whose peer is not authenticated yet.

    The acceptor of its link calls `settle` when the peer is known; until then its deadline holds,
    and it may be closed in favour of others.

    Attributes:
        host: Host of the peer, as the gate was told; empty: it is not of interest.
        until: Trio time by which the peer must be known.
    """

    __slots__ = ("_is_expelled", "_leave", "host", "until")

    def __init__(self, host: str = "") -> None:
        self.host: Final = host
        self.until: Final = trio.current_time() + HANDSHAKE_TIMEOUT
        self._is_expelled = False
        self._leave: Callable[[], None] | None = None

    def staying(self) -> trio.CancelScope:
        """Return the scope to serve it in: cancelled when the connection is to be closed."""
        scope = trio.CancelScope()
        self.watch(scope.cancel)
        return scope

    @final
    def watch(self, leave: Callable[[], None]) -> None:
        """Call `leave` when the connection is to be closed; at once if it already is.

        It replaces the earlier callback: one part of the process serves the connection at a time.
        """
        self._leave = leave
        if self._is_expelled:
            leave()

    @property
    def is_expelled(self) -> bool:
        """True if the connection is to be closed in favour of others."""
        return self._is_expelled

    @final
    def expel(self) -> None:
        """Close the connection in favour of others."""
        self._is_expelled = True
        if self._leave is not None:
            self._leave()

    def settle(self) -> None:
        """Note that the peer is known, or gone. Idempotent."""


class Gate(ABC):
    """Admits connections at one listener.

    Attributes:
        origins: Web origins whose pages may connect; None: all.
        tls: What connections are encrypted by; None: they are not.
    """

    origins: frozenset[str] | None = None
    tls: ssl.SSLContext | None = None

    @abstractmethod
    def knock(self, host: str) -> Guest | None:
        """Admit a connection; None: its host connects too often.

        Args:
            host: Host of the peer, as the operating system says; headers are not trusted.
        """

    def room(self) -> int:
        """Return how many connections may come now; the system keeps the others meanwhile."""
        return ACCEPT_BATCH

    @abstractmethod
    def turned_away(self, why: TurnedAway) -> None:
        """Count a connection that did not come in."""


@final
class Everybody(Gate):
    """Admits every connection: for listeners whose diallers are authenticated otherwise."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls

    @override
    def knock(self, host: str) -> Guest | None:
        return Guest()

    @override
    def turned_away(self, why: TurnedAway) -> None:
        """No connection counts here."""


EVERYBODY: Final[Gate] = Everybody()
"""Admits every connection, without TLS."""
