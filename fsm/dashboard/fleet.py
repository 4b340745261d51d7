"""Dashboard data of a node: its runtimes, and the states of its machines, counted from reports.

No function waits, and memory is limited: the data of a runtime exist as long as its session, counts
are kept per state and transition, and only the newest events are kept. Changes are recorded only
while somebody views the dashboard; `whole` returns everything, `news` the changes since its last
call. Values are absolute, so a viewer may get a change twice.
"""

from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice
from typing import Final

import attrs

from fsm.engine import Step
from fsm.machine_list import MACHINES
from fsm.machines.registration import REGISTRATION
from fsm.machines.session import SESSION, State
from fsm.machines.stub_deployment import STUB_DEPLOYMENT
from specs.jsonvalue import Json, JsonObject
from specs.limits import dashboard
from specs.message import Message, instance_id, request_id
from specs.trace import ABSENT, Fact, Op

# Watched connections: the hops of messages of the few connections that an operator looks at.


@attrs.frozen(slots=True)
class Hop:
    """Event in the path of a message through the node, for the dashboard.

    Attributes:
        number: Its number at the node, counted from 1.
        at: Seconds since 1970 UTC.
        op: The kind of the event, as in a trace.
        runtime: Runtime of the link from which the message came, or to which it was written; empty:
            none.
        message: Its id, verb, sender, receiver and code; for an answer, the id of its request.
        why: Reason of a drop, or the component of the node that received it.
    """

    number: int
    at: float
    op: str
    runtime: str
    message: JsonObject
    why: str

    def as_json(self) -> JsonObject:
        """Return the event as a JSON object."""
        place: JsonObject = {"n": self.number, "at": self.at, "op": self.op}
        return {**place, "runtime": self.runtime, "why": self.why, **self.message}


@attrs.define
class _Story:
    until: float
    hops: deque[Hop] = attrs.field(factory=lambda: deque(maxlen=dashboard.STORY_MESSAGES))
    ids: deque[str] = attrs.field(factory=lambda: deque(maxlen=dashboard.STORY_MESSAGES))
    known: set[str] = attrs.field(factory=set)

    def know(self, mid: str) -> None:
        if mid not in self.known:
            if len(self.ids) == dashboard.STORY_MESSAGES:
                self.known.discard(self.ids[0])
            self.ids.append(mid)
            self.known.add(mid)


class Watched:
    """Connections whose messages an operator observes, by runtime."""

    def __init__(self) -> None:
        self._stories: dict[str, _Story] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._stories)

    def ask(self, runtime: str, now: float) -> bool:
        """Observe a connection for a while; return False if too many are observed.

        Args:
            runtime: Address of its runtime.
            now: Current time, in seconds.
        """
        self.expire(now)
        story = self._stories.get(runtime)
        if story is None and len(self._stories) >= dashboard.STORIES:
            return False
        if story is None:
            story = self._stories[runtime] = _Story(now)
        story.until = now + dashboard.STORY_LEASE
        return True

    def expire(self, now: float) -> None:
        """Stop observing the connections that were not requested recently."""
        for runtime, story in tuple(self._stories.items()):
            if now >= story.until:
                del self._stories[runtime]

    def hops(self, runtime: str, after: int) -> list[Hop]:
        """Return the message events of an observed connection after a number, the oldest first.

        Args:
            runtime: Address of its runtime.
            after: Number of the last hop that is known.
        """
        story = self._stories.get(runtime)
        return [] if story is None else [hop for hop in story.hops if hop.number > after]

    def note_message(self, op: Op, message: Message, runtime: str, why: str, wall: float) -> None:
        """Record an event of a message, if it belongs to an observed connection.

        Args:
            op: The event.
            message: The message.
            runtime: Runtime of the link that it passed; empty: none.
            why: The reason or the part of the node.
            wall: Seconds since 1970 UTC.
        """
        mid = instance_id(message)
        hop: Hop | None = None
        for watched, story in self._stories.items():
            if watched == runtime:
                story.know(mid)
            if mid in story.known:
                hop = hop or self._hop(op, _head(message), runtime, why, wall)
                story.hops.append(hop)

    def note_report(self, fact: Fact, wall: float) -> None:
        """Record a trace fact about a message, if it belongs to an observed connection.

        Args:
            fact: The record.
            wall: Seconds since 1970 UTC.
        """
        stories = [story for story in self._stories.values() if fact.mid in story.known]
        if not stories or fact.op is None:
            return
        head: JsonObject = {
            "id": fact.id,
            "type": fact.type,
            "from": _clip(fact.from_ or ""),
            "to": _clip(fact.to or ""),
            "code": fact.code,
            "ref": fact.ref or "",
        }
        hop = self._hop(fact.op, head, "", fact.why or "", wall)
        for story in stories:
            story.hops.append(hop)

    def _hop(self, op: Op, head: JsonObject, runtime: str, why: str, wall: float) -> Hop:
        self._number += 1
        return Hop(self._number, wall, op.value, _clip(runtime), head, _clip(why))


