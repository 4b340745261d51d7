"""Who is in a scenario: derived from its steps alone, by rules that name no scenario.

Runtimes are those whose addresses or short names occur; each is real, and so is the
node of every domain that occurs. A runtime wants P2P links if a P2P stub of it, or a
step of a P2P connection at it, occurs.

A hyperty is deployed if it sends or is sent a message, is resolved, owns an allocation
or a record, is found by a search in a registry, or observes. It is not if the scenario
itself has its address allocated or registers it, if its name is forged (the message
leaves another's sandbox), or if it only stands in a frame forged on a wire. It lives
where a way shows it (`HA>RA.bus`), else where a record or the allocation table says;
else in the runtime of its domain, of several in the one that is called alike (`ha`,
`ra`). A runtime that has none, or whose links somebody must want, gets a stand-in.

A topology is a trapezoid for the runtimes of a domain whose node has stubs of its own.
A ruling `deny` whose reason speaks of a policy is that bus's policy; other denials the
bus must find by itself.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, final

import attrs

from actors.play.answered import shown_records
from actors.play.atlas import Atlas
from actors.play.denials import denials_of
from actors.play.homes import homes_of
from actors.play.links import link_pairs, standing_links
from actors.play.listed import listed_in
from actors.play.objects import standing_objects
from actors.play.opening import has_own_set_up
from actors.play.roles import Denial, HypertyRole, LinkRole, ObjectRole, Pair, RuntimeRole
from actors.play.script import MessageStep, Scenario
from fsm.cores.resolve import Topology
from specs.address import (
    RUNTIME_SCHEME,
    domain_of,
    host_of,
    is_backend,
    is_below,
    last_segment,
    runtime_of,
    scheme_of,
)

__all__ = ["Cast", "cast_of"]

_P2P_PARTS: Final = ("p2phandler", "p2prequester")
_STAND_IN: Final = "stand-in"
_NODE_STUB: Final = "/protostub/"


@final
@attrs.frozen(kw_only=True)
class Cast:
    """Everybody in a scenario, and how the world is before its first step.

    Attributes:
        hyperties: By their addresses in the scenario, stand-ins among them.
        links: By the scenario's names of links, as far as it names them.
        ways: For the node of a domain, the other domains it has stubs for.
        has_own_set_up: Whether its first steps are what opening the world does.
    """

    atlas: Atlas
    domains: tuple[str, ...]
    runtimes: tuple[RuntimeRole, ...]
    hyperties: tuple[HypertyRole, ...]
    objects: tuple[ObjectRole, ...]
    standing: tuple[LinkRole, ...]
    links: dict[str, Pair]
    denials: tuple[Denial, ...]
    ways: dict[str, frozenset[str]]
    has_own_set_up: bool

    def home(self, hyperty: str) -> str | None:
        """Return the runtime a hyperty lives in."""
        return next((one.runtime for one in self.hyperties if one.url == hyperty), None)

    def living_in(self, runtime_url: str) -> tuple[str, ...]:
        """Return the hyperties of a runtime that the scenario speaks of, else its stand-in."""
        mine = [one for one in self.hyperties if one.runtime == runtime_url]
        spoken_of = [one for one in mine if not one.is_stand_in]
        return tuple(one.url for one in spoken_of or mine)

    def spokesman(self, runtime_url: str) -> str | None:
        """Return a hyperty of a runtime; of several the one mentioned first."""
        mine = (one.url for one in self.hyperties if one.runtime == runtime_url)
        return next(mine, None)

    def stand_in(self, runtime_url: str) -> str | None:
        """Return a hyperty of a runtime that the scenario does not speak of."""
        mine = (one for one in self.hyperties if one.runtime == runtime_url and one.is_stand_in)
        return next((one.url for one in mine), None)

    def object(self, address: str) -> ObjectRole | None:
        """Return the object an address belongs to."""
        return next((one for one in self.objects if is_below(address, one.url)), None)


def cast_of(scenario: Scenario) -> Cast:
    """Derive the cast of a scenario."""
    atlas = Atlas(scenario)
    homes = homes_of(scenario, atlas)
    pairs = link_pairs(scenario, atlas, homes)
    standing = standing_links(scenario, pairs)
    ways = _ways(atlas)
    runtimes = _runtimes(scenario, atlas, homes, pairs)
    objects = standing_objects(scenario, atlas, homes)
    hyperties = (
        *_hyperties(scenario, homes),
        *_stand_ins(runtimes, homes, listed_in(scenario)),
    )
    return Cast(
        atlas=atlas,
        domains=_domains(atlas, runtimes, (*hyperties, *objects)),
        runtimes=runtimes,
        hyperties=hyperties,
        objects=objects,
        standing=standing,
        links={name: pair for name, pair in pairs.items() if name},
        denials=tuple(denials_of(scenario, atlas)),
        ways=ways,
        has_own_set_up=has_own_set_up(scenario, runtimes),
    )


# ---- hyperties


def _hyperties(scenario: Scenario, homes: dict[str, str]) -> Iterator[HypertyRole]:
    """Yield those the scenario speaks of, with what a registry finds them by."""
    shown = {record.url: record for record in shown_records(scenario)}
    for url, home in homes.items():
        record = shown.get(url)
        if record is None:
            yield HypertyRole(url, home)
        else:
            offered, schemes = record.resources, record.data_schemes
            yield HypertyRole(url, home, resources=offered, data_schemes=schemes)


def _stand_ins(
    runtimes: Sequence[RuntimeRole], homes: dict[str, str], listed: Collection[str]
) -> Iterator[HypertyRole]:
    """Yield one for each runtime that wants links, or that has no other hyperty.

    Where the scenario lists who lives in a runtime, nobody else does.
    """
    for one in runtimes:
        if (one.wants_links and one.url not in listed) or one.url not in homes.values():
            url = f"hyperty://{one.domain}/{_STAND_IN}-{one.name}"
            yield HypertyRole(url, one.url, is_stand_in=True)


# ---- runtimes and nodes


def _runtimes(
    scenario: Scenario, atlas: Atlas, homes: dict[str, str], pairs: dict[str, Pair]
) -> tuple[RuntimeRole, ...]:
    wanting = {one for pair in pairs.values() for one in pair}
    wanting |= {
        runtime_of(address)
        for address in atlas.addresses
        if scheme_of(address) == RUNTIME_SCHEME and _part(address) in _P2P_PARTS
    }
    relayed = _ways(atlas)
    users = {**dict(_sought(scenario, homes)), **dict(_users(scenario))}
    urls = dict.fromkeys((*atlas.runtimes, *homes.values(), *sorted(wanting)))
    return tuple(
        RuntimeRole(
            url=url,
            domain=host_of(url),
            name=last_segment(url),
            wants_links=url in wanting,
            topology=Topology.TRAPEZOID if host_of(url) in relayed else Topology.TRIANGLE,
            user=users.get(url),
        )
        for url in urls
    )


def _ways(atlas: Atlas) -> dict[str, frozenset[str]]:
    """Return the domains for which a node has stubs, as their addresses say (STB-15)."""
    stubs = [one for one in atlas.addresses if is_backend(one) and _NODE_STUB in one]
    nodes = dict.fromkeys(domain_of(stub) for stub in stubs)
    return {
        domain: frozenset(last_segment(stub) for stub in stubs if domain_of(stub) == domain)
        for domain in nodes
    }


def _part(address: str) -> str:
    return address.removeprefix(runtime_of(address)).lstrip("/").partition("/")[0]


def _sought(scenario: Scenario, homes: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the runtimes whose hyperties are found by a user, and the user."""
    for record in shown_records(scenario):
        home = homes.get(record.url)
        if home is not None and record.user is not None:
            yield home, record.user


def _users(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for step in scenario.steps:
        value = step.message.body.get("value") if isinstance(step, MessageStep) else None
        record = value if isinstance(value, dict) else {}
        url, user = record.get("runtime"), record.get("user")
        if isinstance(url, str) and isinstance(user, str):
            yield url, user


def _domains(
    atlas: Atlas, runtimes: Sequence[RuntimeRole], allocated: Sequence[HypertyRole | ObjectRole]
) -> tuple[str, ...]:
    own = (one.domain for one in runtimes)
    return tuple(dict.fromkeys((*atlas.domains, *own, *(host_of(one.url) for one in allocated))))
