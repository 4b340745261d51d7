"""All that is given in one scenario."""

from collections.abc import Iterator, Mapping
from typing import final

import attrs

from actors.play.script.vocabulary import (
    AddressAllocated,
    Alias,
    DataObject,
    Denial,
    FieldKind,
    Hyperty,
    KeptAddress,
    Node,
    P2PLink,
    Runtime,
    Session,
)
from fsm.registry.resolve.resolve import Topology

__all__ = ["Setting"]


@final
@attrs.frozen(kw_only=True)
class Setting:
    """Who exists in a scenario, and in what state.

    Attributes:
        deployed: Hyperties that are deployed in the scenario, and their runtimes.
    """

    nodes: tuple[Node, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    hyperties: tuple[Hyperty, ...] = ()
    kept: tuple[KeptAddress, ...] = ()
    objects: tuple[DataObject, ...] = ()
    links: tuple[P2PLink, ...] = ()
    sessions: tuple[Session, ...] = ()
    addresses: tuple[AddressAllocated, ...] = ()
    denials: tuple[Denial, ...] = ()
    aliases: tuple[Alias, ...] = ()
    beginning: str = ""
    deployed: Mapping[str, str] = attrs.field(factory=dict)

    def home(self, hyperty: str | None) -> str | None:
        """Return the runtime of a hyperty."""
        homes = {one.is_: one.in_ for one in self.hyperties} | {**self.deployed}
        homes |= {one.is_: one.in_ for one in self.kept}
        return None if hyperty is None else homes.get(hyperty)

    @property
    def named(self) -> tuple[str, ...]:
        """The addresses whose last parts name places."""
        return (
            *(one.is_ for one in self.runtimes),
            *(one.is_ for one in self.hyperties),
            *(one.is_ for one in self.kept),
            *(one.is_ for one in self.objects),
            *self.deployed,
        )

    def topology(self, runtime: Runtime) -> Topology:
        """Return how a runtime reaches other domains."""
        node = next((one for one in self.nodes if one.domain == runtime.domain), None)
        return Topology.TRIANGLE if node is None or not node.stubs else Topology.TRAPEZOID

    def known(self, kind: FieldKind) -> Iterator[str]:
        """Yield the addresses that a field of a kind may name."""
        if kind in {FieldKind.RUNTIME, FieldKind.PROCESS, FieldKind.PROCESSES}:
            yield from (one.is_ for one in self.runtimes)
        if kind in {FieldKind.NODE, FieldKind.PROCESS, FieldKind.PROCESSES}:
            yield from (one.address for one in self.nodes)
        if kind in {FieldKind.HYPERTY, FieldKind.HYPERTIES}:
            yield from (one.is_ for one in self.hyperties)
            yield from (one.is_ for one in self.kept)
            yield from self.deployed
        if kind is FieldKind.OBJECT:
            yield from (one.is_ for one in self.objects)
