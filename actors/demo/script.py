"""The script of the demonstration: the expected lines of each process, in order, in seven acts.

Each process prints what really happened to it as lines of JSON; a line names the step of
the script that it shows. A tracer turns the facts of a trace into sentences, with addresses
shortened to what a person reads, and lets a task wait for their facts.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, final

import attrs
import orjson
import trio
from typing_extensions import override

from actors.cli.output import say
from actors.kit.trace import Tracer
from specs.addresses.address import parse
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.trace import Fact, Kind, Op

__all__ = [
    "ACTS",
    "SCHEMA",
    "Beat",
    "Line",
    "Narrator",
    "ObservingTracer",
    "What",
    "first_act",
    "read_line",
    "report",
    "short",
]


class Beat(StrEnum):
    """Something that has to happen, as its line names it."""

    SERVES = "serves"
    UNREACHED = "unreached"
    NODE_STUB_DEPLOYED = "node-stub-deployed"
    NODE_STUB_LIVE = "node-stub-live"
    SESSION_OPENED = "session-opened"
    ALLOCATED = "allocated"
    REGISTERED = "registered"
    NO_LISTENER = "no-listener"
    RESOLVED_TO_NODE = "resolved-to-node"
    ANSWERED = "answered"
    REQUESTER_DEPLOYED = "requester-deployed"
    OBJECT_ALLOCATED = "object-allocated"
    LINK_STARTED = "link-started"
    LINK_SIGNALLED = "link-signalled"
    WRITTEN = "written"
    CANDIDATE = "candidate"
    READ = "read"
    DIALLED = "dialled"
    STATUS_EVENT = "status-event"
    LINK_LIVE = "link-live"
    ON_BUS = "on-bus"
    ON_MINIBUS = "on-minibus"
    ROW_SET = "row-set"
    ROW_LIVE = "row-live"
    MEASURED_BY_NODE = "measured-by-node"
    RESOLVED_TO_LINK = "resolved-to-link"
    MEASURED_BY_LINK = "measured-by-link"
    COMPARED = "compared"
    CUT = "cut"
    LINK_LOST = "link-lost"
    ROW_LOST = "row-lost"
    LINK_BACK = "link-back"
    CAUGHT_UP = "caught-up"
    RECKONED = "reckoned"
    LEAVES = "leaves"
    UNREGISTERED = "unregistered"
    ROW_GONE = "row-gone"
    OFF_BUS = "off-bus"
    OFF_MINIBUS = "off-minibus"
    RELEASED = "released"
    UNSUBSCRIBED = "unsubscribed"
    SESSION_CLOSED = "session-closed"
    NODE_STUB_LEFT = "node-stub-left"
    GONE = "gone"


@final
@attrs.frozen
class Act:
    """One point of the demonstration.

    Attributes:
        beats: What each process has to show, in its own order; other things may
            happen in between.
        beside: What it has to show too, in an order of its own: the protocol does not
            fix when this comes among the others.
        also: What belongs here too, but need not be seen, or not at a certain time.
        cue: Process and line that open the act; lines of others wait for it.
    """

    title: str
    beats: Mapping[str, tuple[Beat, ...]] = MappingProxyType({})
    beside: Mapping[str, tuple[Beat, ...]] = MappingProxyType({})
    also: frozenset[Beat] = frozenset()
    cue: tuple[str, Beat] | None = None


_ARRIVAL: Final = (
    Beat.UNREACHED,
    Beat.NODE_STUB_DEPLOYED,
    Beat.RESOLVED_TO_NODE,
    Beat.NODE_STUB_LIVE,
)
_WELCOME: Final = (Beat.SESSION_OPENED, Beat.ALLOCATED, Beat.REGISTERED)
_FAREWELL: Final = (Beat.UNREGISTERED, Beat.UNSUBSCRIBED, Beat.RELEASED, Beat.SESSION_CLOSED)

ACTS: Final = (
    Act(
        "Sessions, addresses, registration",
        {
            "node": (Beat.SERVES, *_WELCOME, *_WELCOME),
            "bob": (*_ARRIVAL, Beat.SERVES),
            "alice": (*_ARRIVAL, Beat.SERVES),
        },
    ),
    Act(
        "The first request, and what it takes to get there",
        {"alice": (Beat.NO_LISTENER, Beat.RESOLVED_TO_NODE, Beat.ANSWERED)},
    ),
    Act(
        "A link of their own: offer, answer, candidates",
        {
            "node": (Beat.OBJECT_ALLOCATED, Beat.OBJECT_ALLOCATED),
            "alice": (
                Beat.LINK_STARTED,
                Beat.WRITTEN,
                Beat.LINK_SIGNALLED,
                Beat.READ,
                Beat.DIALLED,
                Beat.LINK_LIVE,
                Beat.STATUS_EVENT,
                Beat.ROW_LIVE,
            ),
            "bob": (
                Beat.LINK_STARTED,
                Beat.READ,
                Beat.WRITTEN,
                Beat.LINK_SIGNALLED,
                Beat.LINK_LIVE,
                Beat.STATUS_EVENT,
                Beat.ON_BUS,
                Beat.ON_MINIBUS,
                Beat.ROW_LIVE,
            ),
        },
        also=frozenset({Beat.REQUESTER_DEPLOYED, Beat.CANDIDATE, Beat.STATUS_EVENT, Beat.ROW_SET}),
    ),
    Act(
        "The two routes compared",
        {
            "alice": (
                Beat.MEASURED_BY_NODE,
                Beat.RESOLVED_TO_LINK,
                Beat.MEASURED_BY_LINK,
                *(Beat.COMPARED,) * 4,
            )
        },
    ),
    Act(
        "The link is cut, and comes back",
        {
            "alice": (
                Beat.CUT,
                Beat.LINK_LOST,
                Beat.ROW_LOST,
                Beat.RESOLVED_TO_NODE,
                Beat.LINK_BACK,
                Beat.RESOLVED_TO_LINK,
                Beat.CAUGHT_UP,
                Beat.RECKONED,
            ),
            # Alice may dial again before Bob's registry has heard of the loss.
            "bob": (Beat.LINK_LOST, Beat.LINK_BACK),
        },
        beside={"bob": (Beat.ROW_LOST, Beat.ROW_LIVE)},
        cue=("alice", Beat.CUT),
    ),
    Act(
        "All processes leave in order",
        {
            "alice": (Beat.LEAVES, Beat.LINK_LOST, Beat.ROW_GONE, Beat.NODE_STUB_LEFT, Beat.GONE),
            "bob": (Beat.LINK_LOST, Beat.ROW_GONE, Beat.OFF_BUS, Beat.NODE_STUB_LEFT),
            "node": (*_FAREWELL, *_FAREWELL),
        },
        also=frozenset({Beat.OFF_MINIBUS}),
        cue=("alice", Beat.LEAVES),
    ),
    Act("The verdict on the three traces"),
)
"""The seven acts. The order within a process is the protocol's: SC-01, 04, 05, 09, 11,
13 for the first two, SC-16, 17, 20, 21 and I-P17 for the third, SC-25 for the fifth,
SC-28 for the sixth."""


def first_act(who: str, beat: Beat) -> int:
    """Return in which act a process may show something first; what none awaits fits any.

    Args:
        who: Name of the process.
        beat: Milestone of the act.
    """
    for number, act in enumerate(ACTS):
        shown = act.beats.get(who, ()) + act.beside.get(who, ())
        if beat in shown or beat in act.also:
            return number
    return 0


SCHEMA: Final = "demo"
"""Name of the shape of these lines."""

_READY: Final = "protofly.ready/1"


class What(StrEnum):
    """Kinds of lines."""

    READY = "ready"
    ACT = "act"
    STEP = "step"
    DETAIL = "detail"
    NOTE = "note"
    ROW = "row"
    FIGURES = "figures"
    VERDICT = "verdict"
    DONE = "done"


@final
@attrs.frozen
class Line:
    """One line.

    Attributes:
        beat: Which step of the demonstration it shows, if any.
    """

    who: str
    what: What
    text: str
    fields: JsonObject = attrs.field(factory=dict)
    beat: Beat | None = None


def report(who: str, what: What, text: str, beat: Beat | None = None, **fields: Json) -> None:
    """Print a line; if the reader has gone, print nothing from now on.

    Args:
        who: Name of the process.
        what: Kind of the line.
        text: The text.
        beat: Milestone of the act.
        **fields: Further fields of the line.
    """
    try:
        say(SCHEMA, who=who, what=what, text=text, beat=beat, **fields)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_line(who: str, raw: bytes) -> Line | None:
    """Read a line of a child; a ready line too. None: it is no such line.

    Args:
        who: Name of the process.
        raw: The bytes of the line.
    """
    try:
        fields: Json = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    if fields.get("schema") == _READY:
        return Line(who, What.READY, f"ready: {fields.get('url')}", fields, Beat.SERVES)
    what, text, beat = (fields.get(name) for name in ("what", "text", "beat"))
    if not isinstance(text, str) or what not in set(What):
        return None
    return Line(who, What(str(what)), text, fields, _beat(beat))


def _beat(name: Json) -> Beat | None:
    return Beat(name) if isinstance(name, str) and name in set(Beat) else None


_RUNTIME: Final = "hyperty-runtime"
_NAMELESS: Final = frozenset({"hyperty", "connection"})
"""Schemes whose addresses the node makes up: a UUID each."""

_SHOWN: Final = 8
"""Characters of a UUID that are shown (ours)."""


def short(address: str | None) -> str:
    """Return an address without what is the same in all: `alice/protostub/1`, `hyperty 2eed3d2a`.

    What is no address is returned as it is.
    """
    try:
        url = parse(address or "")
    except BadUrlError:
        return address or "no address"
    if url.scheme == _RUNTIME:
        return "/".join(url.path)
    if url.scheme in _NAMELESS:
        name, *rest = url.path or ("",)
        return f"{url.scheme} {'/'.join((name[:_SHOWN], *rest))}"
    return "/".join((url.domain, *url.path))


_LINK_PART: Final = "/conn/"
"""Part of the address of a handler's link."""

