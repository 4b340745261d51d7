"""The route of a message as a scenario writes it: `HA>RA.bus>SAB~wire~MN.b`.

Places stand between carriers: `>` hands on inside a process, `~wire~` is the link of a
stub to a message node, `=L1=` a P2P link called L1, `..` hops that are not repeated, at
any place of the route.
"""

import re
from enum import Enum, auto
from typing import Final, final

import attrs

_TOKEN: Final = re.compile(
    r"(?P<handed>>)|(?P<wire>~wire~)|=(?P<link>[^=>~]+)=|(?P<gap>\.\.)"
    r"|(?P<place>\{[^{}]*\}|(?:(?!\.\.|~wire~)[^=>{}])+)"
)
_PLACE: Final = re.compile(
    r"(?P<root>[a-z-]+://[^( ]+|MN\.[^.( ]+|[^.( ]+)"
    r"(?:[. ](?P<part>[^.( ]+))?"
    r"(?:\((?P<note>[^()]*)\))?"
)


class Ride(Enum):
    """A carrier of a message from one place to the next."""

    HANDED = auto()
    WIRE = auto()
    LINK = auto()
    UNSAID = auto()


@final
@attrs.frozen
class Carrier:
    """A carrier of a message from one place to the next.

    Attributes:
        link: The scenario's name of the P2P link; None for other rides.
    """

    ride: Ride
    link: str | None = None


@final
@attrs.frozen
class Place:
    """A place that a message passes, or where something happens.

    Attributes:
        text: As it is written.
        root: The process or address: `RA`, `MN.a`, `HA`, `PH/conn/1`.
        part: Which part of it: `bus`, `registry`, `minibus`; empty: itself.
        note: What stands in brackets behind.
    """

    text: str
    root: str
    part: str = ""
    note: str = ""


@final
@attrs.frozen
class Hop:
    """The route of a message.

    Attributes:
        text: As it is written.
        stations: Groups of places, one after the other; a group of several is `{a,b}`
            and means each of them.
        carriers: What lies between one station and the next; one less than stations.
    """

    text: str
    stations: tuple[tuple[Place, ...], ...]
    carriers: tuple[Carrier, ...]

    @property
    def first(self) -> Place:
        """The first place of the route."""
        return self.stations[0][0]

    @property
    def last(self) -> tuple[Place, ...]:
        """The last places of the route: several for a message that is fanned out."""
        return self.stations[-1]

    @property
    def places(self) -> tuple[Place, ...]:
        """All places, in order."""
        return tuple(place for station in self.stations for place in station)


GAP: Final = Place("..", "..")
"""The first place of a route whose first hops are not repeated."""


def read_place(text: str) -> Place:
    """Read one place.

    Raises:
        ValueError: It is none; the text says why.
    """
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no place such as RA.bus or MN.a")
    return Place(text.strip(), match["root"], match["part"] or "", match["note"] or "")


def read_hop(text: str) -> Hop:
    """Read the route of a message.

    Raises:
        ValueError: It is none; the text says why.
    """
    route = _Route(text)
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"{text!r} cannot be read from {text[position:]!r} on")
        route.take(match)
        position = match.end()
    return route.done()


@final
class _Route:
    """Puts stations and carriers together as they are read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._stations: list[tuple[Place, ...]] = []
        self._carriers: list[Carrier] = []
        self._carrier: Carrier | None = None

    def take(self, token: re.Match[str]) -> None:
        place = token["place"]
        if place is not None:
            self._station(place)
        elif token["gap"]:
            if not self._stations and self._carrier is None:
                self._stations.append((GAP,))
            self._ride(Carrier(Ride.UNSAID))
        elif token["link"]:
            self._ride(Carrier(Ride.LINK, token["link"]))
        else:
            self._ride(Carrier(Ride.WIRE if token["wire"] else Ride.HANDED))

    def _ride(self, carrier: Carrier) -> None:
        """Take a carrier; beside `..` a `>` says nothing more, a link says all."""
        held = self._carrier
        if held is not None and held.ride in {Ride.WIRE, Ride.LINK}:
            if carrier.ride is not Ride.HANDED and carrier.ride is not Ride.UNSAID:
                raise ValueError(f"{self._text!r} has two links without a place between")
            return
        if held is None or carrier.ride is not Ride.HANDED:
            self._carrier = carrier

    def _station(self, text: str) -> None:
        names = text[1:-1].split(",") if text.startswith("{") else [text]
        if self._stations:
            self._carriers.append(self._carrier or Carrier(Ride.UNSAID))
        elif self._carrier is not None:
            raise ValueError(f"{self._text!r} does not begin with a place")
        self._stations.append(tuple(map(read_place, names)))
        self._carrier = None

    def done(self) -> Hop:
        if self._carrier == Carrier(Ride.UNSAID) and len(self._stations) > 1:
            self._carrier = None
        if self._stations in ([], [(GAP,)]) or self._carrier is not None:
            raise ValueError(f"{self._text!r} does not end with a place")
        return Hop(self._text, tuple(self._stations), tuple(self._carriers))
