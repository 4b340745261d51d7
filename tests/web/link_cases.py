"""Golden data of direct links: what the cores in Python do with random inputs.

Each end has data channels only, as in a browser. `objects.mjs` replays the cases.
"""

import json
import math
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

from actors.runtime.p2p.handshake import read_control
from fsm.bus.receiving_order import NODE_PATH, PairOrderCore
from fsm.bus.sending_order import Announce, PairPathCore
from fsm.engine import Step
from fsm.p2p.dialling import UNSIGNED, Believed, DialPolicy, Distrusted, Standing
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from fsm.p2p.transfer import Ack, Behind, Bye, Numbered, P2PTransferCore, Ping, Pong
from specs.bodies.object import Candidate, ConnectionData, ConnectionDescription, IceCandidate
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits.p2p import ORDER_SENT, STUB_DELAY
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import DURABLE, Message, MessageType, instance_id
from tests.support.link_calls import Call, is_asked, tell, told_end
from tests.web.object_cases import Case, Tape, calls, camel, plain

OWN, REMOTE = "hyperty-runtime://a.example/b", "hyperty-runtime://a.example/"
PEER_OBJECT = "connection://a.example/2"
POLICY = DialPolicy(("webrtc",))
ICE = [f"candidate:{n} 1 udp 1 8.8.8.{n} 5000 typ host" for n in range(3)]


def ice_of(candidate: str) -> Any:
    return {"candidate": candidate, "sdpMid": "0", "sdpMLineIndex": 0}


def asked_of(asked: Step | Call) -> Any:
    """Return what an end asks for as a page does."""
    if isinstance(asked, Step):
        return calls([asked])[0]
    given = [value for _, value in asked.arguments]
    match asked.name:
        case "pin":
            given = [_believed(asked.peer)]
        case "offer":
            given = [asked.sdp]
        case "trickle" | "hear_ice":
            given = [ice_of(asked.candidate)]
        case "dial":
            given = [getattr(asked.candidate, "sdp", "")]
    return (camel(asked.name), *given)


def _believed(peer: Believed) -> Any:
    identity = {"runtime": peer.identity.runtime, "user": None, "vouchedBy": "none"}
    return {"identity": identity, "fingerprint": peer.fingerprint, "until": plain(peer.until)}


