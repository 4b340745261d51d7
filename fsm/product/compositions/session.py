"""A node's stub and its session at the node, over links that are cut and dialled again.

Participants: `fsm.session.stub_client`, `fsm.session.node_session`, and the node's tables
(`fsm.registry.allocation`, `fsm.sync.subscriptions`), which change with the
session in one step of the node. What may happen: any message is lost or comes twice, the link
is cut, the node restarts, the stub must disconnect, a ping is answered late or not at
all, and the runtime allocates, subscribes, unsubscribes and frees one address.

Left out, and why that is no loss:

* The end of a link is a message, by its channel behind all that was sent before; where that
  is lost, only a ping that is not answered shows it: a half-open link.
* Messages of the application, but for the first: no machine looks at them.
* A restarted node may still read what its predecessor was sent: more than can happen.
* A node challenges the key of the runtime in a composition of its own, without a restart.
"""

from collections.abc import Hashable
from functools import partial
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.machines.session import State as SessionState
from fsm.machines.stub_connection import LinkState, State
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Never,
    Patience,
    Place,
    Plan,
    Situation,
    UnsafeError,
    Wire,
)
from fsm.registry.allocation import AllocationCore
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, SessionRequest
from fsm.session.possession import Challenges
from fsm.session.stub_client import SessionAnswered, StubClientCore
from fsm.sync.subscriptions import SubscriptionCore
from specs.bodies.word import SessionMethod
from specs.jsonvalue import JsonObject
from specs.limits.protocol import PING_PERIOD, RECONNECT_BASE
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code, LinkEnd

STUB: Final = "stub"
NODE: Final = "node"
TO_NODE: Final = "to-node"
TO_STUB: Final = "to-stub"
LINKS: Final = 2
"""Maximum number of links in one run."""

_R: Final = "hyperty-runtime://a.ex/ra"
_S: Final = f"{_R}/protostub/1"
_ADDRESS: Final = "hyperty://a.ex/ha"
_SESSION: Final = "domain://msg-node.a.ex/session"
_FIRST: Final = Message(1, MessageType.CREATE, f"{_R}/h", "hyperty://b.ex/h", {})


@final
@attrs.frozen(slots=True)
class Sent:
    """A message by a link.

    Attributes:
        what: The request, answer or report.
        link: The number of the link.
        token: Of a session.
        code: Of an answer.
        challenge: What a node gives, and a proof answers.
    """

    what: str
    link: int
    token: str | None = None
    code: int = 0
    challenge: str | None = None

    @override
    def __str__(self) -> str:
        """The event in words."""
        words = [self.what, str(self.code or ""), f"by link {self.link}"]
        return " ".join(word for word in words if word)


def _half() -> float:
    return 0.5


