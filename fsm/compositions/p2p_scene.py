"""Who takes part in a P2P composition: runtimes, ends of links, and how they are named.

A runtime `a` has a registry with one entry for the other runtime, a requester stub per
attempt (`a req 1`, ...) and one handler stub with an end per invitation (`a hnd 1`, ...).
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum, unique
from typing import Final, final

import attrs

from fsm.product.bounds import Bounds
from fsm.product.composition import Channel, Haste, Medium, Part, Patience, Variable
from fsm.table import Table

__all__ = [
    "DIALS",
    "NO",
    "NONE",
    "YES",
    "Dial",
    "End",
    "Role",
    "Scene",
    "has_candidates",
    "negotiation_of",
    "offering",
]

NO: Final = "no"
YES: Final = "yes"
NONE: Final = "none"
_BOTH: Final = (NO, YES)
_SAYS: Final = ("pending", "live", "disconnected", "negotiated anew")
_RUNTIMES: Final = {"a": "hyperty-runtime://a.ex/ra", "b": "hyperty-runtime://b.ex/rb"}


@unique
class Role(StrEnum):
    """Which end of a link."""

    REQUESTER = "req"
    HANDLER = "hnd"


@unique
class Dial(StrEnum):
    """How far an end is with dialling the peer's candidates: they are tried as one.

    Attributes:
        BLANK: None is known.
        FRESH: They are known and may be dialled.
        DIALLING: The dial is under way.
        AGAIN: The same; and when it fails, they may be dialled again.
        OPENING: It succeeded, which this end will take note of presently.
        TRIED: They were dialled in this round.
    """

    BLANK = "blank"
    FRESH = "fresh"
    DIALLING = "dialling"
    AGAIN = "again"
    OPENING = "opening"
    TRIED = "tried"


DIALS: Final = tuple(Dial)


def offering(candidates: str, negotiation: int) -> str:
    """The value of an object: whether there are candidates, and of which negotiation."""
    return candidates if negotiation == 1 else f"{candidates}-{negotiation}"


def has_candidates(offers: str) -> bool:
    """Whether an object of that value has candidates."""
    return offers.startswith(YES)


def negotiation_of(offers: str) -> int:
    """The negotiation that an object of that value is of: 1, 2, ..."""
    _, _, number = offers.partition("-")
    return int(number or "1")


@final
@attrs.frozen(slots=True)
class End:
    """One end of one link.

    Attributes:
        own: Its runtime.
        other: The other runtime.
        number: Which of the runtime's requesters, or of its handler's ends: 1, 2, ...
    """

    role: Role
    own: str
    other: str
    number: int

    @property
    def name(self) -> str:
        """As parts and messages call it."""
        return f"{self.own} {self.role} {self.number}"

    @property
    def is_requester(self) -> bool:
        """Whether it is the end that asked for the link."""
        return self.role is Role.REQUESTER

    @property
    def control(self) -> str:
        """The part of the handler's controller."""
        return f"{self.own} ctl {self.number}"

    def var(self, name: str) -> str:
        """The name of one of its variables."""
        return f"{self.name} {name}"

    @property
    def up(self) -> str:
        """The channel from its stub to the registry."""
        return f"{self.own} {self.role} to registry"

    @property
    def down(self) -> str:
        """The channel from the registry to its stub."""
        return f"{self.own} registry to {self.role}"

    @property
    def out(self) -> str:
        """The channel to the other runtime, through message nodes."""
        return f"{self.own} to {self.other}"


