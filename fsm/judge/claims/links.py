"""Claims on direct links: their states, their routes and their traffic (I-P4..I-P22).

Each of the two runtimes of a link has an entity with key `own runtime|remote runtime|role|address`.
Its transitions are judged by the replay of its machine.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, scheme_of
from specs.limits.protocol import HANDSHAKE_TIMEOUT
from specs.trace import ABSENT, Kind, Op

_OVER: Final = frozenset({"failed", "disconnected"})
_YIELDING: Final = "yielding"
_REQUESTER: Final = "requester"
_HANDLER: Final = "handler"


@fold.check("I-P13", "I-P14", on=fold.any_msg(Op.XMIT))
def check_link_is_live(process: fold.Process, record: TraceLine) -> None:
    """Check that a link carries messages only while it is live (I-P14).

    The messages that set up a link must not be sent over the link before that, either (I-P13).
    """
    if process.state(records.LINK_MACHINE, record.stub) in {None, records.LIVE}:
        return
    if _is_signalling(record):
        process.report_break("I-P13", record, "signalling by the node")
    else:
        process.report_break("I-P14", record, f"{record.stub} to be live")


def _is_signalling(record: TraceLine) -> bool:
    ends = (record.from_ or "", record.to or "")
    return any(records.is_p2p_end(end) or scheme_of(end) == "connection" for end in ends)


@fold.run_claim("I-P15", "I-P16", key=fold.GroupKey.LINK)
def judge_link(items: Sequence[fold.Evidence], _: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a direct link brings each message (I-P15), with the same content (I-P16)."""
    sent = {item.data[1:3]: item.data[3:5] for item in items if item.data[0] == Op.XMIT}
    for item in items:
        op, seq, runtime, mid, digest, is_direct = item.data
        if op == Op.XMIT or (seq, runtime) not in sent:
            continue
        sent_mid, sent_digest = sent[seq, runtime]
        if sent_mid != mid:
            if is_direct:
                yield item.breaks("I-P15", f"{sent_mid}, as it was sent")
        elif sent_digest is not None and sent_digest != digest:
            yield item.breaks("I-P16", "the content that was sent")


