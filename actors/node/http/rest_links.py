"""The links made of requests that a node has, and how they come to its front door."""

from hashlib import sha256
from itertools import count
from typing import Final, final
from weakref import WeakValueDictionary

import trio
from typing_extensions import override

from actors.node.http.rest_link import RestGoneError, RestLink
from actors.node.links.acceptor import REST
from specs.errors import ProtoflyError
from specs.limits.protocol import LINK_BACKLOG
from transports.errors import LinkClosedError
from transports.gate import Gate
from transports.link import Link, Listener

__all__ = ["RestLinks", "TurnedAwayError"]


@final
class TurnedAwayError(ProtoflyError):
    """Too many come, from one host or in all."""

    def __init__(self) -> None:
        super().__init__("too many come at once; try again later")


@final
class RestLinks(Listener):
    """Where the front door accepts them, and by the tokens of their sessions.

    A link lives as long as the connection that serves it; nothing here keeps it longer.

    Args:
        gate: Who may come in.
    """

    __slots__ = ("_arrivals", "_arrive", "_by_token", "_gate", "_numbers")

    def __init__(self, gate: Gate) -> None:
        super().__init__(REST)
        self._gate: Final = gate
        self._numbers: Final = count(1)
        self._arrive, self._arrivals = trio.open_memory_channel[RestLink](LINK_BACKLOG)
        self._by_token: Final[WeakValueDictionary[bytes, RestLink]] = WeakValueDictionary()

    @override
    async def accept(self) -> Link:
        try:
            return await self._arrivals.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
            raise LinkClosedError(self.address) from exc

    def close(self) -> None:
        """Let in nobody any more."""
        self._arrive.close()
        self._arrivals.close()

    def come(self, host: str) -> RestLink:
        """Let somebody in who has no session yet.

        Raises:
            TurnedAwayError: Not now.
        """
        guest = self._gate.knock(host)
        if guest is None:
            raise TurnedAwayError
        link = RestLink(f"rest-{next(self._numbers)}", guest)
        try:
            self._arrive.send_nowait(link)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            guest.settle()
            raise TurnedAwayError from exc
        return link

    def granted(self, link: RestLink, token: str) -> None:
        """Note by which token a link is found from now on."""
        self._by_token[_digest(token)] = link

    def known(self, token: str | None) -> RestLink | None:
        """Return the link that has the session of a token."""
        link = None if token is None else self._by_token.get(_digest(token))
        return None if link is None or link.farewell is not None else link

    def find(self, token: str | None) -> RestLink:
        """Return the link that has the session of a token.

        Raises:
            RestGoneError: None has.
        """
        link = self.known(token)
        if link is None:
            raise RestGoneError
        return link


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
