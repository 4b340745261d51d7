"""A network with injected faults: links, fault and duration are chosen by name.

Each party has a view of its own, so that links have named ends. A fault lasts from its creation
until its end, for links that are open and for later ones:

    chaos = ChaosNetwork(MemoryNetwork(), Random(1))
    async with open_node(config, chaos.end("node"), tracer) as node: ...
    with chaos.toxic(Latency(0.05, jitter=0.01), between=("ra", "node")): ...
    with chaos.partition({"ra"}, {"node", "rb"}): ...
    chaos.reset("ra", "node")
"""

import math
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from difflib import get_close_matches
from random import Random
from types import TracebackType
from typing import Final, NoReturn, Self, TypeAlias

import trio
from typing_extensions import override

from actors.testing.chaos.toxics import (
    NO_FAULTS,
    LinkFaults,
    LinkParties,
    Passing,
    Road,
    Timeout,
    Toxic,
    expose,
)
from specs.limits.protocol import DIAL_TIMEOUT
from transports.errors import CloseReason, DialError, LinkBrokenError, LinkClosedError
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    ChannelEnd,
    ChannelTerms,
    Gate,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
    Turn,
)

_IN_FLIGHT: Final = 64
"""Frames that are read before they arrive; more frames wait in the link below."""

_RESET: Final = "the connection was reset"


class ChaosLink(Link):
    """Link that applies the injected faults to received frames; otherwise like the link below."""

    __slots__ = (
        "_carried",
        "_coming",
        "_end",
        "_is_closed",
        "_is_cut",
        "_link",
        "_own",
        "_peer",
        "_receiving",
        "_send",
        "_sending",
        "_troubles",
        "_wait",
        "parties",
    )

    def __init__(
        self,
        link: Link,
        troubles: "Troubles",
        parties: LinkParties,
        ends: tuple[str | None, str | None],
    ) -> None:
        self._link: Final = link
        super().__init__(link.kind, link.name, link.upgrade)
        self.guest = link.guest
        self.parties: Final = parties
        self._own, self._peer = ends
        self._troubles: Final = troubles
        self._coming: Final = deque[tuple[float, bytes]]()
        self._carried = 0
        self._end: tuple[float, LinkBrokenError] | None = None
        self._is_cut = False
        self._is_closed = False
        self._send = trio.CancelScope()
        self._wait = trio.CancelScope()
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")

    @property  # type: ignore[explicit-override] # mypy does not see it on properties over fields
    def heard_at(self) -> float:
        """Trio time of the last sign of life, as the link below knows it."""
        return self._link.heard_at

    @heard_at.setter
    def heard_at(self, when: float) -> None:
        self._link.heard_at = when

    @property
    @override
    def host(self) -> str:
        return self._link.host

    @property
    @override
    def peer_certificate(self) -> bytes | None:
        return self._link.peer_certificate

    @override
    def unread(self) -> int:
        return self._link.unread()

    # -- calls of the network ----------------------------------------------

    def cut(self) -> None:
        """Break the link abruptly: its user gets `LinkBrokenError`; frames in flight are lost."""
        self._is_cut = True
        self._coming.clear()
        self._troubles.forget(self)
        self._send.cancel()
        self.wake()

    def wake(self) -> None:
        """Apply the current faults again, after they have changed."""
        self._wait.cancel()

    # -- the contract -------------------------------------------------------------

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            if not self._is_cut:
                with trio.CancelScope() as self._send:
                    await self._pass_on(frames)
                if not self._send.cancelled_caught:
                    return
            await self._break()

    async def _pass_on(self, frames: Sequence[bytes]) -> None:
        try:
            await self._link.send_many(frames)
        except LinkClosedError as exc:
            raise self._user_error(exc) from exc

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            while not (self._is_cut or self._is_closed):
                faults, now = self._faults(), trio.current_time()
                if faults.reset_at <= now:
                    self._troubles.break_link(self.parties)
                elif not faults.is_held and self._due() <= now:
                    return self._next_frame()
                else:
                    await self._next(faults)
            if self._is_cut:
                await self._break()
            raise LinkClosedError(self.name)

    def _faults(self) -> LinkFaults:
        return self._troubles.faults(self.parties, self._own)

    def _due(self) -> float:
        """Return when the next frame arrives, or else the end of the link."""
        if self._coming:
            return self._coming[0][0]
        return math.inf if self._end is None else self._end[0]

    def _next_frame(self) -> bytes:
        if not self._coming and self._end is not None:
            raise self._end[1]
        return self._coming.popleft()[1]

    async def _next(self, faults: LinkFaults) -> None:
        """Wait until a frame comes or arrives, the link ends, or the faults change."""
        due = math.inf if faults.is_held else self._due()
        with trio.CancelScope(deadline=min(faults.reset_at, due)) as self._wait:
            if faults.is_held or self._end is not None or len(self._coming) >= _IN_FLIGHT:
                await trio.sleep_forever()
            await self._read()

    async def _read(self) -> None:
        try:
            frame = await self._link.receive()
        except LinkBrokenError as exc:
            self._end = (trio.current_time() + self._faults().linger, exc)
        except LinkClosedError as exc:
            raise self._user_error(exc) from exc
        else:
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        """Schedule the arrival of a frame by the toxics; a lost frame breaks the link."""
        now = trio.current_time()
        busy_until = self._coming[-1][0] if self._coming else now
        road = Road(busy_until, self._carried, self._troubles.random)
        passing = Passing(len(frame), now)
        for toxic in self._faults().toxics:
            passing = toxic.touch(passing, road)
        if not passing.copies:
            self._troubles.break_link(self.parties)
            return
        if passing.spoilt_at is not None:
            frame = frame[: passing.spoilt_at] + b"\0" + frame[passing.spoilt_at + 1 :]
        self._carried += passing.size
        self._coming.extend([(max(passing.due, busy_until), frame)] * passing.copies)

    def _user_error(self, error: LinkClosedError) -> LinkClosedError | LinkBrokenError:
        """Return the error for the user of a cut link: it was reset, not closed by this end."""
        return LinkBrokenError(self.name, _RESET) if self._is_cut else error

    async def _break(self) -> NoReturn:
        """Close the link below a cut link by force, and raise `LinkBrokenError`."""
        await trio.aclose_forcefully(self._link)
        raise LinkBrokenError(self.name, _RESET)

    @override
    def ping(self) -> None:
        """Ping, unless frames are held in one of the two directions."""
        peer_faults = self._troubles.faults(self.parties, self._peer)
        if not (self._is_cut or peer_faults.is_held or self._faults().is_held):
            self._link.ping()

    @override
    async def rest(self, seconds: float) -> None:
        await self._link.rest(seconds)

    @override
    async def say_goodbye(self, close_reason: CloseReason) -> bool:
        if self._is_cut:
            await self._break()
        try:
            return await self._link.say_goodbye(close_reason)
        except LinkClosedError as exc:
            raise self._user_error(exc) from exc

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        self._is_closed = True
        self._troubles.forget(self)
        self.wake()
        if self._is_cut:
            await trio.aclose_forcefully(self._link)
        else:
            await self._link.aclose(close_reason)