_STUBS: Final = {
    "/protostub/": ("the node stub", Beat.NODE_STUB_DEPLOYED),
    "/p2prequester/": ("the P2P requester", Beat.REQUESTER_DEPLOYED),
    "/p2phandler/": ("the P2P handler", None),
}

_LINK_STEPS: Final = {
    "started": ("link to {peer}: created", Beat.LINK_STARTED),
    "object-returned": ("link to {peer}: in progress, objects are exchanged", Beat.LINK_SIGNALLED),
    "established": ("link to {peer}: live", Beat.LINK_LIVE),
    "closed": ("link to {peer}: disconnected", Beat.LINK_LOST),
    "reestablished": ("link to {peer}: live again", Beat.LINK_BACK),
}

_SESSIONS: Final = {"open": Beat.SESSION_OPENED, "closed": Beat.SESSION_CLOSED}
_RECORDS: Final = {"live": Beat.REGISTERED, "disconnected": Beat.UNREGISTERED}
_ROWS: Final = {"live": Beat.ROW_LIVE, "disconnected": Beat.ROW_LOST}


@final
@attrs.frozen
class Sentence:
    """A sentence, how much it matters, and which step it shows."""

    text: str
    beat: Beat | None = None
    what: What = What.STEP


@final
class Narrator:
    """Prints the facts of one process that matter to a person, each once."""

    def __init__(self, target: str | None = None) -> None:
        self._target = target
        self._asked: set[str] = set()
        self._routes: dict[str, str] = {}
        self._rows: dict[str, str] = {}
        self._renegotiated: set[str] = set()

    def tell(self, actor: str, fact: Fact) -> Sentence | None:
        """Return what there is to say.

        Args:
            actor: Name of the reporting actor.
            fact: The fact.
        """
        match fact.k:
            case Kind.STATE if fact.op is Op.STEP:
                return _stepped(self._of_renewed(fact))
            case Kind.RESOLVE:
                return self._resolved(fact)
            case Kind.TABLE:
                return self._table(actor, fact)
            case Kind.OBJ:
                return _object(fact)
            case Kind.MSG if fact.op is Op.SUBMIT and fact.by == fact.from_:
                return _status(fact)
            case _:
                return None

    def _of_renewed(self, fact: Fact) -> Fact:
        """Return a link that a new negotiation brings back as one that is back."""
        key = fact.key or ""
        if fact.cause == "renegotiated":
            self._renegotiated.add(key)
        elif fact.cause == "established" and key in self._renegotiated:
            self._renegotiated.remove(key)
            return attrs.evolve(fact, cause="reestablished")
        return fact

    def _resolved(self, fact: Fact) -> Sentence | None:
        to = fact.to or ""
        is_first = not self._routes
        if not is_first and to != self._target:
            return None
        if fact.op is Op.BEGIN:
            if to in self._asked:
                return None
            self._asked.add(to)
            beat = Beat.UNREACHED if is_first else Beat.NO_LISTENER
            return Sentence(f"no listener for {short(to)}: the registry is asked for a route", beat)
        if fact.result is None or self._routes.get(to) == fact.result:
            return None
        self._routes[to] = fact.result
        by_node = "/protostub/" in fact.result
        beat = Beat.RESOLVED_TO_NODE if by_node else Beat.RESOLVED_TO_LINK
        return Sentence(f"{short(to)} is reached by {short(fact.result)}, {fact.why}", beat)

    def _table(self, actor: str, fact: Fact) -> Sentence | None:
        match fact.table:
            case "p2p":
                return self._row(fact)
            case "listeners" if _LINK_PART in (fact.key or ""):
                return _listener(actor, fact)
            case "alloc":
                return _allocated(fact)
            case "subs" if fact.op is Op.DEL:
                text = f"route removed: {short(fact.key)} to {short(fact.val)}"
                return Sentence(text, Beat.UNSUBSCRIBED, What.DETAIL)
            case _:
                return None

    def _row(self, fact: Fact) -> Sentence | None:
        key, (state, by, *_) = fact.key or "", (fact.val or "").split(" ")
        if fact.op is Op.DEL:
            self._rows.pop(key, None)
            return Sentence(f"link table: {short(key)} removed", Beat.ROW_GONE, What.DETAIL)
        shown = state if by == "None" else f"{state}, by {short(by)}"
        if self._rows.get(key) == shown:
            return None
        self._rows[key] = shown
        beat = _ROWS.get(state, Beat.ROW_SET)
        return Sentence(f"link table: {short(key)} {shown}", beat, What.DETAIL)