@final
class StubPlace(Host):
    """The stub, and the link that it has or dials.

    Attributes:
        core: None until it is built.
        link: The newest link; 0: there was none.
        is_up: Whether that link is there, as far as this end knows.
        token: What it was given, by the last answer.
        is_pinging: Whether its ping is on its way by that link, or its answer, or lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written = 0
        self.core: StubClientCore = StubClientCore(_S, self, _half)
        self.is_leaving = False
        self.link: int = 0
        self.is_up: bool = False
        self.is_dialling: bool = False
        self.is_pinging = False
        self.token: str | None = None
        self.core.begin()
        self.out.clear()

    @override
    def deadline(self) -> float:
        return self.core.deadline()

    @override
    def time_over(self) -> None:
        self.core.time_over(self.now)
        self._settle()

    @property
    def is_live(self) -> bool:
        """True if it has the session, as far as it knows."""
        return self.core.state is State.LIVE

    @property
    def is_apart(self) -> bool:
        """True if it has no session, and its machine may stay so."""
        return self.core.state in {State.FAILED, State.DISCONNECTED}

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent():
                self._hear(happened)
            case "connect":
                self.core.send(_FIRST, self.now)
            case "disconnect":
                self.is_leaving = True
                self.core.disconnect(self.now)
            case "cut":
                self._lose("cut")
            case "stands":
                self.link, self.is_up, self.is_dialling = self.link + 1, True, False
                self.core.dialled(self.now)
            case "nobody":
                self.is_dialling = False
                self.core.lose_link("no node is there", self.now)
            case _:
                raise TypeError(happened)
        self._settle()

    def _lose(self, why: str) -> None:
        self.send(TO_NODE, Sent("gone", self.link))
        self._hung_up()
        self.core.lose_link(why, self.now)

    def _hung_up(self) -> None:
        self.is_up = self.is_pinging = False

    def _hear(self, said: Sent) -> None:
        if not self.is_up or said.link != self.link:
            return
        match said.what:
            case "cut":
                self._hung_up()
                self.core.lose_link("cut by the node", self.now)
            case "ping" if not said.code:
                self.send(TO_NODE, Sent("pong", self.link))
                self.core.note_life(self.now)
            case what:
                self._answered(SessionMethod(what), said)

    def _answered(self, method: SessionMethod, said: Sent) -> None:
        if said.code <= LAST_SUCCESS:
            self.token = said.token or self.token
        elif method is SessionMethod.REOPEN and not self.is_live and not self._is_asked(said):
            self.token = None
        answer = SessionAnswered(method, said.code, said.token, challenge=said.challenge)
        self.core.take_answer(answer, self.now)
        if method is SessionMethod.PING and self.is_live and not self.is_leaving:
            self.is_pinging = False
            if self.deadline() < self.now + PING_PERIOD:
                raise UnsafeError("a ping is answered, and the stub waits for its answer (STB-07)")

    def _is_asked(self, said: Sent) -> bool:
        """Return whether an answer asks for a proof; a second one is a refusal."""
        return said.challenge is not None and self.core.link is LinkState.OPENING

    def _settle(self) -> None:
        self.core.note_written(self._written)
        self._written = 0
        self.core.sessions = 0

    def _look_at(self, method: SessionMethod, token: str | None) -> None:
        self.is_pinging = self.is_pinging or method is SessionMethod.PING
        is_opening = method in {SessionMethod.OPEN, SessionMethod.REOPEN}
        if is_opening and token != self.token:
            raise UnsafeError("a session is asked for by another token than it has (MN-05)")
        if is_opening and self.is_leaving:
            raise UnsafeError("a stub goes on after the order to disconnect (I-S10)")

    # --- the port of the core

    def _nothing(self, *_: object, **__: object) -> None:
        """Nobody looks at that."""

    queued = released = refuse = drop = ended = _nothing

    def step(self, step: Step) -> None:
        """Note a step."""
        self.moved([step])

    def dial(self) -> None:
        """Have a link dialled."""
        self.is_dialling = True

    def hang_up(self) -> None:
        """Leave the link."""
        self.is_dialling = False
        if self.is_up:
            self.send(TO_NODE, Sent("gone", self.link))
        self._hung_up()

    def ask(
        self, method: SessionMethod, token: str | None = None, challenge: str | None = None
    ) -> None:
        """Send a session control."""
        self._look_at(method, token)
        self.send(TO_NODE, Sent(method.value, self.link, token, challenge=challenge))

    def write(self, message: Message) -> None:
        """Write a message, which nobody looks at."""
        del message
        self._written += 1


@final
class NodePlace(Host):
    """The node: the session of one runtime, its address, and the path to it.

    Attributes:
        session: None before it was opened, and when it is over.
        token: Of the session.
        has_key: Whether it challenges the key of the runtime.
    """

    def __init__(self, *, has_key: bool = False) -> None:
        super().__init__()
        self.session: NodeSessionCore | None = None
        self.token = ""
        self.is_pinging = False
        self.has_key = has_key
        self._challenges = Challenges()
        self._asked: tuple[str, int] | None = None
        self._cut: set[int] = set()
        self._addresses = AllocationCore()
        self._paths = SubscriptionCore(self)

    @property
    def is_linked(self) -> bool:
        """True if a link has the session."""
        return self.session is not None and self.session.link is not None

    @property
    def has_address(self) -> bool:
        """True if the runtime has its address."""
        return self._addresses.owner_of(_ADDRESS) is not None

    @property
    def has_path(self) -> bool:
        """True if a path leads to the runtime."""
        return bool(self._paths.subscribers(_ADDRESS))

    @override
    def deadline(self) -> float:
        return float("inf") if self.session is None else self.session.deadline()

    @override
    def time_over(self) -> None:
        if self.session is not None:
            self.session.time_over(self.now)

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent(what, link, token, _, challenge):
                if link not in self._cut and self._is_proven(what, link, challenge):
                    self._hear(what, link, token)
            case "restart" if self.session is not None:
                held = self.session.link
                self.session.leave()
                if held is not None:
                    self._hang_up(held)
            case str(wanted):
                self._use(wanted)
            case _:
                raise TypeError(happened)

    def _is_proven(self, what: str, link: int, shown: str | None) -> bool:
        """Challenge the key of a link that asks for a session, as `Opening.is_proven` does."""
        is_known = what == "open" or (what == "re-open" and self.session is not None)
        if not self.has_key or not is_known:
            return True
        if shown is not None and shown == self._challenges.use(link):
            return True
        challenge = None
        if shown is None:
            challenge = f"challenge on {link}"
            self._challenges.give(link, challenge)
        self.send(TO_STUB, Sent(what, link, code=Code.UNAUTHENTICATED, challenge=challenge))
        return False

    def _hear(self, what: str, link: int, token: str | None) -> None:
        is_holder = self.session is not None and self.session.link == link
        if is_holder and self.session is not None and what != "gone":
            self.is_pinging = self.is_pinging and what != "pong"
            self.session.note_life(self.now)
        match what:
            case "open":
                self._open(link)
            case "re-open" if self.session is None:
                self.send(TO_STUB, Sent(what, link, code=Code.GONE))
            case "re-open" if self.session is not None:
                self._asked = what, link
                self.session.reopen(SessionRequest(link, token, None, key=self._key), self.now)
                self._asked = None
            case "close" | "ping":
                if what == "close" and self.session is not None:
                    self.session.close(link)
                self.send(TO_STUB, Sent(what, link, code=Code.OK))
            case "gone" if self.session is not None:
                self.session.lose_link(link, "gone", self.now)
            case _:
                pass

    def _open(self, link: int) -> None:
        if self.session is None:
            self.session = NodeSessionCore(f"MN|{_R}|{link}", _R, self)
        self._asked = "open", link
        self.session.open(SessionRequest(link, None, f"token {link}", key=self._key), self.now)
        self._asked = None

    @property
    def _key(self) -> str | None:
        return "k" if self.has_key else None

    def _hang_up(self, link: int) -> None:
        self._cut.add(link)
        self.send(TO_STUB, Sent("cut", link))

    def _release(self) -> None:
        self.session, self.token, self.is_pinging = None, "", False
        self._paths.remove_runtime(_R)
        self.moved(self._addresses.release(_R, "over"))

    def _use(self, wanted: str) -> None:
        match wanted:
            case "allocate":
                self.moved(self._addresses.allocate(_R, (_ADDRESS,)))
            case "free":
                self.moved(self._addresses.free(_R, (_ADDRESS,)))
                self._paths.remove_address(_ADDRESS)
            case "subscribe":
                self._paths.subscribe(_R, (_ADDRESS,))
            case "unsubscribe":
                self._paths.unsubscribe(_R, (_ADDRESS,))
            case _:
                raise TypeError(wanted)

    # --- the port of the session

    def _nothing(self, *_: object, **__: object) -> None:
        """No message waits here, and it is the only node."""

    finish = queued = overflow = move = _nothing

    def step(self, step: Step) -> None:
        """Note a step of the session, or of the paths."""
        self.moved([step])

    def grant(self, granted: Granted) -> None:
        """Answer the link that asks."""
        self.token, self.is_pinging = granted.token, False
        self._answer(Code.OK, granted.token)

    def refuse(self, code: Code, why: str) -> None:
        """Answer the link that asks."""
        del why
        self._answer(code)

    def _answer(self, code: Code, token: str | None = None) -> None:
        if self._asked is not None:
            what, link = self._asked
            self.send(TO_STUB, Sent(what, link, token, code))

    def cut(self, link: int, why: str, end: LinkEnd) -> None:
        """Leave a link."""
        del why, end
        self.is_pinging = False
        self._hang_up(link)

    def ping(self) -> None:
        """Ask the stub for a sign of life."""
        if self.session is not None and self.session.link is not None:
            self.is_pinging = True
            self.send(TO_STUB, Sent("ping", self.session.link))

    def end(self, why: str, undelivered: tuple[Message, ...], *, is_resumable: bool) -> None:
        """Release what the session owned."""
        del why, undelivered, is_resumable
        self._release()

    # --- the port of the paths

    def path_changed(self, row: RowChanged) -> None:
        """Trace nothing."""

    def forget_routes(self) -> None:
        """Remember none."""


def _stub(now: Situation) -> StubPlace:
    return now.at(STUB, StubPlace)


def _node(now: Situation) -> NodePlace:
    return now.at(NODE, NodePlace)


def _is_new(now: Situation) -> bool:
    return _node(now).is_linked and not _node(now).has_address


def _is_open(now: Situation) -> bool:
    return _node(now).is_linked and _node(now).has_address


def _has_session(now: Situation) -> bool:
    return _node(now).session is not None


_CUTS: Final = "the link is cut"
_RESTARTS: Final = "the node restarts"
_CUT: Final[JsonObject] = {"fault": "link cut", "between": [_R, "domain://msg-node.a.ex"]}

_EVENTS: Final = (
    Event(
        "the first message is sent",
        STUB,
        "connect",
        when=lambda now: _stub(now).core.state is State.CREATED,
    ),
    Event(
        "the stub must disconnect",
        STUB,
        "disconnect",
        when=lambda now: _stub(now).core.state is not State.FAILED,
    ),
    Event(
        "a link stands",
        STUB,
        "stands",
        when=lambda now: _stub(now).is_dialling and _stub(now).link < LINKS,
        budget=None,
    ),
    Event(
        "the runtime has vanished",
        STUB,
        "nobody",
        when=lambda now: _stub(now).is_dialling and _stub(now).link == LINKS,
        budget=None,
    ),
    Event(_CUTS, STUB, "cut", when=lambda now: _stub(now).is_up, is_fault=True, done=_CUT),
    Event(_RESTARTS, NODE, "restart", when=_has_session, is_fault=True),
)


_USES: Final = (
    Event("an address is wanted", NODE, "allocate", when=_is_new),
    Event("the address is freed", NODE, "free", when=_is_open),
    Event("the address is subscribed", NODE, "subscribe", when=_is_open),
    Event("the address is unsubscribed", NODE, "unsubscribe", when=_is_open),
)


def _is_left_behind(now: Situation) -> bool:
    node = _node(now)
    return node.session is None and (node.has_address or node.has_path)


def _is_at_odds(now: Situation) -> bool:
    session = _node(now).session
    is_open = session is not None and session.state is SessionState.OPEN
    return session is not None and is_open is (session.link is None)


_NEVER: Final = (
    Never(
        "A session is over, and an address or a path of it is left.",
        "I-A7, I-M4",
        (NODE,),
        _is_left_behind,
    ),
    Never(
        "A path leads to an address without an owner.",
        "MN-12",
        (NODE,),
        lambda now: _node(now).has_path and not _node(now).has_address,
    ),
    Never(
        "A session is open without a link, or has one and is not open.",
        "I-M2",
        (NODE,),
        _is_at_odds,
    ),
    Never(
        "A stub is live and its link is gone, or it has no token.",
        "I-S8, MN-05",
        (STUB,),
        lambda now: _stub(now).is_live and not (_stub(now).is_up and _stub(now).token),
    ),
)


def _in_touch(now: Situation) -> bool:
    stub, session = _stub(now), _node(now).session
    return stub.is_live and session is not None and session.link == stub.link


_ENDS: Final = (
    End("in touch", (STUB, NODE), _in_touch),
    End("apart", (STUB, NODE), lambda now: _stub(now).is_apart and not _has_session(now)),
    End("not begun", (STUB,), lambda now: _stub(now).core.state is State.CREATED),
)

_GIVEN: Final[tuple[JsonObject, ...]] = (
    {"given": "node", "domain": "a.ex"},
    {"given": "runtime", "is": _R},
    {"given": "hyperty", "is": _ADDRESS, "in": _R, "answers": True},
    {"given": "beginning", "before": "boot"},
)


def _wire(channel: str, message: Hashable) -> Wire | None:
    """Session controls; requests to the node's tables and reports of links are left out."""
    if not isinstance(message, Sent) or message.what not in set(SessionMethod):
        return None
    if channel == TO_STUB and message.code:
        body: JsonObject = {"code": message.code}
        if message.challenge is not None:
            body["value"] = {"challenge": message.challenge}
        words: JsonObject = {"type": "response", "from": _SESSION, "to": _S, "body": body}
        return Wire("MN.a~wire~SA", words, answers=f"{message.what} by link {message.link}")
    if channel == TO_STUB or message.what == SessionMethod.PING:
        return None
    token: JsonObject = {} if message.token is None else {"token": "t1"}
    proof: JsonObject = {} if message.challenge is None else {"key": "k1", "proof": "p1"}
    body = {"method": message.what, "params": {"runtimeURL": _R, **token, **proof}}
    return Wire("SA~wire~MN.a", {"type": "execute", "from": _S, "to": _SESSION, "body": body})