@final
@attrs.frozen(slots=True, kw_only=True)
class Scene:
    """What a P2P composition has.

    Attributes:
        tables: Where the parts' machines are taken from.
        asks: How often each runtime may ask for the other.
        bounds: What may go wrong on the way.
        links: How many transport links may be known to somebody at a time.
        tries: How often a registry asks for a lost link, before it gives up.
        negotiations: How many offers a requester may make, one after the other.
        is_brief: Listeners stand at once, those for links and those of the bus.
        patience: Whether every message is faster than every timer.
        haste: Whether what stub and registry tell each other is faster than any network.
    """

    tables: Mapping[str, Table]
    asks: Mapping[str, int]
    bounds: Bounds
    links: int
    tries: int
    negotiations: int = 1
    is_brief: bool = False
    patience: Patience = Patience.NONE
    haste: Haste = Haste.NONE

    @property
    def runtimes(self) -> tuple[str, str]:
        """Both; the first is the smaller address."""
        return "a", "b"

    def other(self, runtime: str) -> str:
        """The other runtime."""
        return "b" if runtime == "a" else "a"

    def address(self, runtime: str) -> str:
        """The address of a runtime."""
        return _RUNTIMES[runtime]

    def requesters(self, runtime: str) -> tuple[End, ...]:
        """The requesters that a runtime may have, one after the other."""
        return self._ends(Role.REQUESTER, runtime, self.asks[runtime])

    def handlers(self, runtime: str) -> tuple[End, ...]:
        """The ends that a handler may have, each for one invitation that comes."""
        asked = self.asks[self.other(runtime)]
        return self._ends(Role.HANDLER, runtime, asked + (self.bounds.duplicates if asked else 0))

    def _ends(self, role: Role, runtime: str, count: int) -> tuple[End, ...]:
        return tuple(End(role, runtime, self.other(runtime), n + 1) for n in range(count))

    def ends(self, runtime: str) -> tuple[End, ...]:
        """All ends of a runtime."""
        return self.requesters(runtime) + self.handlers(runtime)

    def all_ends(self) -> tuple[End, ...]:
        """All ends of both."""
        return self.ends("a") + self.ends("b")

    def peers(self, end: End) -> tuple[End, ...]:
        """The ends of the other runtime that may be at the other side of its link."""
        return self.handlers(end.other) if end.is_requester else self.requesters(end.other)

    @property
    def offers(self) -> tuple[str, ...]:
        """The values of an object, but for its plea."""
        numbers = range(1, self.negotiations + 1)
        return tuple(offering(candidates, n) for n in numbers for candidates in _BOTH)

    def offers_of(self, *negotiations: int) -> str:
        """Those of some negotiations, as a condition."""
        return "|".join(offers for offers in self.offers if negotiation_of(offers) in negotiations)

    @property
    def pleas(self) -> tuple[str, ...]:
        """The states of an object's status: no plea, then so many different ones in turn.

        An end sees whether a plea is a new one; that is so unless all the others between
        were lost, for which there are more of them than losses.
        """
        return tuple(str(count) for count in range(self.bounds.losses + 3))

    def next_plea(self, plea: str) -> str:
        """The one after a plea."""
        return "1" if plea == self.pleas[-1] else str(int(plea) + 1)

    @property
    def link_numbers(self) -> tuple[str, ...]:
        """The numbers of transport links."""
        return tuple(str(count + 1) for count in range(self.links))

    # --- what all that makes --------------------------------------------------------------

    def parts(self) -> Iterator[Part]:
        """The entities."""
        for own in self.runtimes:
            here, there = self.address(own), self.address(self.other(own))
            yield Part(f"{own} entry", self.tables["p2p_entry"], own, f"{here}|{there}")
            for end in self.ends(own):
                stub = _stub(here, end)
                role = "requester" if end.is_requester else "handler"
                key = f"{here}|{there}|{role}|{stub}"
                yield Part(end.name, self.tables["p2p_connection"], own, key)
                if not end.is_requester:
                    yield Part(end.control, self.tables["handler_controller"], own, stub)

    def variables(self) -> Iterator[Variable]:
        """What the cores keep besides."""
        for own in self.runtimes:
            names = self._names(self.ends(own))
            yield Variable(f"{own} entry of", (NONE, *names))
            yield Variable(f"{own} entry says", _SAYS)
            yield Variable(f"{own} entry beside", (NONE, *names))
            yield Variable(f"{own} holds the row", (NONE, *self._names(self.handlers(own))))
            yield Variable(f"{own} tries", tuple(map(str, range(self.tries + 1))))
            yield Variable(f"{own} listens", _BOTH)
            yield Variable(f"{own} is gone", _BOTH)
        for end in self.all_ends():
            yield from self._variables(end)
        for number in self.link_numbers:
            for own in self.runtimes:
                yield Variable(f"link {number} {own}", ("idle", "up", "told", "deaf"))

    @staticmethod
    def _names(ends: Iterable[End]) -> tuple[str, ...]:
        return tuple(end.name for end in ends)

    def _variables(self, end: End) -> Iterator[Variable]:
        peers = tuple(str(peer.number) for peer in self.peers(end))
        yield Variable(end.var("over"), (YES, NO))
        yield Variable(end.var("dial"), DIALS)
        yield Variable(end.var("stale dial"), _BOTH)
        yield Variable(end.var("plea"), self.pleas)
        yield Variable(end.var("saw plea"), self.pleas)
        yield Variable(end.var("offers"), self.offers)
        yield Variable(end.var("watched by"), (NONE, *peers))
        yield Variable(end.var("link"), (NONE, *self.link_numbers))
        yield Variable(end.var("peer"), (NONE, *peers))
        if end.is_requester:
            yield Variable(end.var("plan"), ("none", "path", "loading", "done"))
            yield Variable(end.var("is known"), _BOTH)
            orders = range(len(self.handlers(end.own)) + 1)
            yield Variable(end.var("yields due"), tuple(map(str, orders)))
            yield Variable(end.var("has pleaded"), _BOTH)
            yield Variable(end.var("comes back"), _BOTH)
        else:
            yield Variable(end.var("answered"), _BOTH)
            yield Variable(end.var("may dial"), _BOTH)

    def channels(self) -> Iterator[Channel]:
        """Between the runtimes, within them, and what links tell."""
        for own in self.runtimes:
            yield Channel(f"{own} to {self.other(own)}", own, self.other(own))
        for own in self.runtimes:
            yield Channel(f"link to {own}", "link", own, Medium.RELIABLE)
            for role in dict.fromkeys(end.role for end in self.ends(own)):
                yield Channel(f"{own} {role} to registry", own, own, Medium.LOCAL)
                yield Channel(f"{own} registry to {role}", own, own, Medium.LOCAL)


def _stub(runtime: str, end: End) -> str:
    if end.is_requester:
        return f"{runtime}/p2prequester/{end.number}"
    return f"{runtime}/p2phandler/1/conn/{end.number}"
