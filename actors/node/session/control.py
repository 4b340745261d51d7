"""Session control: what a link says about its session (M-14..M-17); never leaves the link.

An open request for a session is looked into in this order: whose session, who comes (by the
session's token, by a login, or by nothing), what policy says of them, and only then the
session itself. What is refused before that leaves nothing behind.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, assert_never, final

from actors.node.links.port import Port
from actors.node.login.provider import Admission, Login
from actors.node.messages import RuntimeLeft
from actors.node.session.exchange import Exchange
from actors.node.session.gate import Gate
from actors.node.session.opening import (
    Denied,
    Logins,
    Opening,
    OpenRequest,
    Verdict,
    Vouched,
    open_request,
)
from actors.node.session.other_nodes import objection_of
from actors.node.session.session import Session
from actors.node.session.statements import Statements
from fsm.session.node_session_io import CloseAsked, MovedAway, PeerForm
from specs.addresses.address import domain_of, is_below, is_node
from specs.bodies.session import SessionControl
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_FRAME_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code, DropReason
from transports.bodies import read_body

_LOGIN: Final = "this node asks for a login, and no token was brought"


@final
class Control:
    """The session manager at `MN(d)/session`; part of the bus's task.

    Args:
        exchange: The sessions.
        gate: Asks the policy.
        entropy: Source of tokens.
        login: Required logins; None: there is no login.
        statements: Makes the statements of the domain.
    """

    def __init__(
        self,
        exchange: Exchange,
        gate: Gate,
        entropy: Callable[[int], bytes],
        login: Login | None,
        statements: Statements,
    ) -> None:
        self._exchange = exchange
        self._rights = exchange.tables.rights
        self._gate = gate
        self._opening = Opening(exchange, gate, entropy, statements, has_login=login is not None)
        self._login = login
        self._logins = None if login is None else Logins(exchange, login, statements.clock)

    def receive(self, message: Message, port: Port) -> None:
        """Do what a link asks for, and answer it.

        Args:
            message: The message.
            port: Write end of the link.

        Raises:
            BadMessageError: It asks for nothing that is known.
        """
        session = self._exchange.session_of(port.number)
        if message.is_response and session is not None:
            self._is_permitted(message, port, session)
            return
        if message.type is not MessageType.EXECUTE:
            raise BadMessageError("session control is by execute")
        asked = read_body(message, SessionControl)
        match asked.method:
            case SessionMethod.OPEN:
                self._open(open_request(message, asked, port, self._rights))
            case SessionMethod.REOPEN:
                self._reopen(open_request(message, asked, port, self._rights))
            case _ if session is not None:
                if self._is_permitted(message, port, session):
                    self._do(message, asked, session, port)
            case _:
                request = OpenRequest(message, port, "")
                self._opening.refuse(request, Code.UNAUTHENTICATED, "the link has no session")

    def claim(self, message: Message, port: Port) -> None:
        """Give a session to a link that knows no tokens, or refuse it.

        Args:
            message: The message.
            port: Write end of the link.

        Raises:
            BadMessageError: It is the session of no runtime.
        """
        request = open_request(message, read_body(message, SessionControl), port, self._rights)
        if is_node(request.runtime):
            why = "a node opens its session by session control"
            self._opening.refuse(request, Code.UNAUTHENTICATED, why)
        elif self._is_no_peer(request):
            self._opening.refuse(request, Code.FORBIDDEN, _no_peer(request.runtime))
        elif self._asks_for_login(request):
            self._opening.refuse(request, Code.UNAUTHENTICATED, _LOGIN)
        elif not self._is_elsewhere(request):
            with self._at_hand(request.runtime):
                self._opening.claimed(request)

    def answered(self, answer: Message) -> None:
        """Take an answer of a part of the node to what session control asked it."""
        verdict = None if self._logins is None else self._logins.answered(answer)
        if verdict is None:
            self._exchange.trace.drop(answer, DropReason.UNMATCHED)
        else:
            self._decided(verdict)

    def gone(self, link: int) -> None:
        """Wait for nothing of a link any more."""
        self._opening.forget(link)
        if self._logins is not None:
            self._logins.forget(link)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return math.inf if self._logins is None else self._logins.deadline()

    def tick(self) -> None:
        """Give up on logins that take too long."""
        for late in () if self._logins is None else self._logins.overdue():
            self._decided(late)

    def refuse_size(self, port: Port) -> None:
        """Refuse a frame over the limit, for any content."""
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
        self._exchange.send_to_link(port, refusal)

    # ---- requests for sessions

    def _open(self, request: OpenRequest) -> None:
        if self._is_out_of_place(request):
            return
        if not self._opening.is_proven(request, SessionMethod.OPEN):
            return
        with self._at_hand(request.runtime) as session:
            self._open_as(request, session)

    def _open_as(self, request: OpenRequest, session: Session | None) -> None:
        is_own = (
            session is not None and request.token is not None and session.core.knows(request.token)
        )
        if is_own or self._logins is None:
            self._opening.anonymous(request)
        elif _brings_credentials(request):
            known = self._opening.repeated(request, session) or self._logins.unused(request)
            verdict = known or self._logins.ask(request)
            if verdict is not None:
                self._decided(verdict)
        elif self._asks_for_login(request):
            self._opening.refuse(request, Code.UNAUTHENTICATED, _LOGIN)
        else:
            self._opening.anonymous(request)

    def _reopen(self, request: OpenRequest) -> None:
        if self._is_out_of_place(request):
            return
        with self._at_hand(request.runtime) as session:
            if session is None:
                self._exchange.returning.miss()
                self._opening.refuse(request, Code.GONE, "unknown or expired session")
            elif self._opening.is_proven(request, SessionMethod.REOPEN):
                self._opening.again(request, session)

    def _is_out_of_place(self, request: OpenRequest) -> bool:
        """Refuse a request that this link, or this sender, may not have."""
        link, sender = request.port.number, request.message.from_
        held = self._exchange.session_of(link)
        if self._is_no_peer(request):
            self._opening.refuse(request, Code.FORBIDDEN, _no_peer(request.runtime))
        elif not is_below(sender, request.runtime):
            why = f"{sender} is no part of {request.runtime}"
            self._opening.refuse(request, Code.UNAUTHENTICATED, why)
        elif held is not None and held.core.runtime != request.runtime:
            why = "the link has a session of another runtime"
            self._opening.refuse(request, Code.CONFLICT, why)
        elif self._logins is not None and self._logins.is_waiting(link):
            self._opening.refuse(request, Code.CONFLICT, "a login of this link is open")
        else:
            return self._is_elsewhere(request)
        return True

    @contextmanager
    def _at_hand(self, runtime: str) -> Iterator[Session | None]:
        """Look a session up, also one that the runtime has at another node of the domain.

        That one is this node's if its runtime has got it when the context is left.

        Args:
            runtime: Address of the runtime.

        Yields:
            The session; None: there is none.
        """
        session = self._exchange.sessions.get(runtime)
        if session is not None or self._exchange.others is None:
            yield session
            return
        session = self._exchange.others.take_up(runtime)
        yield session
        if (
            session is not None
            and session.port is None
            and self._exchange.sessions.get(runtime) is session
        ):
            self._exchange.feed(session, MovedAway("its runtime did not get it here"))

    def _is_elsewhere(self, request: OpenRequest) -> bool:
        """Refuse a request for a session that this node of the domain cannot give out now."""
        objection = objection_of(self._exchange.others, request.runtime)
        if objection is not None:
            self._opening.refuse(request, objection.code, objection.why)
        return objection is not None

    def _is_no_peer(self, request: OpenRequest) -> bool:
        """Return whether a request is for this node itself, or for a quarantined one (S14).

        Nor does a runtime of another domain get a session while a route leads to that domain.
        """
        runtime = request.runtime
        domain = domain_of(runtime)
        if domain == self._exchange.tables.addresses.domain:
            return is_node(runtime)
        if is_node(runtime):
            return self._exchange.foreign.keeps_out(runtime)
        return self._rights.is_routed(domain)

    def _asks_for_login(self, request: OpenRequest) -> bool:
        """Return whether a request without credentials is refused.

        Where there are keys, nodes and runtimes of other domains need a login.
        """
        if self._login is None:
            return False
        is_ours = domain_of(request.runtime) == self._exchange.tables.addresses.domain
        return self._login.admission is Admission.VOUCHED or not is_ours

    def _decided(self, verdict: Verdict) -> None:
        port = verdict.request.port
        if self._exchange.ports.get(port.number) is not port:
            # It was cut meanwhile, and its end has not been reported yet.
            self._exchange.trace.drop(verdict.request.message, DropReason.SESSION_GONE)
            self._keep(verdict)
            return
        match verdict:
            case Vouched(request):
                with self._at_hand(request.runtime):
                    is_used = self._opening.logged_in(verdict)
                if not is_used:
                    self._keep(verdict)
            case Denied(request, code, why, retry_after):
                self._opening.refuse(request, code, why, retry_after)
                if code == Code.UNAUTHENTICATED:
                    self._exchange.failed(port)
            case _:
                assert_never(verdict)

    def _keep(self, verdict: Verdict) -> None:
        """Keep a login that has opened no session, for a reason that is not its own."""
        if self._logins is not None and isinstance(verdict, Vouched):
            self._logins.keep(verdict)

    # ---- what a session asks for

    def _is_permitted(self, message: Message, port: Port, session: Session) -> bool:
        objection = self._gate.objection(message, session.asker)
        if objection is not None:
            self._gate.refuse(message, port, objection)
        return objection is None

    def _do(self, message: Message, asked: SessionControl, session: Session, port: Port) -> None:
        if asked.method == SessionMethod.RENEW:
            self._opening.renew(message, port, session)
            return
        if asked.method == SessionMethod.RELEASE:
            self._release(message, asked.params.runtime_url, session, port)
            return
        self._exchange.send_to_link(port, reply_to(message, Code.OK))
        if asked.method == SessionMethod.CLOSE:
            self._exchange.feed(session, CloseAsked(port.number))

    def _release(self, message: Message, named: str | None, session: Session, port: Port) -> None:
        """Release a name of the logged-in user; the answer follows when that is stored."""
        identity, runtime = session.identity, named or session.core.runtime
        if identity is None:
            why = "names belong to users, and this session has no login"
            self._exchange.send_to_link(port, refuse(message, Code.FORBIDDEN, why))
            return
        objection = objection_of(self._exchange.others)
        if objection is not None:
            self._exchange.send_to_link(port, refuse(message, objection.code, objection.why))
            return
        code = self._exchange.names.release(runtime, identity, port)
        answer = reply_to(message, code)
        if code == Code.NOT_FOUND:
            answer = refuse(message, code, f"{runtime} is no name of this user")
        elif code == Code.OK:
            self._exchange.left(
                RuntimeLeft(runtime, "its user has released its name", is_released=True)
            )
        self._exchange.send_to_link(port, answer)


def _no_peer(runtime: str) -> str:
    if is_node(runtime):
        return f"{runtime} gets no session here now"
    return f"the messages of {domain_of(runtime)} come by its node"


def _brings_credentials(request: OpenRequest) -> bool:
    """Return whether what was brought can be a login.

    Upstream's stubs have no place for one: what stands in their addresses is the token of
    a session, maybe of one that is forgotten, and every proxy in between has it in its log.
    """
    return request.token is not None and request.port.acceptor.form is not PeerForm.UPSTREAM