def _stepped(fact: Fact) -> Sentence | None:
    match fact.machine:
        case "stub_deployment" if fact.new == "deployed":
            return _deployed(fact.key or "")
        case "stub_connection":
            return _stub_stepped(fact)
        case "p2p_connection":
            return _link_stepped(fact)
        case "session":
            runtime = short((fact.key or "").rpartition("|")[2])
            return Sentence(f"session of {runtime}: {fact.new}", _SESSIONS.get(fact.new or ""))
        case "registration":
            return Sentence(
                f"registration of {short(fact.key)}: {fact.new}", _RECORDS.get(fact.new or "")
            )
        case _:
            return None


def _stub_stepped(fact: Fact) -> Sentence | None:
    match fact.new:
        case "live":
            return Sentence(f"{short(fact.key)} is live: its session is open", Beat.NODE_STUB_LIVE)
        case "disconnected":
            return Sentence(
                f"{short(fact.key)} disconnected: its session is left", Beat.NODE_STUB_LEFT
            )
        case _:
            return None


def _deployed(stub: str) -> Sentence | None:
    for part, (name, beat) in _STUBS.items():
        if part in stub:
            return Sentence(f"{name} is deployed: {short(stub)}", beat)
    return None


def _link_stepped(fact: Fact) -> Sentence:
    _, peer, role, _ = (fact.key or "|||").split("|")
    text, beat = _LINK_STEPS.get(fact.cause or "", (f"link to {{peer}}: {fact.new}", None))
    return Sentence(f"{text.format(peer=short(peer))} ({role})", beat)