def _whole(
    name: str,
    about: str,
    bounds: Bounds,
    events: tuple[Event, ...],
    patience: Patience,
) -> Composition:
    return Composition(
        name=name,
        about=about,
        places=(Place(STUB, StubPlace), Place(NODE, NodePlace)),
        channels=(Channel(TO_NODE, STUB, NODE), Channel(TO_STUB, NODE, STUB)),
        events=events,
        never=_NEVER,
        ends=_ENDS,
        bounds=bounds,
        patience=patience,
        early=1,
        horizon=RECONNECT_BASE,
        wire=_wire,
        given=_GIVEN,
    )


def compose(bounds: Bounds) -> Composition:
    """Put a stub and its session together."""
    about = "A node's stub and its session, over links that are cut and dialled again."
    return _whole("session", about, bounds, _EVENTS, Patience.NONE)


def _tables(bounds: Bounds) -> Composition:
    about = "The same; the runtime uses an address at the node, and no link is cut."
    events = tuple(event for event in _EVENTS if event.name not in {_CUTS, _RESTARTS})
    return _whole("session-tables", about, bounds, (*events, *_USES), Patience.AT_REST)


def _proving(bounds: Bounds) -> Composition:
    about = "The same; the node wants a proof of the runtime's key, and does not restart."
    events = tuple(event for event in _EVENTS if event.name != _RESTARTS)
    places = (Place(STUB, StubPlace), Place(NODE, partial(NodePlace, has_key=True)))
    whole = _whole("session-proof", about, bounds, events, Patience.NONE)
    return attrs.evolve(whole, places=places)


SESSION: Final = Plan("session", compose, Bounds(losses=1, duplicates=1, channel=1))
"""A link that is cut, a node that restarts."""

SESSION_TABLES: Final = Plan("session-tables", _tables, Bounds(losses=1, duplicates=1, channel=1))
"""The addresses of the session."""

SESSION_PROOF: Final = Plan("session-proof", _proving, Bounds(losses=1, duplicates=1, channel=1))
"""A node that challenges the key of the runtime."""