@fold.run_claim("I-P16", key=fold.GroupKey.MESSAGE)
def judge_content(items: Sequence[fold.Evidence], _: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a message arrives over a node's session as it was sent (I-P16)."""
    at_process: defaultdict[str, set[fold.Datum]] = defaultdict(set)
    sent = {item.data[1] for item in items if item.data[0] == Op.XMIT} - {None}
    for item in items:
        op, digest = item.data
        if digest is None:
            continue
        # Each observer answers a request to all observers under the same ids, with its own
        # content; a process that only relays an answer may send only an answer that it received.
        known = at_process[item.node]
        if op != Op.XMIT:
            known.add(digest)
            if op == Op.RCV and sent and digest not in sent:
                yield item.breaks("I-P16", "the content that was sent")
        elif known and digest not in known:
            yield item.breaks("I-P16", "the content that was received")


class LinkOrder(fold.ProcessClaim, claims=("I-P15", "I-P16"), across=(judge_link, judge_content)):
    """Each direction of a link brings the messages in order, once (I-P15), unchanged (I-P16).

    The numbers are judged here; `judge_link` and `judge_content` compare sender and receiver.
    """

    _last: Counter[tuple[str | None, str | None]]
    _remote: dict[str | None, str | None]
    _own: dict[str | None, str | None]

    @fold.on(fold.others(Kind.LINK))
    def take_link(self, record: TraceLine) -> None:
        if records.is_p2p_link(record):
            self._remote[record.link] = record.b
            self._own[record.link] = record.a

    @fold.on(fold.msg())
    def take_number(self, record: TraceLine) -> None:
        if record.seq is not None and records.is_p2p_end(record.stub or ""):
            direction = (record.link, record.op)
            if record.seq != self._last[direction] + 1:
                expected = f"{self._last[direction] + 1} as its number"
                self.report_break(record, expected, claim="I-P15")
            self._last[direction] = record.seq

    @fold.on(fold.msg(Op.XMIT, Op.RCV, Op.SYNTH))
    def take_crossing(self, record: TraceLine) -> None:
        if record.link in self._remote and record.op != Op.SYNTH:
            self._over_a_link(record)
        else:
            self._by_a_session(record)

    def _over_a_link(self, record: TraceLine) -> None:
        is_sent = record.op == Op.XMIT
        runtime = (self._remote if is_sent else self._own)[record.link]
        is_direct = int(records.is_p2p_end(record.stub or ""))
        data = record.op, record.seq, runtime, record.mid, record.digest, is_direct
        self.process.hand_over(judge_link, record.link, record, *data)
        if is_sent:
            self._by_a_session(record)

    def _by_a_session(self, record: TraceLine) -> None:
        self.process.hand_over(judge_content, record.mid, record, record.op, record.digest)


class SilentAfterClose(fold.ProcessClaim, claims=("I-P21",)):
    """No message comes over a link that is closed (I-P21)."""

    _closed: set[str | None]

    @fold.on(fold.others(Kind.LINK))
    def take_link(self, record: TraceLine) -> None:
        (self._closed.discard if record.op == Op.OPEN else self._closed.add)(record.link)

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        if record.link in self._closed:
            self.report_break(record, "nothing after the link was closed")


class ExactlyOnce(fold.ProcessClaim, claims=("I-P22",)):
    """A receiver gets a request once, even if it was sent over several routes (I-P22).

    A message to all observers of an object goes to the stub of its links once for each link.
    """

    _given: records.Recent[tuple[str, str], None]

    @fold.on(fold.any_msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if record.actor != records.BUS or not records.expects_answer(record):
            return
        key = (record.mid or "", record.listener or "")
        if key[1] not in self.process.listeners.of(records.BUS, record.to or ""):
            return
        if key in self._given and not _is_carried(record):
            self.report_break(record, "no second delivery")
        self._given[key] = None


def _is_carried(record: TraceLine) -> bool:
    """Return whether a stub of direct links gets a message in order to send it to others."""
    stub = (record.listener or "").removeprefix("minibus:")
    return records.is_p2p_end(stub) and not is_below(record.to or "", stub)


class RegistrationOrder(fold.ProcessClaim, claims=("I-P17",)):
    """A link becomes a route only after it is live and both buses have listeners (I-P17)."""

    _lived: set[str]

    @fold.on(fold.steps(records.LINK_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        if record.new == records.LIVE:
            self._lived.add(records.split(record.key)[-1])

    @fold.on(fold.rows(records.LISTENERS))
    def take_registration(self, record: TraceLine) -> None:
        end = record.key or ""
        if record.op != Op.ADD or not records.is_connection(end):
            return
        if record.actor == records.BUS and end not in self._lived:
            self.report_break(record, "the link to be live first")
        elif record.actor != records.BUS and not self.process.listeners.of(records.BUS, end):
            self.report_break(record, "the bus to listen first")


@fold.check("I-P18", on=fold.others(Kind.RESOLVE, Op.DONE))
def check_routers_know_route(process: fold.Process, record: TraceLine) -> None:
    """Check that a handler's side of a link is a route only if both routers know it (I-P18)."""
    end, listeners = record.result or "", process.listeners
    if not records.is_connection(end):
        return
    routers = [records.BUS, *listeners.of(records.BUS, end)]
    if len(routers) == 1 or not all(listeners.of(router, end) for router in routers):
        process.report_break("I-P18", record, f"listeners of {end} at both routers")


class Unbind(fold.ProcessClaim, claims=("I-P19",)):
    """A link that has ended leaves no listener (I-P19)."""

    _gone: dict[str, TraceLine]

    @fold.on(fold.rows("p2p"))
    def take_change(self, record: TraceLine) -> None:
        words = self.process.links.before
        if record.op == Op.DEL and len(words) > 1 and records.is_connection(words[1]):
            self._gone[words[1]] = record

    @override
    def end(self) -> None:
        for end, record in self._gone.items():
            is_over = self.process.is_over_since(record.t + records.SLACK)
            if is_over and self.process.listeners.of(records.BUS, end):
                self.report_break(record, f"no listener of {end}")


@fold.run_claim("I-P4", key=fold.GroupKey.LINK)
def judge_openings(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a link that stays open in one runtime was opened in the other (I-P4)."""
    ends = {item.data[0] for item in items}
    for item in items:
        home, peer, lasted = item.data
        is_alone = {home, peer} <= whole and peer not in ends
        is_lasting = not isinstance(lasted, float) or lasted > HANDSHAKE_TIMEOUT + records.SLACK
        if is_alone and is_lasting:
            yield item.breaks("I-P4", f"{peer} to have opened it, too")


class Agreement(fold.ProcessClaim, claims=("I-P4",), across=(judge_openings,)):
    """A link that stays open in one runtime was opened in the other, too (I-P4).

    During the proof of keys, one runtime opens the link while the other waits for the last message
    of the proof. Processes have different clocks, so which runtime closed the link first is not
    judged.
    """

    _opened: dict[str | None, tuple[TraceLine, float | None]]

    @fold.on(fold.others(Kind.LINK))
    def take_link(self, record: TraceLine) -> None:
        if records.is_p2p_link(record) and record.op == Op.OPEN:
            self._opened[record.link] = (record, None)
        elif records.is_p2p_link(record) and record.link in self._opened:
            self._opened[record.link] = (self._opened[record.link][0], record.t)

    @override
    def end(self) -> None:
        for link, (record, until) in self._opened.items():
            # A link that is never closed has no time: evidence is JSON, which has no infinity.
            lasted = None if until is None else until - record.t
            self.process.hand_over(
                judge_openings, link, record, self.process.home, record.b, lasted
            )


@fold.run_claim("I-P5", key=fold.GroupKey.PAIR)
def judge_sides(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that each handler's side of a link has a requester in the other runtime (I-P5)."""
    requesters = {item.data[1] for item in items if item.data[0] == _REQUESTER}
    for item in items:
        role, _, remote = item.data
        if role != _REQUESTER and remote in whole and remote not in requesters:
            yield item.breaks("I-P5", f"{remote} to have asked for it")


@fold.check("I-P5", on=fold.steps(records.LINK_MACHINE), across=(judge_sides,))
def report_side(process: fold.Process, record: TraceLine) -> None:
    """Provide evidence that a process has one side of a link (I-P5)."""
    own, remote, role, *_ = [*records.split(record.key), "", "", ""]
    if record.old == ABSENT and role in {_REQUESTER, _HANDLER}:
        pair = " ".join(sorted((own, remote)))
        process.hand_over(judge_sides, pair, record, role, own, remote)


class UniquePair(fold.ProcessClaim, claims=("I-P6",), is_forgetful=True):
    """Two runtimes have at most one link open at a time (I-P6)."""

    _opened: dict[str | None, str | None]

    @fold.on(fold.others(Kind.LINK))
    def take_link(self, record: TraceLine) -> None:
        if not records.is_p2p_link(record):
            return
        opened = self._opened
        if record.op == Op.CLOSE:
            if opened.get(record.b) == record.link:
                del opened[record.b]
        else:
            if record.b in opened:
                self.report_break(record, f"{opened[record.b]} to be closed first")
            opened[record.b] = record.link


_CLAIM_OF: Final = {_REQUESTER: "I-P7", _HANDLER: "I-P8"}
_Busy: TypeAlias = defaultdict[tuple[str, str], set[str]]


class OneAtATime(fold.ProcessClaim, claims=("I-P7", "I-P8"), is_forgetful=True):
    """A runtime makes no second requester while one connects to the same runtime (I-P7).

    A handler has at most one link to each remote runtime (I-P8).
    """

    _busy: _Busy

    @fold.on(fold.steps(records.LINK_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        _, remote, role, *end = [*records.split(record.key), "", "", ""]
        claim = _CLAIM_OF.get(role)
        if claim is None:
            return
        busy = self._busy[role, remote]
        if record.old == ABSENT and busy:
            self.report_break(record, f"{min(busy)} to be over first", claim=claim)
        if record.new in _OVER:
            busy.discard(end[0])
        else:
            busy.add(end[0])


class SimultaneousOpen(fold.ProcessClaim, claims=("I-P20",), is_forgetful=True):
    """If both runtimes request a link, the smaller runtime's link becomes live (I-P20).

    The other runtime's link may come up if the smaller runtime has yielded; it resumes when the
    smaller runtime's link has failed.
    """

    _at_it: dict[tuple[str, str], str]
    _losers: dict[str, str]

    @fold.on(fold.steps(records.LINK_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        own, remote, role, end, *_ = [*records.split(record.key), "", "", ""]
        at_it = self._at_it
        if record.old == ABSENT:
            at_it[remote, role] = end
            if (remote, _REQUESTER) in at_it and (remote, _HANDLER) in at_it:
                loser = at_it[remote, _HANDLER if own < remote else _REQUESTER]
                self._losers[loser] = min(own, remote)
        elif record.old == _YIELDING and (remote, _HANDLER) not in at_it:
            self._losers.pop(end, None)
        elif record.new == records.LIVE and end in self._losers:
            self.report_break(record, f"the link that {self._losers[end]} asked for")
        elif record.new == records.LIVE or record.new in _OVER:
            at_it.pop((remote, role), None)


class Writers(fold.ProcessClaim, claims=("I-P11", "I-P12")):
    """A Connection object has one writer (I-P11); a requester creates one object (I-P12)."""

    _writers: dict[str, str]
    _objects: dict[str, str]

    @fold.on(fold.others(Kind.OBJ, Op.WRITE))
    def take_write(self, record: TraceLine) -> None:
        by, key = record.by, record.key or ""
        if by is None or not records.is_p2p_end(by):
            return
        writer = self._writers.setdefault(key, by)
        if writer != by:
            self.report_break(record, f"{writer} as its one writer", claim="I-P11")
        if "/p2prequester/" in by:
            known = self._objects.setdefault(by, key)
            if known != record.key:
                self.report_break(record, f"{known} as its one object", claim="I-P12")