class _Story:
    """One end, and what may happen to it next."""

    def __init__(self, random: Random, role: str) -> None:
        remote = REMOTE + random.choice("ac")
        terms = LinkTerms(OWN, remote, f"{OWN}/p2p{role}/1", f"{remote}/peer")
        self.random, self.role, self.terms, self.now = random, role, terms, 0.0
        self.tape = Tape("LinkEnd", plain(terms), role, PEER_OBJECT)
        self.tape.case["args"][0].pop("do")
        offer = PEER_OBJECT if role == "handler" else ""
        self.core = told_end(terms, Role(role), POLICY, offer)
        self.negotiation, self.attempt, self.pleas, self.links = 1, 0, 0, 0
        self.link = ""

    def feed(self, happened: Call, name: str, *given: Any, is_timed: bool = False) -> None:
        effects = self.core.tell(happened, self.now)
        for one in effects:
            if is_asked(one, "renew"):
                self.negotiation = one.negotiation
            elif is_asked(one, "dial"):
                self.attempt = one.attempt
            elif is_asked(one, "use_link"):
                self.link = one.link
        more = [self.now] if is_timed else []
        self.tape.note(name, [*given, *more], [asked_of(one) for one in effects])
        if not self.core.has_ended:
            self.tape.note("deadline", [], self.core.deadline())
        self.tape.note("state", [], self.core.state)
        self.tape.note("hasEnded", [], self.core.has_ended)

    def standing(self) -> tuple[Standing, Any]:
        match self.random.randrange(8):
            case 0:
                return UNSIGNED, None
            case 1 if self.random.random() < 0.3:
                return Distrusted("no"), "no"
            case _:
                until = self.random.choice([math.inf, 500.0])
                print_ = self.random.choice(["sha-256 AA"] * 9 + ["sha-256 BB"])
                peer = Believed(SenderIdentity(self.terms.remote), "", until, print_)
                return peer, _believed(peer)

    def seen(self) -> None:
        number = self.negotiation + self.random.choice([0, 0, 0, 0, 1, -1])
        status = "" if number <= 1 else f"negotiation-{number}"
        if self.random.random() < 0.05:
            self.pleas += 1
            status = f"{status}-unreachable-{self.pleas}".removeprefix("-")
        standing, said = self.standing()
        sdp = f"sdp {number}"
        found = self.random.sample(ICE, self.random.randrange(3))
        ice = tuple(IceCandidate(one, "-", "0", 0) for one in found)
        listener = Candidate("tcp", "8.8.8.8:5", "s")
        data = ConnectionData(
            f"{self.terms.remote}/peer", status, ConnectionDescription("offer", sdp), (listener,)
        )
        seen = {"status": status, "sdp": sdp, "standing": said}
        seen["ice"] = [ice_of(one) for one in found]
        self.feed(tell.peer_object_seen(data, standing, ice), "peerSeen", seen, is_timed=True)

    def opened(self) -> None:
        # A data channel opens once in a negotiation.
        number = self.negotiation if self.core.state == "in-progress" else self.negotiation + 1
        self.links += 1
        opening = Opening.DIALLED if self.role == "requester" else Opening.ACCEPTED
        link = f"link {self.links}"
        happened = tell.link_opened(link, opening, number)
        self.feed(happened, "linkOpened", link, number, is_timed=True)

    def lost(self) -> None:
        is_orderly = self.random.random() < 0.2
        link = self.random.choice([self.link, "another"])
        loss = Loss.ORDERLY if is_orderly else Loss.BROKEN
        happened = tell.link_lost(link, loss, "cut")
        self.feed(happened, "linkLost", link, is_orderly, "cut", is_timed=True)

    def own_object(self) -> None:
        number = self.negotiation + self.random.choice([0, 0, 0, -1])
        match self.random.randrange(6):
            case 0 | 1 if self.core.state == "created":
                self.feed(tell.object_created(), "objectCreated", is_timed=True)
            case 2 if self.core.state == "created" and self.random.random() < 0.1:
                self.feed(tell.object_refused("no"), "objectRefused", "no")
            case 3:
                code = self.random.choice([200, 200, 200, 403])
                happened = tell.invitation_answered(code, "so")
                self.feed(happened, "invitationAnswered", code, "so")
            case 4:
                self.feed(tell.candidates_ready((), number, "mine"), "described", "mine", number)
            case _:
                one = self.random.choice(ICE)
                self.feed(tell.ice_found(one, number), "iceFound", ice_of(one), number)

    def command(self) -> None:
        number = self.random.choice([1, self.negotiation])
        match self.random.randrange(6):
            case 0 | 1:
                self.feed(tell.connect(), "connect", is_timed=True)
            case 2 if self.random.random() < 0.1:
                self.feed(tell.disconnect("bye"), "disconnect", "bye")
            case 3 if self.role == "requester":
                self.feed(tell.yield_to_peer(number), "yieldToPeer", number)
            case 4 if self.role == "requester":
                self.feed(tell.resume(number), "resume", number)
            case _:
                if self.random.random() < 0.3:
                    self.now = min(max(self.now, self.core.deadline()), self.now + 30)
                self.feed(tell.time_over(), "timeOver", is_timed=True)

    def peer(self) -> None:
        match self.random.randrange(12):
            case 0:
                self.feed(tell.observe_refused("gone"), "observeRefused", "gone")
            case 1:
                self.feed(tell.peer_object_deleted(), "peerDeleted")
            case 2 | 3:
                source = self.random.choice([self.terms.peer, "somebody"])
                happened = tell.peer_invited(PEER_OBJECT, source)
                self.feed(happened, "peerInvited", PEER_OBJECT, source)
            case 4 | 5 if self.attempt:
                self.feed(tell.dial_failed(self.attempt), "dialFailed", self.negotiation)
            case _:
                self.seen()

    def tell(self) -> Case:
        self.feed(tell.start(), "start", is_timed=True)
        if self.role == "handler":
            has_own = self.random.random() < 0.3
            self.feed(tell.row_reported(has_own), "rowReported", has_own, is_timed=True)
        acts = [self.seen, self.opened, self.lost, self.own_object, self.command, self.peer]
        for _ in range(50):
            self.now += self.random.choice([0.0, 0.1, 0.5])
            self.random.choice(acts)()
        return self.tape.case


def ends(random: Random) -> Case:
    return _Story(random, random.choice(["requester", "handler"])).tell()