Direction: TypeAlias = tuple[str | None, str | None]
"""Direction of a link: sender and receiver; None: unknown."""


class Trouble:
    """Injected fault between some parties, until its end; leaving the context manager ends it.

    Attributes:
        toxic: The fault; None: a partition, in which nothing passes and nothing is lost.
        since: Trio time at which the fault began.
    """

    def __init__(
        self,
        toxic: Toxic | None,
        directions: frozenset[Direction],
        end: Callable[["Trouble"], None],
    ) -> None:
        self.toxic: Final = toxic
        self.directions: Final = directions
        self.since: Final = trio.current_time()
        self._end: Final = end

    def end(self) -> None:
        """End the fault; deliver the frames that a partition held up. Idempotent."""
        self._end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()


class Troubles:
    """All faults of one network, and the links that they affect."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._links: Final[dict[ChaosLink, None]] = {}
        self._now: Final[list[Trouble]] = []
        self._changed = trio.Event()

    @property
    def link_parties(self) -> tuple[LinkParties, ...]:
        """Ends of the links that are neither closed nor cut; each link once, in order."""
        return tuple(dict.fromkeys(link.parties for link in self._links))

    def adopt(self, link: ChaosLink) -> ChaosLink:
        """Expose a link to the faults."""
        self._links[link] = None
        return link

    def begin(self, toxic: Toxic | None, directions: frozenset[Direction]) -> Trouble:
        """Begin a fault now on the given directions; None: a partition."""
        trouble = Trouble(toxic, directions, self._end)
        self._now.append(trouble)
        self._wake()
        return trouble

    def _end(self, trouble: Trouble) -> None:
        if trouble in self._now:
            self._now.remove(trouble)
            if isinstance(trouble.toxic, Timeout):
                # The frames that it swallowed are lost, so the link must break.
                for parties in self.link_parties:
                    out = (parties.dialler, parties.listener)
                    if {out, out[::-1]} & trouble.directions:
                        self.break_link(parties)
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        for link in tuple(self._links):
            link.wake()

    async def wait_passable(self, party: str, peer: str | None) -> None:
        """Wait until frames pass in both directions; `other` is None for an unknown party.

        If cancelled, only the wait ends.
        """
        while self.on((party, peer)).is_held or self.on((peer, party)).is_held:
            await self._changed.wait()

    def on(self, direction: Direction, since: float = 0.0) -> LinkFaults:
        """Return the faults on a direction, for a link that was opened at a Trio time."""
        troubles = [trouble for trouble in self._now if direction in trouble.directions]
        if not troubles:
            return NO_FAULTS
        bad = [(each.toxic, max(each.since, since)) for each in troubles]
        toxics = [(toxic, begun) for toxic, begun in bad if toxic is not None]
        return LinkFaults(
            tuple(toxic for toxic, _ in toxics),
            len(toxics) < len(bad) or any(toxic.holds for toxic, _ in toxics),
            min((begun + toxic.patience for toxic, begun in toxics), default=NO_FAULTS.reset_at),
            max((toxic.linger for toxic, _ in toxics), default=NO_FAULTS.linger),
        )

    def faults(self, parties: LinkParties, receiver: str | None) -> LinkFaults:
        """Return the faults of a link on the direction to a receiving party."""
        outward = (parties.dialler, parties.listener)
        return self.on(outward if receiver == parties.listener else outward[::-1], parties.since)

    def break_link(self, parties: LinkParties) -> None:
        """Break a link, at both its ends."""
        for link in tuple(self._links):
            if link.parties is parties:
                link.cut()

    def forget(self, link: ChaosLink) -> None:
        """Stop affecting a link that is closed or cut."""
        self._links.pop(link, None)


class ChaosNetwork:
    """Another network, whose parties have names and whose links have faults.

    Without faults its links are those of the network below. The order in which links come to a
    listener shows the dialler of a link, so all diallers must use this network. The same seed of
    `random` gives the same faults.
    """

    def __init__(self, network: Network, random: Random) -> None:
        self._network: Final = network
        self._troubles: Final = Troubles(random)
        self._places: Final[dict[str, _Place]] = {}
        self._parties: Final[set[str]] = set()

    def end(self, name: str) -> Network:
        """Return the network of one party, which has this name from now on."""
        self._parties.add(name)
        return _End(name, self._network, self._troubles, self._places)

    @property
    def links(self) -> tuple[LinkParties, ...]:
        """Parties of the links that are neither closed nor cut; each link once, in order."""
        return self._troubles.link_parties

    def toxic(self, toxic: Toxic, between: tuple[str, str], towards: str | None = None) -> Trouble:
        """Begin a fault between two parties now; `with` or `end` ends it.

        Args:
            toxic: The fault.
            between: Names of the two parties.
            towards: The party whose received frames are affected; None: both directions.

        Raises:
            TypeError: `between` is no pair of names.
            ValueError: No party has such a name, or `towards` is none of the two.
        """
        given: object = between
        if not (isinstance(given, tuple) and [type(name) for name in given] == [str, str]):
            raise TypeError(f"between is a pair of names, such as ('ra', 'rb'), not {given!r}")
        self._check(*between)
        if towards not in {None, *between}:
            raise ValueError(f"towards is {towards!r}, but the link is between {between}")
        directions = (between, between[::-1])
        return self._troubles.begin(
            toxic,
            frozenset(direction for direction in directions if towards in {None, direction[1]}),
        )

    def partition(self, some: AbstractSet[str], others: AbstractSet[str]) -> Trouble:
        """Separate two groups of parties from now on; `with` or `end` ends the partition.

        Dials between them get no answer. If the partition ends before a link is given up, what was
        sent meanwhile arrives, as when a cable is plugged in again.

        Args:
            some: Names of the parties of one group.
            others: Names of the parties of the other group.

        Raises:
            ValueError: No party has such a name.
        """
        self._check(*some, *others)
        directions = {(each, other) for each in some for other in others}
        return self._troubles.begin(
            None, frozenset(directions | {direction[::-1] for direction in directions})
        )

    def reset(self, party: str, other: str | None, but: Collection[LinkParties] = ()) -> int:
        """Break the links between two parties, with all frames in flight; return their number.

        Args:
            party: Name of a party.
            other: Name of the other party; None: all parties that are not on this network.
            but: Links that stay, from `links`.

        Raises:
            ValueError: No party has such a name.
        """
        self._check(party, *([] if other is None else [other]))
        ends = {party, other}
        links = (each for each in self.links if each not in but)
        broken = [each for each in links if {each.dialler, each.listener} == ends]
        for parties in broken:
            self._troubles.break_link(parties)
        return len(broken)

    def _check(self, *names: str) -> None:
        """Refuse names that no party has: a fault between them would have no effect.

        Raises:
            ValueError: No party has one of the names; the error has the nearest known name.
        """
        for name in names:
            if name not in self._parties:
                near = get_close_matches(name, self._parties, 1)
                known = ", ".join(sorted(self._parties)) or "none yet"
                raise ValueError(
                    f"no party of this network is named {name!r}"
                    + (f"; did you mean {near[0]!r}?" if near else f"; there are: {known}")
                )


class _Place:
    """An address at which one party listens.

    Attributes:
        coming: Dials under direction, in the order in which their links will come.
        turn: Allows one dial at a time, so that this order is known.
    """

    def __init__(self, who: str) -> None:
        self.who: Final = who
        self.coming: Final = deque[LinkParties]()
        self.turn: Final = trio.Lock()


class _Listener(Listener):
    def __init__(self, listener: Listener, place: _Place, troubles: Troubles) -> None:
        super().__init__(listener.address)
        self._listener: Final = listener
        self._place: Final = place
        self._troubles: Final = troubles

    @override
    async def accept(self) -> Link:
        link, who = await self._listener.accept(), self._place.who
        coming = self._place.coming
        parties = coming.popleft() if coming else LinkParties(None, who, trio.current_time())
        ends = who, parties.dialler
        return self._troubles.adopt(ChaosLink(link, self._troubles, parties, ends))


class _End(Network):
    """The network as one party sees it: its links, and the faults on them."""

    def __init__(
        self, who: str, network: Network, troubles: Troubles, places: dict[str, _Place]
    ) -> None:
        self._who: Final = who
        self._network: Final = network
        self._troubles: Final = troubles
        self._places: Final = places

    @override
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        place = self._places.get(address) or self._places.get(_server(address))
        peer = None if place is None else place.who
        with trio.move_on_after(DIAL_TIMEOUT) as patience:
            await self._troubles.wait_passable(self._who, peer)
        if patience.cancelled_caught:
            raise DialError(address, f"no answer within {DIAL_TIMEOUT:g} s")
        parties = LinkParties(self._who, peer, trio.current_time())
        if place is None:
            link = await self._network.dial(kind, address, subprotocol, tls)
        else:
            link = await self._dial_in_turn(place, parties, (kind, address, subprotocol, tls))
        return self._troubles.adopt(ChaosLink(link, self._troubles, parties, (self._who, peer)))

    async def _dial_in_turn(
        self,
        place: _Place,
        parties: LinkParties,
        terms: tuple[Kind, str, str | None, ssl.SSLContext | None],
    ) -> Link:
        async with place.turn:
            place.coming.append(parties)
            link: Link | None = None
            try:
                link = await self._network.dial(*terms)
            finally:
                if link is None and parties in place.coming:
                    place.coming.remove(parties)
            return link

    @override
    def negotiate(self, terms: ChannelTerms) -> AbstractAsyncContextManager[ChannelEnd]:
        return expose(self._network.negotiate(terms), self._expose_link)

    def _expose_link(self, link: Link) -> Link:
        parties = LinkParties(self._who, None, trio.current_time())
        return self._troubles.adopt(ChaosLink(link, self._troubles, parties, (self._who, None)))

    @override
    @asynccontextmanager
    async def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, paths, gate) as listener:
            place = self._places[listener.address] = _Place(self._who)
            try:
                yield _Listener(listener, place, self._troubles)
            finally:
                del self._places[listener.address]


def _server(address: str) -> str:
    """Return the address of a listener from a URL: without path and query."""
    scheme, mark, rest = address.partition("://")
    return scheme + mark + rest.partition("/")[0].partition("?")[0] if mark else address
