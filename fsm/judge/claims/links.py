"""Folds of direct links: their lives, their routes and their traffic (I-P4..I-P22).

An end of a link is an entity `own runtime|remote runtime|role|address of the end`. Its steps
are judged by the replay of its machine.
"""

from collections import Counter, defaultdict
from typing import Final, TypeAlias, final

import attrs
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


@final
class SentEarly(fold.Fold, claims=("I-P13", "I-P14")):
    """A link carries messages only while it is live (I-P14).

    What sets a link up does not go over it before that, either (I-P13).
    """

    _states: dict[str, str] = attrs.field(factory=dict)

    @fold.on(fold.steps(records.LINK_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        self._states[records.split(record.key)[-1]] = record.new or ""

    @fold.on(fold.any_msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if self._states.get(record.stub or "", records.LIVE) == records.LIVE:
            return
        if _is_signalling(record):
            self.broken(record, "signalling by the node", claim="I-P13")
        else:
            self.broken(record, f"{record.stub} to be live", claim="I-P14")


def _is_signalling(record: TraceLine) -> bool:
    ends = (record.from_ or "", record.to or "")
    return any(records.is_p2p_end(end) or scheme_of(end) == "connection" for end in ends)


@final
class SentAndCame(fold.Across, claims=("I-P15", "I-P16"), key=fold.GroupKey.LINK):
    """A direct link brings what was sent (I-P15), with the same content (I-P16)."""

    _sent: dict[tuple[str | int | float | None, ...], fold.Evidence] = attrs.field(factory=dict)
    _came: list[fold.Evidence] = attrs.field(factory=list)

    @override
    def take(self, item: fold.Evidence) -> None:
        op, seq, runtime, *_ = item.data
        if op == Op.XMIT:
            self._sent[seq, runtime] = item
        else:
            self._came.append(item)

    @override
    def end(self) -> None:
        for item in self._came:
            _, seq, runtime, mid, digest, is_direct = item.data
            sent = self._sent.get((seq, runtime))
            if sent is None:
                continue
            _, _, _, sent_mid, sent_digest, _ = sent.data
            if sent_mid != mid:
                if is_direct:
                    self.broken(item, f"{sent_mid}, as it was sent", claim="I-P15")
            elif sent_digest is not None and sent_digest != digest:
                self.broken(item, "the content that was sent", claim="I-P16")


@final
class SameContent(fold.Across, claims=("I-P16",), key=fold.GroupKey.MESSAGE):
    """A message arrives by a session of a message node as it was sent (I-P16)."""

    _sent: set[fold.Datum] = attrs.field(factory=set)
    _came: list[fold.Evidence] = attrs.field(factory=list)
    _at_process: dict[str, set[fold.Datum]] = attrs.field(factory=dict)

    @override
    def take(self, item: fold.Evidence) -> None:
        op, digest = item.data
        if digest is None:
            return
        # A request to all observers is answered by each of them under the same ids, with the
        # content of each; who only relays an answer may send only what it received.
        known = self._at_process.setdefault(item.node, set())
        if op == Op.XMIT:
            self._sent.add(digest)
            if known and digest not in known:
                self.broken(item, "the content that was received")
            return
        known.add(digest)
        if op == Op.RCV:
            self._came.append(item)

    @override
    def end(self) -> None:
        for item in self._came if self._sent else ():
            if item.data[1] not in self._sent:
                self.broken(item, "the content that was sent")


@final
class LinkOrder(fold.Fold, claims=("I-P15", "I-P16"), across=(SentAndCame, SameContent)):
    """Each direction of a link brings what was sent, in order, once (I-P15), unchanged (I-P16).

    The numbers are judged here; `SentAndCame` and `SameContent` compare both ends.
    """

    _last: Counter[tuple[str | None, str | None]] = attrs.field(factory=Counter)
    _remote: dict[str | None, str | None] = attrs.field(factory=dict)
    _own: dict[str | None, str | None] = attrs.field(factory=dict)

    @fold.on(fold.others(Kind.LINK))
    def link(self, record: TraceLine) -> None:
        if records.is_p2p_link(record):
            self._remote[record.link] = record.b
            self._own[record.link] = record.a

    @fold.on(fold.msg())
    def numbered(self, record: TraceLine) -> None:
        if record.seq is not None and records.is_p2p_end(record.stub or ""):
            at = (record.link, record.op)
            if record.seq != self._last[at] + 1:
                expected = f"{self._last[at] + 1} as its number"
                self.broken(record, expected, claim="I-P15")
            self._last[at] = record.seq

    @fold.on(fold.msg(Op.XMIT, Op.RCV))
    def crossed(self, record: TraceLine) -> None:
        if record.link in self._remote:
            self._over_a_link(record)
        else:
            self._by_a_session(record)

    @fold.on(fold.msg(Op.SYNTH))
    def made(self, record: TraceLine) -> None:
        self._by_a_session(record)

    def _over_a_link(self, record: TraceLine) -> None:
        is_sent = record.op == Op.XMIT
        runtime = (self._remote if is_sent else self._own)[record.link]
        is_direct = int(records.is_p2p_end(record.stub or ""))
        data = record.op, record.seq, runtime, record.mid, record.digest, is_direct
        self.hand_over(SentAndCame, record.link, record, *data)
        if is_sent:
            self._by_a_session(record)

    def _by_a_session(self, record: TraceLine) -> None:
        self.hand_over(SameContent, record.mid, record, record.op, record.digest)


@final
class SilentAfterClose(fold.Fold, claims=("I-P21",)):
    """Nothing comes over a link that is closed (I-P21)."""

    _closed: set[str | None] = attrs.field(factory=set)

    @fold.on(fold.others(Kind.LINK))
    def link(self, record: TraceLine) -> None:
        (self._closed.discard if record.op == Op.OPEN else self._closed.add)(record.link)

    @fold.on(fold.any_msg(Op.RCV))
    def came(self, record: TraceLine) -> None:
        if record.link in self._closed:
            self.broken(record, "nothing after the link was closed")


@final
class ExactlyOnce(fold.Fold, claims=("I-P22",)):
    """A request is given to its receiver once, for any routes it was sent by (I-P22).

    A message to all observers of an object goes to the stub of its links once for each link.
    """

    _given: records.Recent[tuple[str, str], None] = attrs.field(factory=records.Recent)

    @fold.on(fold.any_msg(Op.DELIVER))
    def delivered(self, record: TraceLine) -> None:
        if record.actor != records.BUS or not records.expects_answer(record):
            return
        at = (record.mid or "", record.listener or "")
        if at[1] not in self.process.listeners.of(records.BUS, record.to or ""):
            return
        if at in self._given and not _is_carried(record):
            self.broken(record, "no second delivery")
        self._given[at] = None


def _is_carried(record: TraceLine) -> bool:
    """Return whether a message is given to a stub of direct links for others."""
    stub = (record.listener or "").removeprefix("minibus:")
    return records.is_p2p_end(stub) and not is_below(record.to or "", stub)


@final
class RegistrationOrder(fold.Fold, claims=("I-P17",)):
    """Live first, then the bus listens, then the handler's, then it is a route (I-P17)."""

    _lived: set[str] = attrs.field(factory=set)

    @fold.on(fold.steps(records.LINK_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        if record.new == records.LIVE:
            self._lived.add(records.split(record.key)[-1])

    @fold.on(fold.rows(records.LISTENERS))
    def registered(self, record: TraceLine) -> None:
        end = record.key or ""
        if record.op != Op.ADD or not records.is_connection(end):
            return
        if record.actor == records.BUS and end not in self._lived:
            self.broken(record, "the link to be live first")
        elif record.actor != records.BUS and not self.process.listeners.of(records.BUS, end):
            self.broken(record, "the bus to listen first")


@final
class RouteNeedsListener(fold.Fold, claims=("I-P18",)):
    """A handler's end is a route only if both routers know it (I-P18)."""

    @fold.on(fold.others(Kind.RESOLVE, Op.DONE))
    def resolved(self, record: TraceLine) -> None:
        end = record.result or ""
        if not records.is_connection(end):
            return
        listeners = self.process.listeners
        routers = [records.BUS, *listeners.of(records.BUS, end)]
        if len(routers) == 1 or not all(listeners.of(router, end) for router in routers):
            self.broken(record, f"listeners of {end} at both routers")


@final
class Unbind(fold.Fold, claims=("I-P19",)):
    """No listener stays of a link that is over (I-P19)."""

    _gone: dict[str, TraceLine] = attrs.field(factory=dict)

    @fold.on(fold.rows("p2p"))
    def changed(self, record: TraceLine) -> None:
        words = self.process.links.before
        if record.op == Op.DEL and len(words) > 1 and records.is_connection(words[1]):
            self._gone[words[1]] = record

    @override
    def end(self) -> None:
        for end, record in self._gone.items():
            is_over = self.process.is_over_since(record.t + records.SLACK)
            if is_over and self.process.listeners.of(records.BUS, end):
                self.broken(record, f"no listener of {end}")


@final
class OpenedAtBoth(fold.Across, claims=("I-P4",), key=fold.GroupKey.LINK):
    """A link that stays open at one end was opened at the other, too (I-P4)."""

    _opened: list[fold.Evidence] = attrs.field(factory=list)

    @override
    def take(self, item: fold.Evidence) -> None:
        self._opened.append(item)

    @override
    def end(self) -> None:
        ends = {item.data[0] for item in self._opened}
        for item in self._opened:
            home, peer, lasted = item.data
            is_alone = {home, peer} <= self.whole and peer not in ends
            is_lasting = not isinstance(lasted, float) or lasted > HANDSHAKE_TIMEOUT + records.SLACK
            if is_alone and is_lasting:
                self.broken(item, f"{peer} to have opened it, too")


@final
class Agreement(fold.Fold, claims=("I-P4",), across=(OpenedAtBoth,)):
    """A link that stays open at one end was opened at the other, too (I-P4).

    The end that is proven first is alone while the other waits for the last word of the proof.
    Processes have clocks of their own, so which end closed it first is not judged.
    """

    _opened: dict[str | None, tuple[TraceLine, float | None]] = attrs.field(factory=dict)

    @fold.on(fold.others(Kind.LINK))
    def link(self, record: TraceLine) -> None:
        if records.is_p2p_link(record) and record.op == Op.OPEN:
            self._opened[record.link] = (record, None)
        elif records.is_p2p_link(record) and record.link in self._opened:
            self._opened[record.link] = (self._opened[record.link][0], record.t)

    @override
    def end(self) -> None:
        for link, (record, until) in self._opened.items():
            # A link that is never closed has no time: evidence is JSON, which has no infinity.
            lasted = None if until is None else until - record.t
            self.hand_over(OpenedAtBoth, link, record, self.process.home, record.b, lasted)


@final
class AskedFirst(fold.Across, claims=("I-P5",), key=fold.GroupKey.PAIR):
    """A handler's end is there because a requester's was created (I-P5)."""

    _asked: set[str] = attrs.field(factory=set)
    _handlers: list[fold.Evidence] = attrs.field(factory=list)

    @override
    def take(self, item: fold.Evidence) -> None:
        role, own, _ = item.data
        if role == _REQUESTER:
            self._asked.add(str(own))
        else:
            self._handlers.append(item)

    @override
    def end(self) -> None:
        for item in self._handlers:
            _, _, remote = item.data
            if remote in self.whole and remote not in self._asked:
                self.broken(item, f"{remote} to have asked for it")


@final
class SideOrder(fold.Fold, claims=("I-P5",), across=(AskedFirst,)):
    """A handler's end is there because a requester's was created (I-P5)."""

    @fold.on(fold.steps(records.LINK_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        own, remote, role, *_ = [*records.split(record.key), "", "", ""]
        if record.old == ABSENT and role in {_REQUESTER, _HANDLER}:
            self.hand_over(AskedFirst, " ".join(sorted((own, remote))), record, role, own, remote)


@final
class UniquePair(fold.Fold, claims=("I-P6",), is_forgetful=True):
    """Two runtimes have one link open at a time (I-P6)."""

    _opened: dict[str | None, str | None] = attrs.field(factory=dict)

    @fold.on(fold.others(Kind.LINK))
    def link(self, record: TraceLine) -> None:
        if not records.is_p2p_link(record):
            return
        opened = self._opened
        if record.op == Op.CLOSE:
            if opened.get(record.b) == record.link:
                del opened[record.b]
        else:
            if record.b in opened:
                self.broken(record, f"{opened[record.b]} to be closed first")
            opened[record.b] = record.link


_CLAIM_OF: Final = {_REQUESTER: "I-P7", _HANDLER: "I-P8"}
_Busy: TypeAlias = defaultdict[tuple[str, str], set[str]]


@final
class OneAtATime(fold.Fold, claims=("I-P7", "I-P8"), is_forgetful=True):
    """No requester is made for a runtime while another one is at it (I-P7).

    A handler has one end for each remote runtime (I-P8).
    """

    _busy: _Busy = attrs.field(factory=lambda: defaultdict(set))

    @fold.on(fold.steps(records.LINK_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        _, remote, role, *end = [*records.split(record.key), "", "", ""]
        claim = _CLAIM_OF.get(role)
        if claim is None:
            return
        busy = self._busy[role, remote]
        if record.old == ABSENT and busy:
            self.broken(record, f"{min(busy)} to be over first", claim=claim)
        if record.new in _OVER:
            busy.discard(end[0])
        else:
            busy.add(end[0])


@final
class SimultaneousOpen(fold.Fold, claims=("I-P20",), is_forgetful=True):
    """If both runtimes ask for a link, that of the smaller one comes up (I-P20).

    The other one may come up if it has yielded, and resumes when the smaller one's has failed.
    """

    _at_it: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _losers: dict[str, str] = attrs.field(factory=dict)

    @fold.on(fold.steps(records.LINK_MACHINE))
    def stepped(self, record: TraceLine) -> None:
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
            self.broken(record, f"the link that {self._losers[end]} asked for")
        elif record.new == records.LIVE or record.new in _OVER:
            at_it.pop((remote, role), None)


@final
class Writers(fold.Fold, claims=("I-P11", "I-P12")):
    """A Connection object has one writer (I-P11), and a requester reports one of them (I-P12)."""

    _writers: dict[str, str] = attrs.field(factory=dict)
    _objects: dict[str, str] = attrs.field(factory=dict)

    @fold.on(fold.others(Kind.OBJ, Op.WRITE))
    def written(self, record: TraceLine) -> None:
        by, key = record.by, record.key or ""
        if by is None or not records.is_p2p_end(by):
            return
        writer = self._writers.setdefault(key, by)
        if writer != by:
            self.broken(record, f"{writer} as its one writer", claim="I-P11")
        if "/p2prequester/" in by:
            known = self._objects.setdefault(by, key)
            if known != record.key:
                self.broken(record, f"{known} as its one object", claim="I-P12")