def transfers(random: Random) -> Case:
    """A live link: messages, acknowledgements, silence."""
    now = 0.0
    tape, core = Tape("TransferCore", now), P2PTransferCore(now)
    for number in range(1, 60):
        now += random.choice([0.0, 0.1, 3.0])
        match random.randrange(9):
            case 0 | 1 | 2:
                one = Message(number, MessageType.READ, "a://a.ex/a", "a://a.ex/b", {})
                taken = core.send(one)
                tape.note("send", [message_of(one)], taken)
            case 3:
                core.taken(core.received(Message(1, MessageType.READ, "a", "b", {}), now))
                tape.note("received", [now], None)
            case 4:
                control = random.choice([Ack(random.randrange(number)), Ping(), Pong()])
                core.heard(control, now)
                tape.note("heard", [line_of(control), now], None)
            case 5 if random.random() < 0.5:
                now = max(now, min(core.deadline(), now + 25))
                core.time_passed(now)
                tape.note("timePassed", [now], None)
            case 6 if random.random() < 0.1:
                tape.note("owed", [], [message_of(one) for one in core.owed()])
            case _:
                written = [line_of(one) for one in core.take_output(64, now)]
                tape.note("takeOutput", [now], written)
        tape.note("deadline", [], core.deadline())
        tape.note("end", [], core.end)
    return tape.case


def message_of(one: Message) -> Any:
    return {"id": one.id, "type": one.type.value, "from": one.from_, "to": one.to, "body": {}}


def line_of(one: object) -> Any:
    match one:
        case Numbered(seq, message):
            return {"message": message_of(message), "seq": seq}
        case Ack(seq):
            return {"p2p": "ack", "seq": seq}
        case Ping() | Pong() | Bye():
            return {"p2p": type(one).__name__.lower()}
    raise AssertionError(one)


def sending_orders(random: Random) -> Case:
    """What a link announces of messages that went by the node, some of them twice.

    Some are answered or refused; when the link ends, some that it had return, and go by the node.
    """
    tape, core, now = Tape("Order"), PairPathCore(), 0.0
    recent: list[Message] = []
    by_link: dict[tuple[str, str], list[Message]] = {}

    def send(one: Message, *, is_back: bool = False) -> None:
        is_by_node = (one.from_, one.to) not in by_link
        (sent,) = core.send(one, "node" if is_by_node else LINK, now) or ()
        told = None if sent.behind is None else _line(sent.behind)
        tape.note("sent", [_whole(one), is_by_node, is_back, now], told)

    for number in range(1, 120):
        now += random.choice([0.0, 0.25, 0.25, 4.0, REPLY_TIMEOUT])
        one = _of_pair(random, number)
        match random.randrange(8):
            case 0 | 1 if recent:
                request, is_reached = random.choice(recent), random.random() < 0.5
                told = [
                    _line(effect.behind)
                    for effect in core.settled(request, now, is_reached=is_reached)
                    if isinstance(effect, Announce)
                ]
                tape.note("settled", [_whole(request), is_reached, now], told)
            case 2 if recent:
                send(random.choice(recent))
            case 3 if by_link:
                now += STUB_DELAY
                back = [each for messages in by_link.values() for each in messages[-2:]]
                core.returned(tuple(back), now, LINK)
                core.link_ended(LINK, now)
                by_link.clear()
                tape.note("lost", [], None)
                for each in back:
                    send(each, is_back=True)
            case 4:
                by_link[one.from_, one.to] = [*by_link.get((one.from_, one.to), []), one]
                send(one)
            case _:
                recent = [*recent, one][-6:]
                send(one)
                if (one.from_, one.to) not in by_link:
                    behind = core.behind(one.from_, one.to, now)
                    tape.note("behind", [one.from_, one.to, now], _line(behind))
    return tape.case


def announcements(random: Random) -> Case:
    """Announcements as peers may write them."""
    tape = Tape("Order")
    for _ in range(20):
        line = {
            "last": random.choice([1, "name", None, [1]]),
            "top": random.choice([0, 7, 7, 7, "7"]),
            "age": random.choice([0, 1.5, 1.5, 1.5, -1, "1"]),
            "answers": random.choice([[], [7], [[7, 7]], [7, 7], [*range(65)], [*range(64)], 7]),
        }
        kept = {name: value for name, value in line.items() if random.random() < 0.95}
        ends = {"p2p": "behind", "from": PAIRS[0][0], "to": random.choice([*PAIRS[0], "no URL"])}
        try:
            read = read_control(json.dumps(ends | kept).encode())
            assert isinstance(read, Behind)
            tape.note("read", [ends | kept], _line(read))
        except BadMessageError:
            tape.note("read", [ends | kept], "refused")
    return tape.case


