"""Gives sessions to links, once it is known who comes and policy has been asked (POL-18).

A wish for a session, as it is looked into (M-14, M-15).
"""

from collections.abc import Callable
from typing import Final, final

import attrs

from actors.kit.counting.tally import Tally
from actors.node.links.port import Port
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange, Session
from actors.node.session.gate import Gate
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import (
    ClaimAsked,
    Credentials,
    Granted,
    NodeLeaves,
    OpenAsked,
    PeerForm,
    Refused,
    ReopenAsked,
)
from specs.addresses.address import RUNTIME_SCHEME, is_node, parse
from specs.bodies.body import SessionControl, SessionGranted
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Identity
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code, DropReason
from transports.bodies import write_body

__all__ = ["OpenRequest", "Opening", "wish_of"]


@final
@attrs.frozen
class OpenRequest:
    """A link wants the session of a runtime, or of another domain's node.

    Attributes:
        message: What it said.
        port: The link.
        runtime: Whose session; the node of a domain is known by its own address.
        token: What it brought, a session's token or credentials; None: nothing.
    """

    message: Message
    port: Port
    runtime: str
    token: str | None = attrs.field(default=None, repr=False)


def wish_of(message: Message, asked: SessionControl, port: Port) -> OpenRequest:
    """Read whose session is asked for.

    Raises:
        BadMessageError: The address of no runtime and no node.
    """
    text = asked.params.runtime_url
    if text is None:
        raise BadMessageError("params.runtimeURL is missing")
    try:
        url = parse(text)
    except BadUrlError as exc:
        raise BadMessageError(f"params.runtimeURL {exc}") from exc
    is_runtime = url.scheme == RUNTIME_SCHEME and len(url.path) == 1
    if not is_runtime and not is_node(url.text):
        raise BadMessageError(f"params.runtimeURL is no {RUNTIME_SCHEME}://<domain>/<name>")
    return OpenRequest(message, port, url.text, asked.params.token)


_TOKEN_BYTES: Final = 32


@final
class Opening:
    """Asks policy about each wish exactly once, then the session; part of the bus's task.

    Args:
        exchange: The sessions.
        gate: Where policy is asked.
        entropy: Source of tokens.
        has_login: Whether anybody can log in here.
    """

    def __init__(
        self, exchange: Exchange, gate: Gate, entropy: Callable[[int], bytes], *, has_login: bool
    ) -> None:
        self._exchange = exchange
        self._gate = gate
        self._entropy = entropy
        self._has_login = has_login
        self._stories: dict[str, int] = {}

    def logged_in(self, wish: OpenRequest, identity: Identity, credentials: Credentials) -> None:
        """Open the session for somebody who has logged in."""
        self._opened(wish, Asker(wish.runtime, identity), credentials)

    def anonymous(self, wish: OpenRequest) -> None:
        """Open the session for somebody who brought the session's token, or nothing."""
        session = self._exchange.sessions.get(wish.runtime)
        is_own = session is not None and wish.token is not None and session.core.knows(wish.token)
        asker = session.asker if session is not None and is_own else Asker(wish.runtime)
        self._opened(wish, asker, None)

    def again(self, wish: OpenRequest, session: Session) -> None:
        """Give a session back to whoever knows its token."""
        if self._is_permitted(wish, session.asker):
            asked = ReopenAsked(wish.port.number, wish.token, wish.port.liveness)
            self._ask(wish, session, asked)

    def claimed(self, wish: OpenRequest) -> None:
        """Give a session to a link of a kind that knows no tokens."""
        asker = Asker(wish.runtime)
        if self._is_permitted(wish, asker):
            session = self._session(wish, asker)
            self._ask(wish, session, ClaimAsked(wish.port.number, wish.port.liveness))

    def refuse(self, wish: OpenRequest, code: Code, why: str) -> None:
        """Say no to a wish, whatever the session would say."""
        self._exchange.witness.counters.count(Tally.REFUSALS, code)
        self._exchange.tell_link(wish.port, refuse(wish.message, code, why))

    def _opened(self, wish: OpenRequest, asker: Asker, credentials: Credentials | None) -> None:
        if not self._is_permitted(wish, asker):
            return
        session = self._session(wish, asker)
        fresh = self._entropy(_TOKEN_BYTES).hex()
        link, liveness = wish.port.number, wish.port.liveness
        is_unproved = wish.port.door.form is PeerForm.UPSTREAM and not self._has_login
        asked = OpenAsked(link, wish.token, fresh, liveness, credentials, is_unproved)
        granted = self._ask(wish, session, asked)
        if granted and credentials is not None:
            session.asker = asker

    def _is_permitted(self, wish: OpenRequest, asker: Asker) -> bool:
        objection = self._gate.objection(wish.message, asker)
        if objection is not None:
            self._gate.refuse(wish.message, wish.port, objection)
        return objection is None

    def _session(self, wish: OpenRequest, asker: Asker) -> Session:
        session = self._exchange.sessions.get(wish.runtime)
        if session is not None and not self._is_left(session, asker):
            return session
        if session is not None:
            self._exchange.feed(session, NodeLeaves())
        story = self._stories[wish.runtime] = self._stories.get(wish.runtime, 0) + 1
        key = f"{self._exchange.tables.addresses.node}|{wish.runtime}"
        key = key if story == 1 else f"{key}|{story}"
        core = NodeSessionCore(key, wish.runtime, self._exchange.budget)
        session = Session(core, wish.message.from_, asker)
        self._exchange.sessions[wish.runtime] = session
        return session

    @staticmethod
    def _is_left(session: Session, asker: Asker) -> bool:
        """Say whether a session was left by another domain's node that knows of it no more.

        A node that was started again has no token of it. For a runtime that would be a
        matter of `SESSION_IDLE`; here a whole domain would wait for it.
        """
        is_away = session.port is None and is_node(session.core.runtime)
        return is_away and session.asker.identity is None and asker.identity is None

    def _ask(
        self, wish: OpenRequest, session: Session, asked: OpenAsked | ReopenAsked | ClaimAsked
    ) -> bool:
        """Ask the session and answer the link; return whether the link has it."""
        outcome = self._exchange.feed(session, asked)
        match outcome.verdict:
            case Granted(_, token, _):
                session.stub = wish.message.from_
                answer = _granted(wish.message, token)
                self._exchange.hand_out(wish.port, answer, outcome.waiting)
                return True
            case Refused(_, code, why):
                self.refuse(wish, code, why)
            case None:
                self._exchange.witness.drop(wish.message, DropReason.SESSION_GONE)
        return False


def _granted(wish: Message, token: str) -> Message:
    """Say yes; who claims a session by its name alone has no token to come back with."""
    if not token:
        return reply_to(wish, Code.OK)
    return reply_to(wish, Code.OK, {"value": write_body(SessionGranted(token))})