def _head(message: Message) -> JsonObject:
    return {
        "id": message.id,
        "type": message.type.value,
        "from": _clip(message.from_),
        "to": _clip(message.to),
        "code": message.code,
        "ref": request_id(message) if message.is_response else "",
    }


def _clip(text: str) -> str:
    return text[: dashboard.TEXT_CHARS]


@attrs.frozen(slots=True)
class Event:
    """Event at the node, for the dashboard: a transition, a table change, or a fault.

    Attributes:
        number: Its number, counted from 1.
        at: Seconds since 1970 UTC.
        kind: `step`, `row` or `fault`.
        runtime: Runtime of the session concerned; empty: none, or unknown.
        what: Name of the machine or table.
        key: Key of the entity or row.
        old: State left; for a row empty.
        new: State entered; for a row `add` or `del`.
        cause: Trigger of the step.
        why: The reason for people, as half a sentence.
    """

    number: int
    at: float
    kind: str
    runtime: str = attrs.field(converter=_clip)
    what: str
    key: str = attrs.field(converter=_clip)
    old: str
    new: str
    cause: str
    why: str = attrs.field(default="", converter=_clip)

    def as_json(self) -> JsonObject:
        """Return the event as a JSON object."""
        fields = attrs.asdict(self)
        return {"n": fields.pop("number"), **fields}


@attrs.define(slots=True)
class _Row:
    """Data of a runtime that has a session."""

    state: str
    since: float
    link: str = ""
    form: str = ""
    moves: int = 0


@attrs.define(slots=True)
class _Heat:
    """Number of entities in each state of one machine, and number of their transitions."""

    states: Counter[str] = attrs.field(factory=Counter)
    edges: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)

    def as_json(self) -> JsonObject:
        return {
            "states": dict(self.states),
            "edges": [[*edge, count] for edge, count in self.edges.items()],
        }


_SOURCES: Final = {
    name: {row.source.value for row in table.rows if row.source is not None}
    for name, table in MACHINES.items()
}


def is_over(machine: str, state: str) -> bool:
    """Return whether a state is final, so that entities in it have ended.

    Args:
        machine: Name of the machine.
        state: Name of the state.
    """
    return state not in _SOURCES[machine]


_TOLD: Final = frozenset({SESSION.name, REGISTRATION.name, STUB_DEPLOYMENT.name})
"""Machines whose transitions are listed as events; others are visible in table rows."""


