"""Composition of a node's stub and its session, over links that are cut and dialled again.

Participants: `fsm.session.stub_client`, `fsm.session.node_session`, and the node's tables
(`fsm.registry.allocation`, `fsm.sync.subscriptions`), which change with the session in one step of
the node. Faults and events: any message is lost or comes twice, the link is cut, the node restarts,
the stub must disconnect, a ping is answered late or not at all, and the runtime allocates,
subscribes, unsubscribes and frees one address.

Left out, and why the result is still valid:

* The end of a link is a message, sent over its channel after all other messages; if it is lost,
  only an unanswered ping reveals a half-open link.
* Messages of the application, except the first: no machine depends on them.
* A restarted node may still read messages to its predecessor: this is more than can happen.
* A node requires a proof of the runtime's key in another composition, without a restart.
"""

import math
from functools import partial
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.explore import composition as plan
from fsm.explore.composition import Call, Condition, Event, UnsafeError
from fsm.machines.session import State as SessionState
from fsm.machines.stub_connection import LinkState, State
from fsm.registry.allocation import AllocationCore
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, SessionRequest
from fsm.session.stub_client import SessionAnswered, StubClientCore
from fsm.sync.subscriptions import SubscriptionCore
from specs.bodies.word import SessionMethod
from specs.jsonvalue import JsonObject
from specs.limits.protocol import PING_PERIOD, RECONNECT_BASE
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code, LinkEnd

STUB: Final = "stub"
NODE: Final = "node"
LINKS: Final = 2
"""Maximum number of links in one run."""

_R: Final = "hyperty-runtime://a.ex/ra"
_S: Final = f"{_R}/protostub/1"
_ADDRESS: Final = "hyperty://a.ex/ha"
_SESSION: Final = "domain://msg-node.a.ex/session"
_FIRST: Final = Message(1, MessageType.CREATE, f"{_R}/h", "hyperty://b.ex/h", {})


def _half() -> float:
    return 0.5


class Stub(plan.Host):
    """Stub of the node, with the link that it has or dials.

    Attributes:
        link: Number of the newest link; 0: no link yet.
        is_up: Whether the stub believes that this link exists.
        token: The token in the last answer.
        is_pinging: Whether its ping, or the answer, is under way over that link, or lost.
    """

    silent = frozenset({"queued", "released", "refuse", "drop", "ended"})

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._written = 0
        self.core = StubClientCore(_S, self, _half)
        self.is_leaving = self.is_up = self.is_dialling = self.is_pinging = False
        self.link = 0
        self.token: str | None = None
        self.core.begin()
        self.out.clear()

    @property
    def is_live(self) -> bool:
        return self.core.state is State.LIVE

    @override
    def take(self, call: Call) -> None:
        super().take(call)
        self._settle()

    @override
    def time_over(self) -> None:
        super().time_over()
        self._settle()

    def _settle(self) -> None:
        self.core.note_written(self._written)
        self._written = 0
        self.core.sessions = 0

    # --- events

    def connect(self) -> None:
        self.core.send(_FIRST, self.now)

    def disconnect(self) -> None:
        self.is_leaving = True
        self.core.disconnect(self.now)

    def open_link(self) -> None:
        self.link, self.is_up, self.is_dialling = self.link + 1, True, False
        self.core.dialled(self.now)

    def refuse_link(self) -> None:
        self.is_dialling = False
        self.core.lose_link("no node is there", self.now)

    def lose_link(self) -> None:
        self.hang_up()
        self.core.lose_link("cut", self.now)

    # --- messages from the node

    def _is_from(self, link: int) -> bool:
        return self.is_up and link == self.link

    def cut_link(self, link: int) -> None:
        if self._is_from(link):
            self.is_up = self.is_pinging = False
            self.core.lose_link("cut by the node", self.now)

    def answer_ping(self, link: int) -> None:
        if self._is_from(link):
            self.send(NODE, "pong", self.link)
            self.core.note_life(self.now)

    def answer(
        self, method: SessionMethod, link: int, code: int, token: str | None, challenge: str | None
    ) -> None:
        if not self._is_from(link):
            return
        # An answer may ask for a proof; a second answer that does so is a refusal.
        is_challenged = challenge is not None and self.core.link is LinkState.OPENING
        if code <= LAST_SUCCESS:
            self.token = token or self.token
        elif method is SessionMethod.REOPEN and not self.is_live and not is_challenged:
            self.token = None
        self.core.take_answer(SessionAnswered(method, code, token, challenge=challenge), self.now)
        if method is SessionMethod.PING and self.is_live and not self.is_leaving:
            self.is_pinging = False
            if self.deadline() < self.now + PING_PERIOD:
                raise UnsafeError("a ping is answered, and the stub waits for its answer (STB-07)")

    # --- the port of the core

    def dial(self) -> None:
        self.is_dialling = True

    def hang_up(self) -> None:
        if self.is_up:
            self.send(NODE, "lose", self.link)
        self.is_dialling = self.is_up = self.is_pinging = False

    def ask(
        self, method: SessionMethod, token: str | None = None, challenge: str | None = None
    ) -> None:
        self.is_pinging = self.is_pinging or method is SessionMethod.PING
        if method in {SessionMethod.OPEN, SessionMethod.REOPEN}:
            if token != self.token:
                raise UnsafeError("a session is asked for by another token than it has (MN-05)")
            if self.is_leaving:
                raise UnsafeError("a stub goes on after the order to disconnect (I-S10)")
        self.send(NODE, "control", method, self.link, token, challenge)

    def write(self, _: Message) -> None:
        self._written += 1


