"""The group of nodes as one of its nodes sees it, for people; no decision depends on it.

Each node reports its figures with each renewal of its lease, so that a report needs no write of its
own. The age of the last report shows how long ago the node was heard.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs
import trio

from actors.kit.counters import Counters, Drop, Gauge, Reading, Refused, Tally
from fsm.group import membership
from fsm.group.kinds import Holder, NodeReport, NodeRow
from fsm.machines.group_membership import State
from specs.jsonvalue import Json, JsonObject
from specs.limits.dashboard import TEXT_CHARS
from specs.limits.group import GROUP_FIGURES, GROUP_GONE, GROUP_NODES, GROUP_PATIENCE, GROUP_TERM
from transports.engine import contract

if TYPE_CHECKING:
    from actors.node.group.group import Group

# The refusals and drops of a node, as rows for a search.

_NANO: Final = 1e9


@attrs.frozen
class Wanted:
    """A search for refusals and drops.

    Attributes:
        id: Id of a message; empty: any.
        text: Part of the address of a sender, a receiver or a session; empty: any.
    """

    id: str
    text: str

    def among(self, counters: Counters, limit: int) -> JsonObject:
        """Return the refusals and drops of a process that the search matches, the newest first.

        Args:
            counters: Counters of the process.
            limit: Number of rows of each at most.
        """
        refusals = (_refusal(refusal) for refusal in reversed(counters.refusals()))
        drops = (_drop(each) for each in reversed(counters.ledger().last))
        return {
            "refusals": self._select(refusals)[:limit],
            "drops": self._select(drops)[:limit],
        }

    def _select(self, rows: Iterable[JsonObject]) -> list[Json]:
        return [row for row in rows if self._has_text(row) and self.id in {"", str(row["id"])}]

    def _has_text(self, row: JsonObject) -> bool:
        ends = (row.get("from"), row.get("to"), row.get("by"))
        return not self.text or any(isinstance(end, str) and self.text in end for end in ends)


def _refusal(refusal: Refused) -> JsonObject:
    return {
        **_row(refusal),
        "by": refusal.by,
        "code": int(refusal.code),
        "ground": str(refusal.ground),
        "why": refusal.why,
        "rule": refusal.rule,
    }


def _drop(drop: Drop) -> JsonObject:
    return {**_row(drop), "reason": str(drop.reason)}


def _row(record: Refused | Drop) -> JsonObject:
    return {
        "at": record.wall_ns / _NANO,
        "where": record.where,
        "id": record.id,
        "type": str(record.type),
        "from": record.from_[:TEXT_CHARS],
        "to": record.to[:TEXT_CHARS],
    }


_GONE: Final = "gone"
"""State that is shown for a node whose lease has expired."""

_REPORTED: Final = (
    "sessions.", "links", "addresses", "subscriptions", "outbox_", "admitted", "received.",
    "sent.", "dropped.", "refused.", "violations.", "broken_claims.", "engine_", "group_fences",
)  # fmt: skip
"""Prefixes of the figures that a node reports, the most important first."""


@attrs.frozen
class _Gone:
    """A former member, and whether it has released its lease."""

    node: str
    boot: int
    is_orderly: bool
    at: float


class Overview:
    """The members of the group, and their reports; the task of the bus calls it.

    Args:
        group: The node in its group.
        engine: The engine, of which only the health and the counts are read.
    """

    def __init__(self, group: "Group", engine: contract.Engine) -> None:
        counters, counts, rows = group.trace.counters, engine.counts, group.rows
        self._membership: Final = group.membership
        self._homes: Final = group.homes
        self._engine: Final = engine
        self._counters: Final = counters
        self._began: Final = trio.current_time()
        self._heard: Final = dict[str, float]()
        self._gone: Final = deque[_Gone](maxlen=GROUP_GONE)
        self._trouble = ""
        counters.watch(Gauge.GROUP_STATE, self._states)
        counters.watch(Gauge.GROUP_NODES, self._nodes)
        counters.watch(Gauge.GROUP_ROWS, lambda: len(rows))
        counters.watch(Gauge.GROUP_WRITES, lambda: rows.waiting)
        counters.watch(Gauge.GROUP_MESSAGES, lambda: group.carrier.waiting)
        counters.watch(Gauge.ENGINE_UP, lambda: int(engine.health.is_up))
        counters.counted_by(Tally.OUTAGES, lambda: {(): counts.outages})
        counters.counted_by(Tally.DENIALS, lambda: {(): counts.refused})
        counters.counted_by(Tally.PAYLOADS, lambda: {(): counts.unsure})

    # ---- metrics

    def _states(self) -> Reading:
        return {state: int(state is self._membership.state) for state in State}

    def _nodes(self) -> Reading:
        others = self._membership.others.values()
        states = [State.LEAVING if row.is_leaving else State.MEMBER for row in others]
        states += [] if self._membership.state is None else [self._membership.state]
        return {state: states.count(state) for state in (State.MEMBER, State.LEAVING)}

    # ---- news

    def report(self, counts: Mapping[str, int]) -> NodeReport:
        """Return the report of this node.

        Args:
            counts: Its present figures.
        """
        nonzero = {name: count for name, count in counts.items() if count}
        wanted = [name for start in _REPORTED for name in nonzero if name.startswith(start)]
        figures = {name: nonzero[name] for name in wanted[:GROUP_FIGURES]}
        return NodeReport(trio.current_time() - self._began, figures)

    def add_report(self, lease: membership.PutLease) -> membership.PutLease:
        """Return a renewal of the lease with the report of this node for the others."""
        report = self.report(self._counters.figures())
        return attrs.evolve(lease, row=attrs.evolve(lease.row, report=report))

    def note_renewal(self, renewal: contract.Written) -> None:
        """Note the outcome of a renewal of this node's lease."""
        self._trouble = renewal.reason if isinstance(renewal, contract.EngineDownError) else ""

    def take_row(self, row: NodeRow) -> None:
        """Note that the row of another member was received."""
        if row.holder.node in self._membership.others:
            self._heard[row.holder.node] = trio.current_time()

    def remember(self, holder: Holder) -> None:
        """Remember a former member; a fenced node cannot know who is a former member."""
        heard, now = self._heard.pop(holder.node, None), trio.current_time()
        if heard is not None and self._membership.state is not State.FENCED:
            # An expired lease is heard of later than a released one.
            is_orderly = now - heard < GROUP_TERM
            self._gone.append(_Gone(holder.node, holder.boot, is_orderly=is_orderly, at=now))

    # ---- for display

    def why_not(self) -> str | None:
        """Return half a sentence on why this node cannot use the engine; None: it can."""
        health, state = self._engine.health, self._membership.state
        if not health.is_up:
            return health.problem
        if self._trouble:
            return f"the lease of this node is not renewed: {self._trouble}"
        if self._membership.is_turned_away:
            return f"the group has {GROUP_NODES} other nodes, and takes no further one"
        if not self._membership.may_write(trio.current_time()):
            return f"this node is no member of its group: it is {state or State.JOINING}"
        return None

    @property
    def others(self) -> tuple[str, ...]:
        """The ids of the other members."""
        return tuple(self._membership.others)

    def home(self, runtime: str) -> JsonObject | None:
        """Return the node that has the session of a runtime, and its URL; None: no other has it."""
        node = self._homes.node_of(runtime)
        row = None if node is None else self._membership.others.get(node)
        return None if row is None else {"node": node, "url": row.address}

    def nodes(self, counts: Mapping[str, int], epoch: float) -> dict[str, JsonObject]:
        """Return the facts about each node, by its id: this one, the others, and former ones.

        Args:
            counts: Present figures of this node.
            epoch: Seconds from the Trio clock to 1970 UTC.
        """
        now, own = trio.current_time(), self._membership
        row = NodeRow(own.holder, own.address, report=self.report(counts))
        mine = _describe_node(row, now + epoch)
        mine["state"] = own.state or State.JOINING
        mine["engine"] = {"up": self._engine.health.is_up, "problem": self.why_not() or ""}
        nodes = {own.node: mine}
        for node, row in own.others.items():
            # A row is received before it is applied, in the same turn.
            nodes[node] = _describe_node(row, self._heard[node] + epoch)
        for each in self._gone:
            if each.node not in nodes and each.at + GROUP_PATIENCE > now:
                state = State.LEFT if each.is_orderly else _GONE
                nodes[each.node] = {
                    "state": state,
                    "boot": str(each.boot),
                    "heard": each.at + epoch,
                }
        return nodes


def _describe_node(row: NodeRow, heard: float) -> JsonObject:
    fields: JsonObject = {
        "state": State.LEAVING if row.is_leaving else State.MEMBER,
        "boot": str(row.holder.boot),  # too large for a number in JavaScript
        "url": row.address,
        "heard": heard,
    }
    if row.report is not None:
        fields["started"] = heard - row.report.up
        fields["figures"] = dict[str, Json](row.report.figures)
    return fields
