"""Session control: what a link says about its session (M-14..M-17); never leaves the link."""

from collections.abc import Callable
from typing import Final, final

from actors.node.exchange import Exchange
from actors.node.port import Port
from actors.node.session import Outcome, Session
from fsm.cores.node_session import NodeSessionCore
from fsm.cores.node_session_terms import (
    ClaimAsked,
    CloseAsked,
    Granted,
    OpenAsked,
    Refused,
    ReopenAsked,
)
from specs.address import RUNTIME_SCHEME, is_below, parse
from specs.body import SessionControl, SessionGranted
from specs.errors import BadMessageError, BadUrlError
from specs.limits import MAX_FRAME_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code, DropReason
from specs.word import SessionMethod
from transports.bodies import read_body, write_body

__all__ = ["Control"]

_TOKEN_BYTES: Final = 32


@final
class Control:
    """The session manager at `MN(d)/session`; part of the bus's task.

    Args:
        exchange: The sessions.
        entropy: Source of tokens.
    """

    def __init__(self, exchange: Exchange, entropy: Callable[[int], bytes]) -> None:
        self._exchange = exchange
        self._entropy = entropy
        self._stories: dict[str, int] = {}

    def receive(self, message: Message, port: Port) -> None:
        """Do what a link asks for, and answer it.

        Raises:
            BadMessageError: It asks for nothing that is known.
        """
        session = self._exchange.session_of(port.number)
        if message.is_response and session is not None:
            return
        if message.type is not MessageType.EXECUTE:
            raise BadMessageError("session control is by execute")
        asked = read_body(message, SessionControl)
        match asked.method:
            case SessionMethod.OPEN | SessionMethod.REOPEN:
                self._open(message, asked, port)
            case SessionMethod.CLOSE if session is not None:
                self._exchange.tell_link(port, reply_to(message, Code.OK))
                self._exchange.feed(session, CloseAsked(port.number))
            case SessionMethod.PING if session is not None:
                self._exchange.tell_link(port, reply_to(message, Code.OK))
            case _:
                self._refuse(message, port, Code.UNAUTHENTICATED, "the link has no session")

    def claim(self, wish: Message, port: Port) -> None:
        """Give a session to a link that knows no tokens, or refuse it.

        Raises:
            BadMessageError: It is the session of no runtime.
        """
        runtime = _runtime(read_body(wish, SessionControl))
        session = self._exchange.sessions.get(runtime)
        if session is None:
            session = self._new(runtime, wish.from_)
        claimed = ClaimAsked(port.number, port.liveness)
        self._answer(wish, port, session, self._exchange.feed(session, claimed))

    def answered(self, answer: Message) -> None:
        """Take an answer of a part of the node to what session control asked it."""
        self._exchange.witness.drop(answer, DropReason.UNMATCHED)

    def refuse_size(self, port: Port) -> None:
        """Say that a frame was over the limit, whatever stood in it."""
        session = self._exchange.session_of(port.number)
        node = self._exchange.tables.addresses.session
        refusal = Message(
            id=self._exchange.next_id(node),
            type=MessageType.RESPONSE,
            from_=node,
            to=node if session is None else session.stub,
            body={
                "code": int(Code.TOO_LARGE),
                "description": f"a frame holds at most {MAX_FRAME_BYTES} bytes",
            },
        )
        self._exchange.tell_link(port, refusal)

    def _open(self, message: Message, asked: SessionControl, port: Port) -> None:
        runtime = _runtime(asked)
        if not is_below(message.from_, runtime):
            why = f"{message.from_} is no part of {runtime}"
            self._refuse(message, port, Code.UNAUTHENTICATED, why)
            return
        held = self._exchange.session_of(port.number)
        if held is not None and held.core.runtime != runtime:
            self._refuse(message, port, Code.CONFLICT, "the link has a session of another runtime")
            return
        session = self._exchange.sessions.get(runtime)
        if asked.method == "re-open":
            self._reopen(message, asked, port, session)
            return
        if session is None:
            session = self._new(runtime, message.from_)
        wish = OpenAsked(port.number, asked.params.token, self._token(), port.liveness)
        self._answer(message, port, session, self._exchange.feed(session, wish))

    def _reopen(
        self, message: Message, asked: SessionControl, port: Port, session: Session | None
    ) -> None:
        if session is None:
            self._refuse(message, port, Code.GONE, "unknown or expired session")
            return
        wish = ReopenAsked(port.number, asked.params.token, port.liveness)
        self._answer(message, port, session, self._exchange.feed(session, wish))

    def _new(self, runtime: str, stub: str) -> Session:
        story = self._stories[runtime] = self._stories.get(runtime, 0) + 1
        key = f"{self._exchange.tables.addresses.node}|{runtime}"
        core = NodeSessionCore(key if story == 1 else f"{key}|{story}", runtime)
        session = self._exchange.sessions[runtime] = Session(core, stub)
        return session

    def _answer(self, message: Message, port: Port, session: Session, outcome: Outcome) -> None:
        match outcome.verdict:
            case Granted(_, token, _):
                session.stub = message.from_
                # Who claims a session by its name alone has no token to come back with.
                granted = write_body(SessionGranted(token)) if token else None
                answer = reply_to(message, Code.OK, {"value": granted} if granted else None)
                self._exchange.hand_out(port, answer, outcome.waiting)
            case Refused(_, code, why):
                self._refuse(message, port, code, why)
            case None:
                self._exchange.witness.drop(message, DropReason.SESSION_GONE)

    def _refuse(self, message: Message, port: Port, code: Code, why: str) -> None:
        self._exchange.tell_link(port, refuse(message, code, why))

    def _token(self) -> str:
        return self._entropy(_TOKEN_BYTES).hex()


def _runtime(asked: SessionControl) -> str:
    """Return whose session is asked for.

    Raises:
        BadMessageError: The address of no runtime.
    """
    text = asked.params.runtime_url
    if text is None:
        raise BadMessageError("params.runtimeURL is missing")
    try:
        url = parse(text)
    except BadUrlError as exc:
        raise BadMessageError(f"params.runtimeURL {exc}") from exc
    if url.scheme != RUNTIME_SCHEME or len(url.path) != 1:
        raise BadMessageError(f"params.runtimeURL is no {RUNTIME_SCHEME}://<domain>/<name>")
    return url.text
