"""Claims that no message is duplicated or lost, in a process and between two (I-T11, I-T12, I-L6).

In a process a message passes several components: its sender or a link submits it to the bus, the
bus admits it and delivers it to listeners, sandboxes and stubs receive it, and stubs write it to
links. No component passes it on more often than it received it (I-T11), and none loses it without a
record (I-T12).
"""

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias, TypeVar

import attrs
from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, is_node, message_node, scheme_of
from specs.reply_code import DropReason
from specs.trace import Kind, Op

_K = TypeVar("_K", bound=Hashable)

_FOREIGN: Final = "foreign"
"""Listener of a node that passes messages to the node's stubs for other domains."""

_GOES_ON: Final = frozenset({Op.DELIVER, Op.CALLBACK, Op.XMIT})

_STUBS: Final = "stubs"

_STUB: Final = "stub:"

_PROTOSTUB: Final = "/protostub/"

_CONN: Final = "/conn/"
"""Separates a handler's address from the name of one of its links; the handler sends for all."""

_CONNECTION: Final = "connection"
"""Scheme of the objects that the stubs of a link observe to set up the link."""


@attrs.define(eq=False)
class _Passage:
    """Counts of the records that one message has at each component of a process.

    Attributes:
        last: The last record of the message that is not of an answer.
        copies: How often it came to a node over a link, or from another node of the group.
        offered: How often a sender or a link submitted it to the bus.
        admitted: How often the bus admitted it.
        made: How often the bus made it, as an answer of its own.
        refusals: Like `made`, with the refusals of requests that were not admitted.
        ended: How often it was dropped or denied, with a reason each time.
        arrived: How often a stub has received it and not yet submitted it, by stub.
        given: How often the bus delivered it, by listener.
        taken: How often the bus of a sandbox received it, by bus and listener.
        sent: How often a stub sent it, by stub.
        crossed: How often it was sent over a direct link, by link.
        written: How often the bus of a node wrote it, by link, also to other nodes of its group.
        given_back: How often stubs of links returned it to the bus, unsent.
        waiting: How often it is queued, by stub or bus.
        targets: Number of links to which a node has published it.
        called: How often it was passed to the requester as an answer.
        is_answered: Whether the process has answered it itself, or passed it to another protocol.
    """

    last: TraceLine
    copies: int = 0
    offered: int = 0
    admitted: int = 0
    made: int = 0
    refusals: int = 0
    ended: int = 0
    arrived: dict[str, int] = attrs.field(factory=dict)
    given: dict[str, int] = attrs.field(factory=dict)
    taken: dict[tuple[str, str], int] = attrs.field(factory=dict)
    sent: dict[str, int] = attrs.field(factory=dict)
    crossed: dict[str, int] = attrs.field(factory=dict)
    written: dict[str, int] = attrs.field(factory=dict)
    given_back: int = 0
    waiting: Counter[str] = attrs.field(factory=Counter)
    targets: int = 0
    called: int = 0
    is_answered: bool = False

    def lack(self, recorded: AbstractSet[str]) -> str:
        """Return the missing records that prove the message lost; empty: it is not lost.

        Args:
            recorded: The operations that the process records, and the buses of sandboxes.
        """
        return "" if self.is_answered else next(self._lacks(recorded), "")

    def _lacks(self, recorded: AbstractSet[str]) -> Iterator[str]:
        """Yield the places of losses: more copies are missing there than were dropped."""
        lost = sum(self.arrived.values()) if Op.SUBMIT in recorded else 0
        if lost > self.ended:
            yield "what a link brought to be submitted, or a drop with a reason"
        if Op.ADMIT in recorded:
            lost += max(self.offered - self.admitted, 0)
            if lost > self.ended:
                yield "an admission, a refusal, or a drop with a reason"
        lost += self._untaken(recorded)
        if lost > self.ended:
            yield "every sandbox to take in what the bus gave it, or a drop with a reason"
        given_back = self.given_back
        for stub, times in self._expected_sends():
            if stub not in recorded:
                continue
            sent = sum(number for end, number in self.sent.items() if is_below(end, stub))
            missing = max(times - sent - self.waiting[stub], 0)
            # No record names the link that returned the message.
            excused = min(missing, given_back) if records.is_p2p_end(stub) else 0
            given_back -= excused
            lost += missing - excused
            if lost > self.ended:
                yield f"{stub} to send it, or a drop with a reason"
        written = sum(self.written.values()) + self.given.get(_FOREIGN, 0)
        if Op.XMIT in recorded:
            waiting = self.waiting.total()
            lost += max(self.targets - max(written + waiting, 0), 0)
            if lost > self.ended:
                yield f"{self.targets} to get it, or drops with a reason"
        went_on = self.given or self.sent or self.written or self.waiting.total() or self.called
        is_whole = not recorded.isdisjoint(_GOES_ON)
        times_in = self.admitted or self.made
        if is_whole and times_in and not (went_on or lost or self.ended or self.targets):
            yield "a delivery, an answer, or a drop with a reason"

    def _untaken(self, recorded: AbstractSet[str]) -> int:
        """Return the number of deliveries that a sandbox, or a stub of a node, did not receive."""
        lost = 0
        for name, times in self.given.items():
            if name != _FOREIGN and not (name.startswith(records.MINI_BUS) and name in recorded):
                continue
            taken = sum(
                number
                for (bus, _), number in self.taken.items()
                if bus == name or (name == _FOREIGN and bus not in self.given)
            )
            if (
                times > taken
                and (missing := times - max(taken, self._sent_by(name))) > 0
                and not self._is_passed_over(name)
            ):
                lost += missing
        return lost

    def returned(self, ended: Container[str]) -> int:
        """Return how often stubs of links may have returned the message to the bus.

        Args:
            ended: The links that have ended.
        """
        ends = (
            name for name in self.given if records.is_p2p_end(name.removeprefix(records.MINI_BUS))
        )
        unsent = sum(max(self.given[name] - self._sent_by(name), 0) for name in ends)
        return unsent + sum(times for link, times in self.crossed.items() if link in ended)

    def _is_passed_over(self, router: str) -> bool:
        """Return whether stubs of links may skip the message.

        The reporter distributes messages about a child. A message that no link could send is sent
        over the node.
        """
        is_link = records.is_p2p_end(router.removeprefix(records.MINI_BUS))
        return is_link and (self._is_child or self._goes_by_node)

    @property
    def _is_child(self) -> bool:
        return "/children/" in (self.last.to or "")

    @property
    def _goes_by_node(self) -> bool:
        """True if a stub of a node has received or sent the message."""
        is_sent = any(times for stub, times in self.sent.items() if not records.is_p2p_end(stub))
        return is_sent or any(_PROTOSTUB in stub for _, stub in self.taken)

    def _sent_by(self, router: str) -> int:
        """Return how often a stub sent the message whose sandbox does not record arrivals."""
        owner = router.removeprefix(records.MINI_BUS)
        return sum(times for stub, times in self.sent.items() if is_below(stub, owner))

    def _expected_sends(self) -> Iterator[tuple[str, int]]:
        """Yield the stubs that must send the message, and how often."""
        to = self.last.to or ""
        for (bus, stub), times in self.taken.items():
            is_link = records.is_p2p_end(stub)
            is_stub = bus == f"{records.MINI_BUS}{stub}" and (is_link or _PROTOSTUB in stub)
            if is_stub and not is_below(to, stub) and not (is_link and self._is_exempt):
                yield stub, times

    def waits_again(self) -> None:
        """Count that a stub of links has returned an unsent copy, which waits at the bus again."""
        ends = [
            bus
            for bus, stub in self.taken
            if records.is_p2p_end(stub) and bus == f"{records.MINI_BUS}{stub}"
        ]
        unsent = sum(
            self.taken[bus, bus.removeprefix(records.MINI_BUS)] - self._sent_by(bus) for bus in ends
        )
        self.given_back += unsent > self.given_back

    @property
    def _is_exempt(self) -> bool:
        """True if stubs of links need not send the message.

        A message that a direct link did not send is returned to the bus and sent over the node. A
        message about a child waits there for another path, and its request is answered or times
        out.
        """
        ends = {scheme_of(self.last.from_ or ""), scheme_of(self.last.to or "")}
        is_reported = self._is_child and records.expects_answer(self.last)
        return self._goes_by_node or is_reported or _CONNECTION in ends