@final
class Node(plan.Host):
    """Node with the session of one runtime, its address, and the path to it.

    Attributes:
        session: The session; None: not yet open, or closed.
        token: Token of the session.
        has_key: Whether the node requires a proof of the runtime's key.
    """

    # Ignored, since no message waits at this node, and there is no other node.
    silent = frozenset({"finish", "queued", "overflow", "move", "path_changed", "forget_routes"})
    silent |= {"row_changed", "taken", "freed"}

    def __init__(self, place: str, *, has_key: bool = False) -> None:
        super().__init__(place)
        self.session: NodeSessionCore | None = None
        self.token = ""
        self.is_pinging = False
        self.has_key = has_key
        self._challenges: dict[int, str] = {}
        self._asked: tuple[SessionMethod, int] | None = None
        self._cut: set[int] = set()
        self._addresses = AllocationCore(self)
        self._paths = SubscriptionCore(self)

    @property
    def is_linked(self) -> bool:
        return self.session is not None and self.session.link is not None

    @property
    def has_address(self) -> bool:
        return self._addresses.owner_of(_ADDRESS) is not None

    @property
    def has_path(self) -> bool:
        return bool(self._paths.subscribers(_ADDRESS))

    @property
    def is_at_odds(self) -> bool:
        """True if the session's state contradicts its link: open without link, or the reverse."""
        session = self.session
        is_open = session is not None and session.state is SessionState.OPEN
        return session is not None and is_open is (session.link is None)

    @override
    def deadline(self) -> float:
        return math.inf if self.session is None else self.session.deadline()

    @override
    def time_over(self) -> None:
        if self.session is not None:
            self.session.time_over(self.now)

    # --- events

    def restart(self) -> None:
        if self.session is not None:
            link = self.session.link
            self.session.leave()
            if link is not None:
                self._hang_up(link)

    def allocate(self) -> None:
        self._addresses.allocate(_R, (_ADDRESS,))

    def free(self) -> None:
        self._addresses.free(_R, (_ADDRESS,))
        self._paths.remove_address(_ADDRESS)

    def subscribe(self) -> None:
        self._paths.subscribe(_R, (_ADDRESS,))

    def unsubscribe(self) -> None:
        self._paths.unsubscribe(_R, (_ADDRESS,))

    # --- messages from the stub

    def lose(self, link: int) -> None:
        if self.session is not None and link not in self._cut:
            self.session.lose_link(link, "gone", self.now)

    def pong(self, link: int) -> None:
        if link not in self._cut:
            self._note_life(link, is_pong=True)

    def control(
        self, method: SessionMethod, link: int, token: str | None, challenge: str | None
    ) -> None:
        if link in self._cut or not self._is_proven(method, link, challenge):
            return
        self._note_life(link)
        self._asked = method, link
        match method:
            case SessionMethod.OPEN:
                if self.session is None:
                    self.session = NodeSessionCore(f"MN|{_R}|{link}", _R, self)
                request = SessionRequest(link, None, f"token {link}", key=self._key)
                self.session.open(request, self.now)
            case SessionMethod.REOPEN if self.session is not None:
                self.session.reopen(SessionRequest(link, token, None, key=self._key), self.now)
            case SessionMethod.REOPEN:
                self._answer(Code.GONE)
            case _:
                if method is SessionMethod.CLOSE and self.session is not None:
                    self.session.close(link)
                self._answer(Code.OK)
        self._asked = None

    def _note_life(self, link: int, *, is_pong: bool = False) -> None:
        if self.session is not None and self.session.link == link:
            self.is_pinging = self.is_pinging and not is_pong
            self.session.note_life(self.now)

    def _is_proven(self, method: SessionMethod, link: int, shown: str | None) -> bool:
        """Return whether a link has proven the runtime's key, else send a challenge."""
        is_known = method is SessionMethod.OPEN or self.session is not None
        if not self.has_key or not is_known or method not in _OPENS:
            return True
        if shown is not None and shown == self._challenges.pop(link, None):
            return True
        challenge = None
        if shown is None:
            challenge = f"challenge on {link}"
            self._challenges[link] = challenge
        self.send(STUB, "answer", method, link, int(Code.UNAUTHENTICATED), None, challenge)
        return False

    @property
    def _key(self) -> str | None:
        return "k" if self.has_key else None

    def _hang_up(self, link: int) -> None:
        self._cut.add(link)
        self.send(STUB, "cut_link", link)

    # --- the port of the session

    def grant(self, granted: Granted) -> None:
        self.token, self.is_pinging = granted.token, False
        self._answer(Code.OK, granted.token)

    def refuse(self, code: Code, _: str) -> None:
        self._answer(code)

    def _answer(self, code: Code, token: str | None = None) -> None:
        if self._asked is not None:
            self.send(STUB, "answer", *self._asked, int(code), token, None)

    def cut(self, link: int, _why: str, _end: LinkEnd) -> None:
        self.is_pinging = False
        self._hang_up(link)

    def ping(self) -> None:
        if self.session is not None and self.session.link is not None:
            self.is_pinging = True
            self.send(STUB, "answer_ping", self.session.link)

    def end(self, *_: object, **__: object) -> None:
        self.session, self.token, self.is_pinging = None, "", False
        self._paths.remove_runtime(_R)
        self._addresses.release(_R, "over")


