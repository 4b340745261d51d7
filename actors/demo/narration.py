"""Turns the facts of a trace into sentences: the event, its subject, and the step that it shows.

Addresses are shortened to what a person reads. A tracer prints the sentences, and lets
a task wait for their facts.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.demo.script import Beat, What, report
from actors.kit.trace import Tracer
from specs.addresses.address import parse
from specs.errors import BadUrlError
from specs.trace import Fact, Kind, Op

__all__ = ["Narrator", "ObservingTracer", "short"]

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

    def tell(self, actor: str, fact: Fact) -> Sentence | None:
        """Return what there is to say.

        Args:
            actor: Name of the reporting actor.
            fact: The fact.
        """
        match fact.k:
            case Kind.STATE if fact.op is Op.STEP:
                return _stepped(fact)
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