def receiving_orders(random: Random) -> Case:
    """What links have brought too early, while the node brings, or loses, what was before it."""
    tape, core, now = Tape("Order"), PairOrderCore[tuple[Message, str]](), 0.0
    under_way: dict[tuple[str, str], list[Message]] = {pair: [] for pair in PAIRS}

    def note(name: str, given: list[Any], due: list[tuple[Message, str]] | None) -> None:
        """Take what is due as the Message BUS does."""
        assert due is not None
        queue, taken = deque(due), list[tuple[str, bool]]()
        while queue:
            message, path = queue.popleft()
            is_late = core.is_late(message, path)
            taken.append((instance_id(message), is_late))
            queue.extend([] if is_late else core.given(message, path, now))
        tape.note(name, [*given, now], sorted(taken) if name == "tick" else taken)

    for number in range(1, 160):
        now += random.choice([0.0, 0.0, 0.25, 1.0])
        note("tick", [], core.tick(now))
        one = _of_pair(random, number)
        pair, link = (one.from_, one.to), random.choice(["link", "link", "link", "other"])
        match random.randrange(8):
            case 0:
                under_way[pair].append(one)
            case 1 | 2:
                under_way[pair] += [one] if random.random() < 0.9 else []
                behind = _predecessors(random, pair, under_way[pair])
                note("announced", [_line(behind), link], core.announced(behind, link, now))
            case 3 | 4 if under_way[pair]:
                if random.random() < 0.4:
                    del under_way[pair][:-1]  # they are lost
                for came in under_way[pair][:1]:
                    note("came", [_whole(came)], core.arrives(came, NODE_PATH, (came, NODE_PATH)))
                del under_way[pair][: random.random() < 0.9]
            case _:
                note("take", [_whole(one), link], core.arrives(one, link, (one, link)))
    return tape.case


def _predecessors(random: Random, pair: tuple[str, str], under_way: list[Message]) -> Behind:
    """Announce what is under way by the node."""
    answers = [one for one in under_way if one.is_response]
    top = max((one.id for one in under_way if not one.is_response), default=0)
    last = instance_id(answers[-1]) if answers else top or None
    age = random.choice([0.0, 0.0, 3.0, REPLY_TIMEOUT - 0.5, REPLY_TIMEOUT])
    many = range(1000, 1000 + random.choice([0, 0, 0, ORDER_SENT]))
    return Behind(*pair, last, top, age, frozenset([*many, *(one.id for one in answers)]))


LINK = "hyperty-runtime://a.ex/r/p2phandler/1"
PAIRS = [("hyperty://a.ex/a", "hyperty://b.ex/b"), ("hyperty://b.ex/b", "hyperty://a.ex/a")]


def _of_pair(random: Random, number: int) -> Message:
    """Return a request or answer of a pair."""
    from_, to = random.choice(PAIRS)
    if random.random() < 0.5:
        via = random.choice([[], ["hyperty-runtime://a.ex/r/protostub/1", "domain://b.ex/p"]])
        return Message(number, MessageType.RESPONSE, from_, to, {"code": 200, "via": via})
    return Message(number, MessageType.READ, from_, to, random.choice([{}, {}, {DURABLE: 7}]))


def _whole(one: Message) -> Any:
    return message_of(one) | {"body": dict(one.body)}


def _line(behind: Behind) -> Any:
    line = {"p2p": "behind", "from": behind.from_, "to": behind.to}
    if behind.last is None:
        return line
    named = {"last": behind.last, "top": behind.top, "answers": sorted(behind.answers)}
    return line | named | {"age": round(behind.age, 3)}


def cases(seed: int, count: int) -> Iterator[Case]:
    """Return as many cases of each kind."""
    for make in (ends, transfers, sending_orders, receiving_orders, announcements):
        for number in range(count):
            yield make(Random(f"{make.__name__} {seed} {number}"))  # noqa: S311 - repeatable