def _listener(actor: str, fact: Fact) -> Sentence:
    is_bus = actor == "bus"
    where = "Message BUS" if is_bus else "MiniBUS of the handler"
    if fact.op is Op.DEL:
        beat = Beat.OFF_BUS if is_bus else Beat.OFF_MINIBUS
        return Sentence(f"{where}: {short(fact.key)} no longer listens", beat, What.DETAIL)
    beat = Beat.ON_BUS if is_bus else Beat.ON_MINIBUS
    return Sentence(f"{where}: {short(fact.key)} listens", beat, What.DETAIL)


def _allocated(fact: Fact) -> Sentence:
    is_object = (fact.key or "").startswith("connection:")
    if fact.op is Op.DEL:
        return Sentence(
            f"{short(fact.key)} of {short(fact.val)}: released", Beat.RELEASED, What.DETAIL
        )
    beat = Beat.OBJECT_ALLOCATED if is_object else Beat.ALLOCATED
    return Sentence(f"address {short(fact.key)}: allocated to {short(fact.val)}", beat)


def _object(fact: Fact) -> Sentence:
    """Describe a Connection object: the requester writes the offer, the handler the answer."""
    is_written, is_requester = fact.op is Op.WRITE, "/p2prequester/" in (fact.by or "")
    name = "the offer C1" if is_written is is_requester else "the answer C2"
    sentence = f"{name}, {short(fact.key)}, version {fact.version}"
    if is_written:
        return Sentence(f"writes {sentence}", Beat.WRITTEN)
    return Sentence(f"has read {sentence}", Beat.READ)