_OPENS: Final = frozenset({SessionMethod.OPEN, SessionMethod.REOPEN})


# --- the compositions


def _is_new(node: Node) -> bool:
    return node.is_linked and not node.has_address


def _is_open(node: Node) -> bool:
    return node.is_linked and node.has_address


def _is_in_touch(stub: Stub, node: Node) -> bool:
    return stub.is_live and node.session is not None and node.session.link == stub.link


def _is_apart(stub: Stub, node: Node) -> bool:
    return stub.core.state in {State.FAILED, State.DISCONNECTED} and node.session is None


def _wire(_: str, message: Call) -> plan.Wire | None:
    """Return the form of session control messages for scenarios; other messages have none."""
    match message:
        case Call("answer", (SessionMethod() as method, link, int(code), _, challenge)):
            body: JsonObject = {"code": code}
            if challenge is not None:
                body["value"] = {"challenge": str(challenge)}
            words: JsonObject = {"type": "response", "from": _SESSION, "to": _S, "body": body}
            return plan.Wire("MN.a~wire~SA", words, f"{method} by link {link}")
        case Call("control", (SessionMethod() as method, link, token, challenge)) if (
            method is not SessionMethod.PING
        ):
            params: JsonObject = {"runtimeURL": _R}
            if token is not None:
                params |= {"token": "t1"}
            if challenge is not None:
                params |= {"key": "k1", "proof": "p1"}
            body = {"method": method.value, "params": params}
            words = {"type": "execute", "from": _S, "to": _SESSION, "body": body}
            return plan.Wire("SA~wire~MN.a", words, f"{method} by link {link}")
        case _:
            return None