def _count(times: dict[_K, int], key: _K) -> int:
    """Increase the count of a key by one and return the count."""
    times[key] = number = times.get(key, 0) + 1
    return number


class Passed(fold.ProcessClaim, claims=("I-T11", "I-T12")):
    """No component of a process passes a message on twice (I-T11) or loses it (I-T12).

    A link gets the message once, even if its stub gets it several times: a link may return a
    message that it did not deliver, without a record. A process may pass on messages whose arrival
    it does not record, such as messages of its own components. A message does not count as lost if
    it was received by a stub that records nothing, or by a sandbox that records no listeners.
    """

    _passages: dict[str, _Passage]
    _open: dict[str, _Passage]
    _recorded: set[str]
    _ended: records.Recent[str, None]

    @fold.on(fold.others(Kind.LINK, Op.CLOSE))
    def take_link_end(self, record: TraceLine) -> None:
        self._ended[record.link or ""] = None

    def _known(self, mid: str | None) -> _Passage | None:
        return self._passages.get(mid or "") or self._open.get(mid or "")

    def _passage(self, record: TraceLine) -> _Passage:
        passage = self._known(record.mid)
        if passage is None:
            passage = self._passages[record.mid or ""] = _Passage(record)
            if len(self._passages) > records.Recent.limit:
                self._forget()
        passage.last = record
        self._recorded.add(record.op or "")
        return passage

    @fold.on(fold.rows(records.LISTENERS))
    def take_row(self, record: TraceLine) -> None:
        # A bus that reports its listeners also records the messages that it receives.
        self._recorded.add(record.actor)

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        passage, stub = self._passage(record), record.by or ""
        passage.offered += 1
        if stub in passage.arrived:
            passage.arrived[stub] -= 1
            if passage.arrived[stub] < 0:
                self._twice(record)

    @fold.on(fold.msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        passage = self._passage(record)
        if record.stub is not None:
            _count(passage.arrived, record.stub)
            self._recorded.add(record.stub.partition(_CONN)[0])
            return
        passage.copies += 1
        if record.actor != records.BUS:
            return
        passage.offered += 1
        # The record of the link does not name the node's stub.
        stub = next((stub for stub, times in passage.arrived.items() if times > 0), None)
        if stub is not None:
            passage.arrived[stub] -= 1

    @fold.on(fold.msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        passage = self._passage(record)
        passage.admitted += 1
        if passage.admitted > passage.offered > 0:
            self._twice(record)

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        passage, listener = self._passage(record), record.listener or ""
        if _count(passage.given, listener) == 1:
            return
        listings = list(self.process.listeners.of(records.BUS, record.to or "")).count(listener)
        most = max(passage.admitted * max(listings, 1), passage.refusals, 1)
        if listener == _FOREIGN:
            # One delivery for each domain with a subscriber is allowed.
            most = max(most, passage.targets)
        stub = listener.removeprefix(records.MINI_BUS)
        if _PROTOSTUB in stub:
            # A message that a direct link returns is sent by another route.
            most += passage.returned(self._ended)
        # Deliveries to stubs of links are judged by what the stubs send.
        if passage.given[listener] > most and not records.is_p2p_end(stub):
            self._twice(record)

    @fold.on(fold.msg(Op.DELIVER))
    def take_acceptance(self, record: TraceLine) -> None:
        if record.actor == records.BUS:
            return
        passage, receiver = self._passage(record), (record.actor, record.listener or "")
        self._recorded.add(record.actor)
        times, given = _count(passage.taken, receiver), passage.given
        if times > 1 and times > (given.get(record.actor) or given.get(_FOREIGN) or 1):
            self._twice(record)

    @fold.on(fold.msg(Op.CALLBACK))
    def take_call(self, record: TraceLine) -> None:
        passage = self._passage(record)
        passage.called += 1
        # A second final answer is judged by `GivenAnswers`.
        if passage.called > max(passage.admitted, 1) and not records.is_final(record):
            self._twice(record)

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        passage, stub, link = self._passage(record), record.stub, record.link or ""
        if stub is not None:
            times = _count(passage.sent, stub)
            self._recorded.add(stub.partition(_CONN)[0])
            is_more = times > 1 and times > passage.taken.get(
                (f"{records.MINI_BUS}{stub}", stub), times
            )
            if records.is_p2p_end(stub):
                is_more |= _count(passage.crossed, link) > max(passage.admitted, 1)
            if is_more:
                self._twice(record)
            return
        if _count(passage.written, link) == 1:
            return
        # A request that comes twice gets the same answer twice.
        request = self._known(record.ref)
        most = max(passage.copies, 1 if request is None else request.copies, 1)
        if passage.written[link] > most and record.actor == records.BUS:
            self._twice(record)

    @fold.on(fold.msg(Op.PUBLISH))
    def take_publication(self, record: TraceLine) -> None:
        self._passage(record).targets += record.targets or 0

    @fold.on(fold.msg(Op.QUEUE))
    def take_queueing(self, record: TraceLine) -> None:
        passage, stub = self._passage(record), record.actor.removeprefix(_STUB)
        if record.actor == records.BUS:
            passage.waits_again()
        sent, taken = (
            passage.sent.get(stub, 0),
            passage.taken.get((f"{records.MINI_BUS}{stub}", stub), 0),
        )
        if sent and sent + passage.waiting[stub] >= taken:
            # A message that a link did not send is queued again.
            passage.sent[stub] = sent - 1
        passage.waiting[stub] += 1

    @fold.on(fold.msg(Op.FLUSH))
    def take_release(self, record: TraceLine) -> None:
        self._passage(record).waiting[record.actor.removeprefix(_STUB)] -= 1

    @fold.on(fold.msg(Op.DROP, Op.DENY))
    def take_end(self, record: TraceLine) -> None:
        passage, stub = self._passage(record), record.actor.removeprefix(_STUB)
        # If the stub itself had sent the message, the drop precedes the record of its receipt;
        # otherwise the stub drops the message instead of sending it.
        is_sent = passage.sent.get(stub, 0) >= passage.taken.get(
            (f"{records.MINI_BUS}{stub}", stub), 0
        )
        is_echo = record.reason == DropReason.LOOP and record.actor != records.BUS and is_sent
        passage.ended += not is_echo

    @fold.on(fold.msg(Op.SYNTH, Op.RELAY))
    def take_answer(self, record: TraceLine) -> None:
        request = self._known(record.ref)
        # If a request was not admitted, its sender gets the refusal directly, not by a listener.
        is_given = request is None or request.admitted > 0
        if record.op == Op.RELAY:
            self._passage(record).is_answered = True
        elif record.actor == records.BUS:
            passage = self._passage(record)
            passage.made += is_given
            # A request that is repeated gets an equal refusal each time.
            passage.refusals += 1
        if request is not None:
            request.is_answered = True

    def _twice(self, record: TraceLine) -> None:
        self.report_break(record, "no second copy of what came once", claim="I-T11")

    def _forget(self) -> None:
        """Forget the oldest half of the messages, except queued and incomplete ones."""
        for mid in list(self._passages)[: records.Recent.limit // 2]:
            passage = self._passages.pop(mid)
            if passage.waiting.total() or passage.lack(self._recorded):
                self._open[mid] = passage

    @override
    def end(self) -> None:
        if self.process.end is None:
            return
        for passage in (*self._open.values(), *self._passages.values()):
            if lack := passage.lack(self._recorded):
                self.report_break(passage.last, lack, claim="I-T12")


class GivenOnce(
    fold.ProcessClaim,
    claims=("I-T11",),
    place=fold.Place.RUNTIME,
    is_forgetful=True,
    tables=(records.LISTENERS,),
):
    """A listener gets an event or an answer once, even if it comes over two routes (I-T11).

    A stub of direct links may get a message once for each link over which it is to be sent.
    Requests are judged by `ExactlyOnce`.
    """

    _given: records.Recent[tuple[str, str], None]
    _known: records.Recent[str, None]
    _again: records.Recent[str, None]

    @fold.on(fold.at_bus(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if not self._known.add(record.mid or "", None):
            self._again[record.mid or ""] = None

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if records.expects_answer(record):
            return
        listener, mid = record.listener or "", record.mid or ""
        is_target = listener in self.process.listeners.of(records.BUS, record.to or "")
        is_link = records.is_p2p_end(listener.removeprefix(records.MINI_BUS))
        if not is_target or is_link:
            return
        if not self._given.add((mid, listener), None) and mid in self._again:
            self.report_break(record, "no second delivery of one message")


# --- between processes ------------------------------------------------------------------


_Sent: TypeAlias = tuple[str, fold.Evidence]
"""Id of a message that was sent, with the evidence for it."""


@fold.run_claim("I-L6", key=fold.GroupKey.PAIR)
def judge_arrivals(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that each message between two processes over a session arrives once (I-L6).

    A link that ends may lose the messages that were sent last: a message counts as lost only if a
    later one over the same link has arrived. Both processes must have complete traces.
    """
    by_link: defaultdict[tuple[str, str, str], list[_Sent]] = defaultdict(list)
    arrivals: defaultdict[str, list[fold.Evidence]] = defaultdict(list)
    times, excused = Counter[str](), Counter[str]()
    for item in items:
        op, mid, link, *_ = map(str, item.data)
        if op == Op.XMIT:
            times[mid] += 1
            by_link[item.run, item.node, link].append((mid, item))
        elif op == Op.RCV:
            arrivals[mid].append(item)
        elif op == Op.DROP or times[mid]:
            # A message that a link did not send is queued again.
            excused[mid] += 1
    *_, sender, receiver = items[-1].data
    # Stubs of other protocols do not record what they send.
    if sender not in whole or not by_link:
        return
    for mid, copies in arrivals.items():
        # A message without a sender may be of an earlier run of the sender, without a trace.
        if len(copies) > times[mid] > 0:
            yield copies[-1].breaks("I-L6", "it to arrive as often as it was sent")
    if receiver not in whole:
        return
    followed = [item for sent in by_link.values() for item in _sent_before(sent, times, arrivals)]
    latest: dict[str, fold.Evidence] = {}
    for mid, item in followed:
        latest.setdefault(mid, item)
    for mid, number in Counter(mid for mid, _ in followed).items():
        if len(arrivals.get(mid, ())) + excused[mid] < number:
            yield latest[mid].breaks("I-L6", "it to arrive: what was sent later by this link did")


def _sent_before(
    sent: Sequence[_Sent], times: Mapping[str, int], arrivals: Container[str]
) -> Iterator[_Sent]:
    """Yield the messages that a link sent before another message that certainly arrived."""
    is_followed = False
    for mid, item in reversed(sent):
        if is_followed:
            yield mid, item
        is_followed = is_followed or (times[mid] == 1 and mid in arrivals)


class Crossed(fold.ProcessClaim, claims=("I-L6",), across=(judge_arrivals,)):
    """Evidence for I-L6: the messages that a process sent and received over its sessions."""

    _nodes: dict[str, str]

    @fold.on(fold.rows(_STUBS))
    def take_deployment(self, record: TraceLine) -> None:
        stub = (record.val or "").split(" ")[0]
        if stub and not records.is_p2p_end(stub):
            self._nodes[stub] = message_node(record.key or "")

    @fold.on(fold.msg(Op.XMIT, Op.RCV))
    def take_crossing(self, record: TraceLine) -> None:
        peer = self._other(record)
        # Session control messages are handled by the node's link, which does not record them.
        is_control = any(
            is_node((end or "").removesuffix("/session")) for end in (record.from_, record.to)
        )
        if not peer or is_control:
            return
        ends = (self._own, peer) if record.op == Op.XMIT else (peer, self._own)
        self._hand_over(record, *ends)

    @fold.on(fold.msg(Op.DROP, Op.QUEUE))
    def take_drop(self, record: TraceLine) -> None:
        stub = record.actor.removeprefix(_STUB)
        peer = self._nodes.get(stub) or (record.listener if record.actor == records.BUS else None)
        if peer is not None and record.op == Op.DROP:
            self._hand_over(record, peer, self._own)
        elif peer is not None:
            self._hand_over(record, self._own, peer)

    @property
    def _own(self) -> str:
        """The address of this process."""
        process = self.process
        return process.home or (message_node(process.domain) if process.domain else "")

    def _hand_over(self, record: TraceLine, sender: str, receiver: str) -> None:
        data = record.op, record.mid, record.link, sender, receiver
        self.process.hand_over(judge_arrivals, f"{sender} {receiver}", record, *data)

    def _other(self, record: TraceLine) -> str:
        """Return the process at the other end of the session of a record; empty: no session."""
        if record.stub is None:
            return self.process.sessions.get(record.link, "")
        if records.is_p2p_end(record.stub):
            return ""
        if self.process.home is None:
            return message_node(record.stub.rpartition(_PROTOSTUB)[2].split("/")[0])
        return self._nodes.get(record.stub, "")
