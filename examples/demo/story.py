"""The story of the demonstration: sentences of trace records, in six acts of expected events.

Each sentence says what a record of the trace (docs/traces.md) means to a person, and names its
event. An act is over when each process has shown its events, in its own order; other sentences
may come in between.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import trio

Record: TypeAlias = Mapping[str, Any]
"""A record of a trace, as its line of JSON has it."""


@attrs.frozen
class Line:
    """One line of the demonstration.

    Attributes:
        who: Process that it is about.
        text: What it says.
        event: What has happened, as the acts name it; "": nothing that is expected.
        style: `act`, `step`, `detail`, `note` or `verdict`: how it looks.
    """

    who: str
    text: str
    event: str = ""
    style: str = "step"


@attrs.frozen
class Act:
    """One part of the demonstration.

    Attributes:
        events: What each process has to show, in this order.
        unordered: What it has to show, too, in an order of its own.
        also: What belongs here, but need not happen.
    """

    title: str
    events: Mapping[str, str]
    unordered: Mapping[str, str] = attrs.field(factory=dict)
    also: str = ""


_ARRIVES = "unreached node-stub-deployed resolved-to-node node-stub-live"
_WELCOMES = "session-opened allocated registered"
_SAYS_GOODBYE = "unregistered unsubscribed released session-closed"

ACTS = (
    Act(
        "Sessions, addresses, registration",
        {
            "node": f"ready {_WELCOMES} {_WELCOMES}",
            "bob": f"{_ARRIVES} ready",
            "alice": f"{_ARRIVES} ready",
        },
    ),
    Act(
        "The first request, and what it takes to get there",
        {"alice": "no-listener resolved-to-node answered"},
    ),
    Act(
        "A link of their own: offer, answer, candidates",
        {
            "node": "object-allocated object-allocated",
            "alice": "link-started written link-signalled read link-live status-event row-live",
            "bob": "link-started read written link-signalled link-live status-event on-bus"
            " on-minibus row-live",
        },
        also="requester-deployed row-set link-opened",
    ),
    Act(
        "The two routes compared",
        {"alice": "measured-by-node resolved-to-link measured-by-link compared"},
    ),
    Act(
        "The link is cut, and comes back",
        {
            "alice": "cut link-lost row-lost resolved-to-node link-back resolved-to-link"
            " caught-up reckoned",
            "bob": "link-lost link-back",
        },
        # Alice may dial again before Bob's registry has heard of the loss.
        unordered={"bob": "row-lost row-live"},
    ),
    Act(
        "All processes leave in order",
        {
            "alice": "leaves link-lost row-gone node-stub-left",
            "bob": "link-lost row-gone off-bus node-stub-left",
            "node": f"{_SAYS_GOODBYE} {_SAYS_GOODBYE}",
        },
        also="off-minibus",
    ),
)


def _first_act(line: Line) -> int:
    for number, act in enumerate(ACTS):
        names = f"{act.events.get(line.who, '')} {act.unordered.get(line.who, '')} {act.also}"
        if line.event in names.split():
            return number
    return 0


class Story:
    """Shows lines, each in its act: what comes before its act waits for it.

    Args:
        show: Shows a line of an act, whose number begins with 1.
    """

    def __init__(self, show: Callable[[Line, int], None]) -> None:
        self._show = show
        self._act = -1
        self._held: list[Line] = []
        self._expected: list[tuple[str, deque[str]]] = []
        self._changed = trio.Event()

    def begin(self, title: str = "") -> None:
        """Open the next act, or one that expects nothing of anybody.

        Args:
            title: Title of such an act.
        """
        self._act += 1
        act = ACTS[self._act] if not title else Act(title, {})
        expected = (*act.events.items(), *act.unordered.items())
        self._expected = [(who, deque(events.split())) for who, events in expected]
        self._show(Line("demo", act.title, style="act"), self._act + 1)
        held, self._held = self._held, []
        for line in held:
            self.take(line)

    def take(self, line: Line) -> None:
        """Show a line now, or in its act."""
        if line.event and _first_act(line) > self._act:
            self._held.append(line)
            return
        self._show(line, self._act + 1)
        for who, events in self._expected:
            if who == line.who and events and events[0] == line.event:
                events.popleft()
                break
        self._changed.set()
        self._changed = trio.Event()

    @property
    def missing(self) -> str:
        """What this act still lacks; "": nothing."""
        return "; ".join(f"{who}: {' '.join(left)}" for who, left in self._expected if left)

    async def act_over(self) -> None:
        """Wait until all events of the act were shown."""
        while self.missing:
            await self._changed.wait()


_UUID_SHOWN = 8


def short(address: str | None) -> str:
    """Return an address without what all have: `alice/protostub/1`, `hyperty 2eed3d2a`."""
    scheme, is_address, rest = (address or "no address").partition("://")
    if not is_address:
        return scheme
    domain, _, path = rest.partition("/")
    if scheme == "hyperty-runtime":
        return path
    if scheme in {"hyperty", "connection"}:
        name, *more = path.split("/")
        return f"{scheme} {'/'.join((name[:_UUID_SHOWN], *more))}"
    return f"{domain}/{path}"


_LINK_STEPS = {
    "started": ("created", "link-started"),
    "object-returned": ("in progress, objects are exchanged", "link-signalled"),
    "established": ("live", "link-live"),
    "closed": ("disconnected", "link-lost"),
    "reestablished": ("live again", "link-back"),
}
_STUBS = {
    "/protostub/": ("the node stub", "node-stub-deployed"),
    "/p2prequester/": ("the P2P requester", "requester-deployed"),
    "/p2phandler/": ("the P2P handler", ""),
}
_SESSIONS = {"open": "session-opened", "closed": "session-closed"}
_RECORDS = {"live": "registered", "disconnected": "unregistered"}
_ROWS = {"live": "row-live", "disconnected": "row-lost"}


class Narrator:
    """Says what the records of one process mean, each thing once.

    Args:
        who: The process.
        target: Address whose routes are told; "": only the first route of the process.
    """

    def __init__(self, who: str, target: str = "") -> None:
        self._who = who
        self.target = target
        self._asked: set[str] = set()
        self._routes: dict[str, str] = {}
        self._rows: dict[str, str] = {}
        self._renegotiated: set[str] = set()

    def line(self, record: Record) -> Line | None:
        """Return what a record means; None: nothing that a person has to know."""
        line = None
        match record:
            case {"k": "state", "op": "step"}:
                line = self._step(record)
            case {"k": "resolve", "to": str(to), "op": op} if to == self.target or not self._routes:
                line = self._asks(to) if op == "start" else self._reached(to, record)
            case {"k": "table", "table": "p2p"}:
                line = self._row(record)
            case {"k": "table", "table": "listeners", "key": key} if "/conn/" in key:
                line = self._listener(record)
            case {"k": "table", "table": "alloc"}:
                line = self._allocated(record)
            case {"k": "table", "table": "subs", "op": "del"}:
                text = f"route removed: {short(record['key'])} to {short(record['val'])}"
                line = self._detail(text, "unsubscribed")
            case {"k": "obj", "op": "write" | "apply", "key": key} if "connection:" in key:
                line = self._object(record)
            case {"k": "link", "op": "open", "kind": "p2p"}:
                line = self._say(f"a link to {short(record['b'])} is open", "link-opened")
            case {"k": "msg", "op": "submit", "by": by, "from": sender, "to": str(to)}:
                if by == sender and to.endswith("/status") and "/p2p" in to:
                    text = f"status event to {short(to)} ({record['type']})"
                    line = self._detail(text, "status-event")
        return line

    def _say(self, text: str, event: str = "") -> Line:
        return Line(self._who, text, event)

    def _detail(self, text: str, event: str = "") -> Line:
        return Line(self._who, text, event, "detail")

    def _step(self, record: Record) -> Line | None:
        key, new = record["key"], record["new"]
        line = None
        match record["machine"], new:
            case "stub_deployment", "deployed":
                name, event = next(line for part, line in _STUBS.items() if part in key)
                line = self._say(f"{name} is deployed: {short(key)}", event)
            case "stub_connection", "live":
                line = self._say(f"{short(key)} is live: its session is open", "node-stub-live")
            case "stub_connection", "disconnected":
                text = f"{short(key)} disconnected: its session is left"
                line = self._say(text, "node-stub-left")
            case "p2p_connection", _:
                line = self._link_step(key, record)
            case "session", _:
                runtime = short(key.rpartition("|")[2])
                line = self._say(f"session of {runtime}: {new}", _SESSIONS.get(new, ""))
            case "registration", _:
                line = self._say(f"registration of {short(key)}: {new}", _RECORDS.get(new, ""))
        return line

    def _link_step(self, key: str, record: Record) -> Line:
        cause = record["cause"]
        if cause == "renegotiated":
            self._renegotiated.add(key)
        elif cause == "established" and key in self._renegotiated:
            cause = "reestablished"
        _, peer, role, _ = key.split("|")
        state, event = _LINK_STEPS.get(cause, (record["new"], ""))
        return self._say(f"link to {short(peer)}: {state} ({role})", event)

    def _asks(self, to: str) -> Line | None:
        if to in self._asked:
            return None
        self._asked.add(to)
        event = "no-listener" if self._routes else "unreached"
        return self._say(f"no listener for {short(to)}: the registry is asked for a route", event)

    def _reached(self, to: str, record: Record) -> Line | None:
        route = record.get("result")
        if route is None or self._routes.get(to) == route:
            return None
        self._routes[to] = route
        event = "resolved-to-node" if "/protostub/" in route else "resolved-to-link"
        return self._say(f"{short(to)} is reached by {short(route)}, {record['why']}", event)

    def _row(self, record: Record) -> Line | None:
        key, (state, by, *_) = record["key"], record["val"].split(" ")
        if record["op"] == "del":
            return self._detail(f"link table: {short(key)} removed", "row-gone")
        text = state if by == "None" else f"{state}, by {short(by)}"
        if self._rows.get(key) == text:
            return None
        self._rows[key] = text
        return self._detail(f"link table: {short(key)} {text}", _ROWS.get(state, "row-set"))

    def _listener(self, record: Record) -> Line:
        bus, where = "minibus", "MiniBUS of the handler"
        if record["actor"] == "bus":
            bus, where = "bus", "Message BUS"
        if record["op"] == "del":
            return self._detail(f"{where}: {short(record['key'])} no longer listens", f"off-{bus}")
        return self._detail(f"{where}: {short(record['key'])} listens", f"on-{bus}")

    def _allocated(self, record: Record) -> Line:
        what, whose = short(record["key"]), short(record["val"])
        if record["op"] == "del":
            return self._detail(f"{what} of {whose}: released", "released")
        event = "object-allocated" if "connection:" in record["key"] else "allocated"
        return self._say(f"address {what}: allocated to {whose}", event)

    def _object(self, record: Record) -> Line:
        """Tell of a Connection object: the requester writes the offer, the handler the answer."""
        is_written = record["op"] == "write"
        is_offer = is_written is ("/p2prequester/" in record["by"])
        name = "the offer C1" if is_offer else "the answer C2"
        text = f"{name}, {short(record['key'])}, version {record['version']}"
        return (
            self._say(f"writes {text}", "written")
            if is_written
            else self._say(f"has read {text}", "read")
        )
