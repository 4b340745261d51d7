"""A stub's core and a node's cores, with two lists of messages between them."""

from collections.abc import Callable, Iterable

from fsm.compositions import session_terms as terms
from fsm.registry import allocation
from fsm.registry.allocation import AllocationCore
from fsm.session import node_session_io as node_ev
from fsm.session import stub_client_io as ev
from fsm.session.node_session import NodeSessionCore
from fsm.session.stub_client import StubClientCore
from fsm.sync.subscriptions import subscriptions
from fsm.sync.subscriptions.subscriptions import SubscriptionCore
from specs.bodies.word import SessionMethod
from specs.message import Message, MessageType

R, S = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/ra/protostub/1"

PHASES = {
    "IDLE": "idle",
    "DIALLING": "away",
    "PAUSED": "away",
    "OPENING": "opening",
    "OPEN": "open",
    "PINGING": "open",
    "CLOSING": "closing",
    "ENDED": "ended",
}


class SessionWorld:
    """The real cores, and what the composition `session` knows of them."""

    def __init__(self, losses: int, login: node_ev.Credentials | None = None) -> None:
        self.now = 0.0
        self.stub: StubClientCore | None = None
        self._login = login
        self.to_node: list[tuple[str, str | None]] = []
        self.to_stub: list[tuple[str, str | None]] = []
        self._link, self._is_up = 0, False
        self._session: NodeSessionCore | None = None
        self._session_was = "[*]"
        self._tokens = 0
        self._token = ""
        self._allocation, self._paths = AllocationCore(), SubscriptionCore()
        self._addresses = 0
        self._was_subscribed = False
        self._left = {wish.name: wish.budget for wish in terms.WISHES} | {"losses left": losses}

    # --- what is asked of it: each returns whether it could be done

    def build(self) -> bool:
        if self.stub is not None:
            return False
        self.stub = StubClientCore(S, lambda: 0.5)
        self._do(self.stub.begin())
        return True

    def wish(self, name: str) -> bool:
        acts: dict[str, tuple[bool, Callable[[], None]]] = {
            terms.CONNECT: (self._phase() == "idle", self._connect),
            terms.DISCONNECT: (self._phase() in {"idle", "away", "opening", "open"}, self._leave),
            terms.CUT: (self._is_up, self._cut),
            terms.RESTART: (self._session is not None, self._restart),
        }
        for wish, word in (
            (terms.USE, "allocate"),
            (terms.FREE, "free"),
            (terms.SUBSCRIBE, "subscribe"),
            (terms.UNSUBSCRIBE, "unsubscribe"),
        ):
            acts[wish] = (self._phase() == "open", lambda word=word: self._say(word))
        can, do = acts[name]
        if self.stub is None or not can or not self._left[name]:
            return False
        self._left[name] -= 1
        do()
        return True

    def stand(self) -> bool:
        """A link that is being dialled stands."""
        if self.stub is None or self.stub._phase.name != "DIALLING":
            return False
        if self._link == len(terms.LINKS):
            self._feed(ev.DialFailed("nobody is there any more"))
            return True
        self._link, self._is_up = self._link + 1, True
        self._feed(ev.Dialled())
        return True

    def stub_time(self) -> bool:
        if self.stub is None or self.stub.deadline() == float("inf"):
            return False
        self.now = max(self.now, self.stub.deadline())
        self._feed(ev.TimePassed())
        return True

    def node_time(self) -> bool:
        if self._session is None or self._session.deadline() == float("inf"):
            return False
        self.now = max(self.now, self._session.deadline())
        self._tell_session(node_ev.Tick())
        return True

    def lose(self, channel: str) -> bool:
        waiting = self._channel(channel)
        if not waiting or not self._left["losses left"]:
            return False
        self._left["losses left"] -= 1
        waiting.pop(0)
        return True

    def deliver(self, channel: str) -> bool:
        waiting = self._channel(channel)
        if not waiting:
            return False
        name, token = waiting.pop(0)
        word, _, link = name.partition(" ")
        (self._at_node if channel == terms.TO_NODE else self._at_stub)(word, link, token)
        return True

    # --- the shadow

    def told(self) -> dict[str, str]:
        address = f"x://a.ex/{self._addresses}"
        owned = self._allocation.owner_of(address) is not None
        subscribed = bool(self._paths.subscribers(address))
        self._was_subscribed |= subscribed
        return {
            "stub": "[*]" if self.stub is None else self.stub.state,
            "session": self._session_state(),
            "address": "allocated" if owned else "released" if self._addresses else "[*]",
            "path": "active" if subscribed else "removed" if self._was_subscribed else "[*]",
            "phase": self._phase(),
            "token": self._known(),
            "link": str(self._link or "none"),
            "held": str((self._session and self._session.link) or "none"),
            **{name: str(count) for name, count in self._left.items()},
        }

    def under_way(self) -> dict[str, list[str]]:
        return {
            name: [one for one, _ in self._channel(name)] for name in (terms.TO_NODE, terms.TO_STUB)
        }

    def _phase(self) -> str:
        return "idle" if self.stub is None else PHASES[self.stub._phase.name]

    def _known(self) -> str:
        if self.stub is None or self.stub._token is None:
            return "none"
        return "good" if self._session and self.stub._token == self._token else "stale"

    def _session_state(self) -> str:
        if self._session is not None:
            self._session_was = self._session.state or "[*]"
        return self._session_was

    def _channel(self, name: str) -> list[tuple[str, str | None]]:
        return self.to_node if name == terms.TO_NODE else self.to_stub

    # --- the stub

    def _connect(self) -> None:
        self._feed(ev.SendAsked(Message(1, MessageType.CREATE, f"{R}/h", "hyperty://b.ex/h", {})))

    def _leave(self) -> None:
        self._feed(ev.DisconnectAsked())

    def _cut(self) -> None:
        self._is_up = False
        self._say("gone")
        self._feed(ev.LinkLost("cut"))

    def _say(self, word: str, token: str | None = None) -> None:
        self.to_node.append((f"{word} {self._link}", token))

    def _feed(self, happened: ev.Input) -> None:
        self._do(self.stub.feed(happened, self.now))

    def _do(self, effects: Iterable[ev.Effect]) -> None:
        for effect in effects:
            match effect:
                case ev.Ask(method, token) if method is not SessionMethod.PING:
                    self._say(method.value, token)
                case ev.HangUp() if self._is_up:
                    self._is_up = False
                    self._say("gone")
                case _:
                    pass

    def _at_stub(self, word: str, link: str, token: str | None) -> None:
        if not self._is_up or link != str(self._link):
            return
        answers = {
            "opened": (SessionMethod.OPEN, 200),
            "refused": (SessionMethod.OPEN, 409),
            "re-opened": (SessionMethod.REOPEN, 200),
            "forgotten": (SessionMethod.REOPEN, 410),
            "closed": (SessionMethod.CLOSE, 200),
        }
        if word == "cut":
            self._is_up = False
            self._feed(ev.LinkLost("cut by the node"))
        else:
            self._feed(ev.SessionAnswered(*answers[word], token))

    # --- the node

    def _at_node(self, word: str, link: str, token: str | None) -> None:
        number = int(link)
        if word == "close":
            self.to_stub.append((f"closed {link}", None))
        match word:
            case "open":
                self._open(number)
            case "re-open" if self._session is None:
                self.to_stub.append((f"forgotten {link}", None))
            case _ if self._session is None:
                pass
            case "re-open":
                self._tell_session(node_ev.ReopenAsked(number, token))
            case "close":
                self._tell_session(node_ev.CloseAsked(number))
            case "gone":
                self._tell_session(node_ev.LinkLost(number, "gone"))
            case _:
                self._use(word, number)

    def _open(self, link: int) -> None:
        self._tokens += 1
        if self._session is None:
            self._session = NodeSessionCore(f"MN|{R}|{self._tokens}", R)
        asked = node_ev.OpenAsked(link, None, f"token {self._tokens}", credentials=self._login)
        self._tell_session(asked)

    def _tell_session(self, happened: node_ev.Input) -> None:
        is_open = isinstance(happened, node_ev.OpenAsked)
        for effect in self._session.feed(happened, self.now):
            match effect:
                case node_ev.Granted(link, token, _):
                    self._token = token
                    self.to_stub.append((f"{'opened' if is_open else 're-opened'} {link}", token))
                case node_ev.Refused(link, code, _):
                    word = "refused" if code == 409 else "forgotten"
                    self.to_stub.append((f"{word} {link}", None))
                case node_ev.LinkCut(link, _):
                    self.to_stub.append((f"cut {link}", None))
                case node_ev.Ended():
                    self._session_state()
                    self._session = None
                    self._release()
                case _:
                    pass

    def _restart(self) -> None:
        link = self._session.link
        self._tell_session(node_ev.NodeLeaves())
        if link is not None:
            self.to_stub.append((f"cut {link}", None))

    def _release(self) -> None:
        self._paths.feed(subscriptions.RuntimeGone(R), self.now)
        self._allocation.feed(allocation.Release(R, "over"), self.now)

    def _use(self, word: str, link: int) -> None:
        address = f"x://a.ex/{self._addresses}"
        owned = self._allocation.owner_of(address) is not None
        match word:
            case _ if self._session.link != link:
                pass
            case "allocate" if not owned:
                self._addresses += 1
                fresh = (f"x://a.ex/{self._addresses}",)
                self._allocation.feed(allocation.Allocate(R, fresh), self.now)
            case "free" if owned:
                self._allocation.feed(allocation.Free(R, (address,)), self.now)
                self._paths.feed(subscriptions.AddressGone(address), self.now)
            case "subscribe" if owned:
                self._paths.feed(subscriptions.Subscribe(R, (address,)), self.now)
            case "unsubscribe":
                self._paths.feed(subscriptions.Unsubscribe(R, (address,)), self.now)
            case _:
                pass