def _status(fact: Fact) -> Sentence | None:
    to = fact.to or ""
    if not to.endswith("/status") or "/p2p" not in to:
        return None
    return Sentence(f"status event to {short(to)} ({fact.type})", Beat.STATUS_EVENT, What.DETAIL)


_LINKS: Final = "p2p_connection"


@final
class ObservingTracer(Tracer):
    """Passes every fact on, prints those that matter, counts what stubs send.

    Attributes:
        link: State of the link, as its machine has it; None before there is one.
        sent: Requests to the target sent by each stub.
    """

    hops = True

    def __init__(self, who: str, inner: Tracer, target: str | None = None) -> None:
        self.link: str | None = None
        self.lives = 0
        self.sent: Counter[str] = Counter()
        self.bodies = inner.bodies
        self._who = who
        self._inner = inner
        self._target = target
        self._narrator = Narrator(target)
        self._p2p: set[str] = set()
        self._stepped = trio.Event()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._inner.record(actor, fact)
        if fact.k is Kind.MSG and fact.op is Op.XMIT and fact.to == self._target:
            self.sent[fact.stub or ""] += 1
            return
        sentence = self._narrator.tell(actor, fact)
        if sentence is not None:
            report(self._who, sentence.what, sentence.text, sentence.beat)
        if fact.k is Kind.STATE and fact.machine == _LINKS:
            self._note_link(fact)

    def _note_link(self, fact: Fact) -> None:
        self.link = fact.new
        self.lives += fact.new == "live"
        self._p2p.add((fact.key or "").rpartition("|")[2])
        self._stepped.set()
        self._stepped = trio.Event()

    def sent_by_link(self) -> int:
        """Count the requests that went by P2P links."""
        return sum(count for stub, count in self.sent.items() if stub in self._p2p)

    def sent_by_node(self) -> int:
        """Count the requests that went by node stubs."""
        return sum(count for stub, count in self.sent.items() if stub not in self._p2p)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each step of a link."""
        while not reached():
            await self._stepped.wait()
