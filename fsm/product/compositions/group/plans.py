"""Nodes of one domain: sessions that move, leases that end, and an engine that answers late.

Participants at each node: `fsm.group.membership`, `.rows`, `.moves` and `.homes`, hosted as the
bus of a node does; and an engine.
What may happen: a write or its answer is lost, or a write comes twice; an answer comes after it
was given up; runtimes come to any node at any time, and leave; a node finds its lease over by its
own clock; a node dies, and comes back as another process by the same id.

A node that finds its lease over, or dies, is heard of by the engine at any later time: that a
lease never ends before is shown in the composition `group-lease`.

Left out, and why that is no loss:

* Links, tokens and messages: to the engine a session is its row.
* Renewals: they change no row but the node's own.
* Time: timers expire at any moment when no other input is waiting, and once while another is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, final

import attrs

from fsm.machines.group_membership import State
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Medium,
    Never,
    Patience,
    Place,
    Plan,
    Situation,
)
from fsm.product.compositions.group.engine import (
    ENGINE,
    KEY,
    EnginePlace,
)
from fsm.product.compositions.group.node import NodePlace

# --- what must be, and what must not ----------------------------------------------------------


def _engine(now: Situation) -> EnginePlace:
    return now.at(ENGINE, EnginePlace)


def _node(now: Situation, name: str) -> NodePlace:
    return now.at(name, NodePlace)


def _knows_all(now: Situation, name: str) -> bool:
    """Return whether all news has reached a member that has nothing to write."""
    node = _node(now, name)
    has_heard = node.heard == _engine(now).revision and not node.reads
    return node.is_member and has_heard and node.rows.is_settled


def _is_twice(nodes: Sequence[str], now: Situation) -> bool:
    have = [name for name in nodes if _knows_all(now, name) and _node(now, name).has_copy]
    return len(have) > 1


def _is_open_unheld(name: str, now: Situation) -> bool:
    node = _node(now, name)
    return node.has_copy and (node.is_over or not node.is_member)


def _differs(name: str, now: Situation) -> bool:
    return _knows_all(now, name) and _node(now, name).rows.row(KEY) != _engine(now).session


def _never(nodes: Sequence[str]) -> Iterator[Never]:
    twice = "Two nodes have heard all, and have one session."
    yield Never(twice, "I-M2", (*nodes, ENGINE), partial(_is_twice, nodes))
    for name in nodes:
        differs = f"Node {name} has heard all, and its mirror is not as the engine."
        yield Never(differs, "ours", (name, ENGINE), partial(_differs, name))
        unheld = f"Node {name} is no member by its own clock, and a session is open there."
        yield Never(unheld, "ours", (name,), partial(_is_open_unheld, name))


def _is_at_rest(names: Sequence[str], now: Situation) -> bool:
    nodes = [_node(now, name) for name in names if _node(now, name).is_alive]
    if any(node.is_asked or not node.is_member for node in nodes):
        return False
    session = _engine(now).session
    holders = [node.here for node in nodes if node.has_copy]
    return not nodes or holders == ([] if session is None else [session.holder])


def _may_come(name: str, now: Situation) -> bool:
    node = _node(now, name)
    return node.is_member and not node.has_copy


def _may_leave(name: str, now: Situation) -> bool:
    return _node(now, name).is_member and _node(now, name).has_copy


def _is_member(name: str, now: Situation) -> bool:
    return _node(now, name).is_member


def _is_alive(name: str, now: Situation) -> bool:
    return _node(now, name).is_alive


def _is_dead(name: str, now: Situation) -> bool:
    return not _node(now, name).is_alive


def _is_leaving(name: str, now: Situation) -> bool:
    return _node(now, name).membership.state is State.LEAVING


def _is_fenced(name: str, now: Situation) -> bool:
    return _node(now, name).is_fenced


_HAPPENS: Final[Mapping[str, tuple[str, Callable[[str, Situation], bool]]]] = {
    "comes": ("the runtime comes to node", _may_come),
    "leaves": ("the runtime leaves node", _may_leave),
    "over": ("the lease is over by the clock of node", _is_member),
    "dies": ("the process ends of node", _is_alive),
    "drains": ("the operator drains node", _is_member),
    "goes": ("all is drained from node", _is_leaving),
    "starts": ("a new process starts of node", _is_dead),
    "joins": ("anew joins node", _is_fenced),
}


def _happens(name: str, what: str, budget: int | None = 1) -> Event:
    words, may_be = _HAPPENS[what]
    is_fault = what in {"over", "dies"}
    when = partial(may_be, name)
    return Event(f"{words} {name}", name, what, when=when, budget=budget, is_fault=is_fault)


@final
@attrs.frozen(slots=True)
class _Group:
    """What is composed.

    Attributes:
        happens: What happens to which node, and how often.
        is_held: Whether the first node has the session when all begins.
        early: As of a composition.
        channel: Messages that are in a channel at most.
    """

    name: str
    about: str
    happens: tuple[tuple[str, str, int], ...]
    nodes: tuple[str, ...] = ("a", "b")
    is_held: bool = True
    early: int = 0
    channel: int = 1

    @property
    def plan(self) -> Plan:
        """How it is explored."""
        return Plan(self.name, self._compose, Bounds(losses=1, duplicates=1, channel=self.channel))

    def _compose(self, bounds: Bounds) -> Composition:
        nodes, is_held = self.nodes, self.is_held
        asks = [Channel(f"{node}-asks", node, ENGINE) for node in nodes]
        answers = [Channel(f"{node}-answers", ENGINE, node) for node in nodes]
        says = [Channel(f"{node}-says", node, ENGINE, Medium.RELIABLE) for node in nodes]
        hears = [Channel(f"{node}-hears", ENGINE, node, Medium.RELIABLE) for node in nodes]
        hosts = {node: partial(NodePlace, node, nodes, is_held=is_held) for node in nodes}
        places = [Place(node, host) for node, host in hosts.items()]
        rest = "the session has one node, or is over"
        return Composition(
            name=self.name,
            about=self.about,
            places=(*places, Place(ENGINE, partial(EnginePlace, nodes, is_held=is_held))),
            channels=(*asks, *answers, *says, *hears),
            events=(
                *(_happens(*one) for one in self.happens),
                *(_happens(node, "joins", None) for node in nodes),
            ),
            never=tuple(_never(nodes)),
            ends=(End(rest, (*nodes, ENGINE), partial(_is_at_rest, nodes)),),
            bounds=bounds,
            patience=Patience.AT_REST,
            early=self.early,
        )


GROUP: Final = _Group(
    "group",
    "Two nodes take up one session at once, and again; it moves, and ends.",
    (("a", "comes", 2), ("b", "comes", 1), ("b", "leaves", 1)),
    is_held=False,
    early=1,
).plan
"""A session that two nodes take up."""

GROUP_FENCE: Final = _Group(
    "group-fence",
    "A session moves from a node that finds its lease over.",
    (("b", "comes", 1), ("a", "over", 1), ("a", "leaves", 1)),
).plan
"""A node that is fenced."""

GROUP_DEATH: Final = _Group(
    "group-death",
    "A node that has a session dies, and starts again by the same id.",
    (("b", "comes", 1), ("a", "dies", 1), ("a", "starts", 1)),
    channel=2,
).plan
"""A node that dies."""

GROUP_LEAVE: Final = _Group(
    "group-leave",
    "A node that has a session leaves the group, and comes back by the same id.",
    (("b", "comes", 1), ("a", "drains", 1), ("a", "goes", 1), ("a", "starts", 1)),
).plan
"""A node that leaves."""

GROUP_THREE: Final = _Group(
    "group-three",
    "A node of three that has a session dies; both others take it up, or tidy up.",
    (("b", "comes", 1), ("c", "comes", 1), ("a", "dies", 1)),
    nodes=("a", "b", "c"),
    channel=2,
).plan
"""A node that dies, and two others."""