class Fleet:
    """Runtimes and machine states of one node, for the dashboard.

    Attributes:
        is_watched: Whether changes are recorded for `news`.
    """

    def __init__(self) -> None:
        self.is_watched = False
        self._rows: dict[str, _Row] = {}
        self._addresses = Counter[str]()
        self._paths = Counter[str]()
        self._heats: dict[str, _Heat] = {}
        self._homes: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._events: deque[Event] = deque(maxlen=dashboard.STORY_EVENTS)
        self._number = 0
        self._told = 0
        self._changed: set[str] = set()
        self._heated: set[str] = set()

    def __len__(self) -> int:
        return len(self._rows)

    # ---- reports

    def before(self, machine: str, counts: Mapping[str, int]) -> None:
        """Add entities that existed before the first report.

        Args:
            machine: Name of the machine.
            counts: Their number, by state.
        """
        self._heats.setdefault(machine, _Heat()).states.update(counts)

    def restore_session(self, runtime: str, state: str, wall: float) -> None:
        """Add a session that existed before the first report.

        Args:
            runtime: Address of the runtime.
            state: State of its session.
            wall: Seconds since 1970 UTC.
        """
        self._rows[runtime] = _Row(state, wall)
        self.before(SESSION.name, {state: 1})

    def take_step(self, step: Step, wall: float, owner: str = "") -> None:
        """Record a state machine transition of an entity.

        Args:
            step: The step.
            wall: Seconds since 1970 UTC.
            owner: Runtime that owns the entity, if the step itself does not name it.
        """
        old = ABSENT if step.old is None else step.old
        heat = self._heats.setdefault(step.machine, _Heat())
        if heat.states[old] > 0:
            heat.states[old] -= 1
        heat.states[step.new] += 1
        heat.edges[old, step.cause, step.new] += 1
        if self.is_watched:
            self._heated.add(step.machine)
        if step.machine not in _TOLD:
            return
        runtime = self._session(step, wall) if step.machine == SESSION.name else owner
        if step.machine == REGISTRATION.name:
            runtime = self._home(step, owner)
        self._note(
            wall, "step", runtime, step.machine, step.key, old, step.new, step.cause, step.why
        )

    def _session(self, step: Step, wall: float) -> str:
        runtime = step.key.split("|")[1]
        if is_over(step.machine, step.new):
            self._rows.pop(runtime, None)
        else:
            row = self._rows.setdefault(runtime, _Row(step.new, wall))
            row.state, row.since, row.moves = step.new, wall, row.moves + 1
            if step.new == State.DETACHED:
                row.link = ""
        self._mark(runtime)
        return runtime

    def _home(self, step: Step, owner: str) -> str:
        """Return the runtime that owns a registry record, even if its session has ended."""
        if step.old is None:
            self._homes[step.key] = owner
        if is_over(step.machine, step.new):
            return self._homes.pop(step.key, owner)
        return self._homes.get(step.key, owner)

    def open_link(self, runtime: str, link: str, form: str) -> None:
        """Record that a link has the session of a runtime.

        Args:
            runtime: Address of the runtime.
            link: Name of the link.
            form: Wire form of the link.
        """
        self._links[link] = runtime
        row = self._rows.get(runtime)
        if row is None:
            # The session's first transition is reported after its link.
            row = self._rows[runtime] = _Row("", 0.0)
        row.link, row.form = link, form
        self._mark(runtime)

    def close_link(self, link: str) -> None:
        """Remove a link that is closed."""
        self._links.pop(link, None)

    def runtime_of(self, link: str) -> str:
        """Return the runtime whose session a link has; empty: none."""
        return self._links.get(link, "")

    def row(self, op: Op, table: str, key: str, runtime: str, wall: float) -> None:
        """Record that a row of a table was added or removed.

        Args:
            op: ADD or DEL.
            table: Name of the table.
            key: Key of the row.
            runtime: Value of the row.
            wall: Seconds since 1970 UTC.
        """
        counter = {"alloc": self._addresses, "subs": self._paths}.get(table)
        if counter is None:
            return
        if op is Op.ADD:
            counter[runtime] += 1
        elif counter[runtime] > 1:
            counter[runtime] -= 1
        else:
            del counter[runtime]
        self._mark(runtime)
        self._note(wall, "row", runtime, table, key, "", op.value, "", "")

    def note_refusal(self, machine: str, key: str, state: str, cause: str, wall: float) -> None:
        """Record a trigger that a machine's table does not allow.

        Args:
            machine: Name of the machine.
            key: Key of the entity.
            state: Its state, which it keeps.
            cause: The trigger.
            wall: Seconds since 1970 UTC.
        """
        self._note(wall, "fault", "", machine, key, state, "", cause, "no table declares this step")

    def _mark(self, runtime: str) -> None:
        if self.is_watched:
            self._changed.add(runtime)

    def _note(self, wall: float, kind: str, *fields: str) -> None:
        self._number += 1
        self._events.append(Event(self._number, wall, kind, *fields))

    # ---- data for viewers

    def whole(self) -> JsonObject:
        """Return all dashboard data, with at most `FLEET_ROWS` runtimes."""
        newest = islice(reversed(self._rows), dashboard.FLEET_ROWS)
        return {
            "total": len(self._rows),
            "rows": [self._describe_row(runtime) for runtime in newest],
            "machines": {name: heat.as_json() for name, heat in self._heats.items()},
            "events": self._last(0),
        }

    def news(self) -> JsonObject:
        """Return the dashboard data that changed since the last call."""
        changed, self._changed = self._changed, set()
        heated, self._heated = self._heated, set()
        last_told, self._told = self._told, self._number
        present = [runtime for runtime in changed if runtime in self._rows]
        return {
            "total": len(self._rows),
            "rows": [self._describe_row(runtime) for runtime in present],
            "gone": list[Json](sorted(changed.difference(present))),
            "machines": {name: self._heats[name].as_json() for name in sorted(heated)},
            "events": self._last(last_told),
        }

    def _describe_row(self, runtime: str) -> Json:
        row = self._rows[runtime]
        counts = (self._addresses[runtime], self._paths[runtime], row.moves)
        return [runtime, row.state, row.form, row.link, row.since, *counts]

    def _last(self, after: int) -> list[Json]:
        count = min(self._number - after, dashboard.FRAME_EVENTS, len(self._events))
        last = [self._events[-place].as_json() for place in range(count, 0, -1)]
        return list[Json](last)

    def story(self, runtime: str, after: int, limit: int) -> list[Event]:
        """Return the last events of one runtime, the oldest first.

        Args:
            runtime: Address of the runtime.
            after: Number of the last event that is known.
            limit: Largest number of events.
        """
        events: list[Event] = []
        for event in reversed(self._events):
            if event.number <= after or len(events) == limit:
                break
            if event.runtime == runtime:
                events.append(event)
        return events[::-1]