_CUT: Final[JsonObject] = {"fault": "link cut", "between": ["RA", "MN.a"]}


def _is_dialling(stub: Stub) -> bool:
    return stub.is_dialling and stub.link < LINKS


def _is_last_dial(stub: Stub) -> bool:
    return stub.is_dialling and stub.link == LINKS


def _is_new_stub(stub: Stub) -> bool:
    return stub.core.state is State.CREATED


_BASIC: Final = (
    Event("the first message is sent", STUB, "connect", _is_new_stub),
    Event(
        "the stub must disconnect",
        STUB,
        "disconnect",
        lambda stub: stub.core.state is not State.FAILED,
    ),
    Event("a link stands", STUB, "open_link", _is_dialling, None),
    Event("the runtime has vanished", STUB, "refuse_link", _is_last_dial, None),
)
_CUTS: Final = Event(
    "the link is cut", STUB, "lose_link", lambda stub: stub.is_up, is_fault=True, done=_CUT
)
_RESTARTS: Final = Event(
    "the node restarts", NODE, "restart", lambda node: node.session is not None, is_fault=True
)

SESSION: Final = plan.Composition(
    name="session",
    places={STUB: Stub, NODE: Node},
    channels=tuple(plan.both_ways(STUB, NODE)),
    events=(*_BASIC, _CUTS, _RESTARTS),
    never=(
        Condition(
            "A session is over, and an address or a path of it is left (I-A7, I-M4).",
            (NODE,),
            lambda node: node.session is None and (node.has_address or node.has_path),
        ),
        Condition(
            "A path leads to an address without an owner (MN-12).",
            (NODE,),
            lambda node: node.has_path and not node.has_address,
        ),
        Condition(
            "A session is open without a link, or has one and is not open (I-M2).",
            (NODE,),
            lambda node: node.is_at_odds,
        ),
        Condition(
            "A stub is live and its link is gone, or it has no token (I-S8, MN-05).",
            (STUB,),
            lambda stub: stub.is_live and not (stub.is_up and stub.token),
        ),
    ),
    ends=(
        Condition("in touch", (STUB, NODE), _is_in_touch),
        Condition("apart", (STUB, NODE), _is_apart),
        Condition("not begun", (STUB,), _is_new_stub),
    ),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=1),
    early=1,
    horizon=RECONNECT_BASE,
    wire=_wire,
    given=(
        {"given": "node", "domain": "a.ex"},
        {"given": "runtime", "is": _R},
        {"given": "hyperty", "is": _ADDRESS, "in": "RA", "answers": True},
        {"given": "beginning", "before": "boot"},
    ),
)
"""Composition: a session whose link is cut, and whose node restarts."""

SESSION_TABLES: Final = attrs.evolve(
    SESSION,
    name="session-tables",
    events=(
        *_BASIC,
        Event("an address is wanted", NODE, "allocate", _is_new),
        Event("the address is freed", NODE, "free", _is_open),
        Event("the address is subscribed", NODE, "subscribe", _is_open),
        Event("the address is unsubscribed", NODE, "unsubscribe", _is_open),
    ),
    is_timely=True,
)
"""Composition: the runtime uses an address at the node, and no link is cut."""

SESSION_PROOF: Final = attrs.evolve(
    SESSION,
    name="session-proof",
    places={STUB: Stub, NODE: partial(Node, has_key=True)},
    events=(*_BASIC, _CUTS),
)
"""Composition: the node requires a proof of the runtime's key, and does not restart."""

COMPOSITIONS: Final = (SESSION, SESSION_PROOF, SESSION_TABLES)
