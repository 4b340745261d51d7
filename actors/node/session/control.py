"""Session control of a node: requests to open, reopen, release or close a session (M-14..M-17).

An open request is checked in this order: the runtime's address, the credentials (the session's
token, a login, or none), the policy, and the session's own state. A refused request changes
nothing.

`Gate` applies the policy of the node to messages, and refuses them over their links (POL-01,
MN-25).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, assert_never

import attrs
import trio

from actors.keys.runtime_key import is_signed
from actors.keys.signing import SigningKey
from actors.keys.token import Statement, write_statement
from actors.kit.counters import Tally
from actors.node.host import NodeHost
from actors.node.links.connection import Connection
from actors.node.messages import RuntimeLeft
from actors.node.policy_hook import Asker, Policy
from actors.node.session import opening
from actors.node.session.exchange import Exchange
from actors.node.session.session import Outcome as SessionOutcome
from actors.node.session.session import Session
from actors.policy.engine import Decision
from fsm.bus.node_routing import Refusal
from fsm.effects import Refused
from fsm.registry.node_rights import Names
from fsm.session.assertion import is_login_of
from fsm.session.node_session_io import Credentials, Granted, PeerForm, SessionRequest, signed_parts
from specs.addresses.address import domain_of, is_below, is_node
from specs.bodies.session import (
    SessionChallenge,
    SessionControl,
    SessionGranted,
    StatementGiven,
)
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.identity import Identity, write_sender
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import CHALLENGE_BYTES, STATEMENT_LIFE
from specs.limits.protocol import MAX_FRAME_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code, DropReason, Ground
from specs.routing import Check
from specs.trace import Op
from transports.bodies import read_body, write_body

_TOKEN_BYTES: Final = 32
_LOGIN: Final = "this node asks for a login, and no token was brought"


def key_set(keys: Sequence[SigningKey]) -> JsonObject:
    """Return the public halves of keys as a JSON Web Key Set."""
    entries: list[Json] = [key.public() for key in keys]
    return {"keys": entries}


class Control:
    """Component of the node that answers requests about sessions, at `MN(d)/session`.

    Args:
        host: The node.
        exchange: The sessions of the node.
        gate: Applies the policy of the node.
        keys: The keys of the domain, for its statements about runtimes; the first one signs.
        logins: Validates logins; None: there is no login.
    """

    def __init__(
        self,
        host: NodeHost,
        exchange: Exchange,
        gate: "Gate",
        keys: Sequence[SigningKey],
        logins: opening.Logins | None,
    ) -> None:
        self._exchange = exchange
        self._rights = exchange.tables.rights
        self._gate = gate
        self._entropy = host.entropy
        # Challenges that were not answered yet, one for each link at most.
        self._challenges: dict[int, str] = {}
        self._domain = exchange.tables.addresses.domain
        self._clock = host.login_clock
        self._key, self._keys = keys[0], key_set(keys)
        self._logins = logins
        if logins is not None:
            logins.decide = self._decide

    def receive(self, message: Message, port: Connection) -> None:
        """Execute a request about the session of the link that sent the request, and answer.

        Args:
            message: The message.
            port: Write end of the link.

        Raises:
            BadMessageError: The request has no known method.
        """
        session = self._exchange.session_of(port.number)
        if message.is_response and session is not None:
            self._is_permitted(message, port, session.asker)
            return
        if message.type is not MessageType.EXECUTE:
            raise BadMessageError("session control is by execute")
        control = read_body(message, SessionControl)
        match control.method:
            case SessionMethod.OPEN:
                self._open(opening.open_request(message, control, port, self._rights))
            case SessionMethod.REOPEN:
                self._reopen(opening.open_request(message, control, port, self._rights))
            case _ if session is not None:
                if self._is_permitted(message, port, session.asker):
                    self._execute(message, control, session, port)
            case _:
                request = opening.OpenRequest(message, port, "")
                self._refuse(request, Code.UNAUTHENTICATED, "the link has no session")

    def claim(self, message: Message, port: Connection) -> None:
        """Give a link the session of the runtime that its URL names, without a token, or refuse.

        Args:
            message: The message.
            port: Write end of the link.

        Raises:
            BadMessageError: The request names no runtime.
        """
        request = opening.open_request(
            message, read_body(message, SessionControl), port, self._rights
        )
        if is_node(request.runtime):
            why = "a node opens its session by session control"
            self._refuse(request, Code.UNAUTHENTICATED, why)
        elif self._is_barred(request):
            self._refuse(request, Code.FORBIDDEN, _no_peer_reason(request.runtime))
        elif self._asks_for_login(request):
            self._refuse(request, Code.UNAUTHENTICATED, _LOGIN)
        elif not self._refuse_elsewhere(request):
            asker = Asker(request.runtime)
            with self._available_session(request.runtime):
                if self._is_permitted(message, port, asker) and not self._refuse_name(
                    request, None
                ):
                    session = self._session(request, asker)
                    number, liveness = port.number, port.acceptor.liveness
                    outcome = session.tell(lambda core, now: core.claim(number, liveness, now))
                    self._answer_open(request, session, outcome)

    def forget_link(self, link: int) -> None:
        """Discard the pending challenge and login of a link that has ended."""
        self._challenges.pop(link, None)
        if self._logins is not None:
            self._logins.forget(link)

    def deadline(self) -> float:
        """Return when to call `tick`; infinity if no login is pending."""
        return math.inf if self._logins is None else self._logins.deadline()

    def tick(self) -> None:
        """Refuse logins that have not been validated in time."""
        for denied in () if self._logins is None else self._logins.overdue():
            self._decide(denied)

    def refuse_size(self, port: Connection) -> None:
        """Answer a frame that exceeds the size limit with a refusal."""
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

    def _open(self, request: opening.OpenRequest) -> None:
        if self._refuse_misplaced(request):
            return
        if not self._is_proven(request, SessionMethod.OPEN):
            return
        with self._available_session(request.runtime) as session:
            self._open_as(request, session)

    def _open_as(self, request: opening.OpenRequest, session: Session | None) -> None:
        token, logins = request.token, self._logins
        if session is not None and token is not None and session.core.knows(token):
            self._open_session(request, session.asker, None)
        elif logins is not None and _brings_credentials(request):
            known = self._repeated_login(request, session) or logins.take_unused(request)
            verdict = known or logins.ask(request)
            if verdict is not None:
                self._decide(verdict)
        elif self._asks_for_login(request):
            self._refuse(request, Code.UNAUTHENTICATED, _LOGIN)
        else:
            self._open_session(request, Asker(request.runtime), None)

    def _reopen(self, request: opening.OpenRequest) -> None:
        if self._refuse_misplaced(request):
            return
        with self._available_session(request.runtime) as session:
            if session is None:
                self._exchange.returning.miss()
                self._refuse(request, Code.GONE, "unknown or expired session")
            elif self._is_proven(request, SessionMethod.REOPEN) and self._is_permitted(
                request.message, request.port, session.asker
            ):
                port = request.port
                fresh = None if port.acceptor.form is PeerForm.UPSTREAM else self._fresh()
                session_request = SessionRequest(
                    port.number, request.token, fresh, port.acceptor.liveness, key=request.key
                )
                outcome = session.tell(lambda core, now: core.reopen(session_request, now))
                self._answer_open(request, session, outcome)

    def _refuse_misplaced(self, request: opening.OpenRequest) -> bool:
        """Refuse a request that this link or sender may not make; return True if refused."""
        link, sender = request.port.number, request.message.from_
        link_session = self._exchange.session_of(link)
        if self._is_barred(request):
            self._refuse(request, Code.FORBIDDEN, _no_peer_reason(request.runtime))
        elif not is_below(sender, request.runtime):
            why = f"{sender} is no part of {request.runtime}"
            self._refuse(request, Code.UNAUTHENTICATED, why)
        elif link_session is not None and link_session.core.runtime != request.runtime:
            why = "the link has a session of another runtime"
            self._refuse(request, Code.CONFLICT, why)
        elif self._logins is not None and self._logins.is_waiting(link):
            self._refuse(request, Code.CONFLICT, "a login of this link is open")
        else:
            return self._refuse_elsewhere(request)
        return True

    @contextmanager
    def _available_session(self, runtime: str) -> Iterator[Session | None]:
        """Find the session of a runtime, also if another node of the domain has the session.

        A session of another node moves to this node if the runtime has opened it when the context
        ends.

        Args:
            runtime: Address of the runtime.

        Yields:
            The session; None: there is none.
        """
        session = self._exchange.sessions.get(runtime)
        if session is not None:
            yield session
            return
        moved = self._exchange.others.take_up(runtime)
        yield moved
        is_here = self._exchange.sessions.get(runtime) is moved
        if moved is not None and moved.port is None and is_here:
            moved.move_away("its runtime did not get it here")

    def _refuse_elsewhere(self, request: opening.OpenRequest) -> bool:
        """Refuse a request that another node or the engine forbids now; return True if refused."""
        objection = self._exchange.others.objection(request.runtime)
        if objection is not None:
            self._refuse(request, objection.code, objection.why)
        return objection is not None

    def _is_barred(self, request: opening.OpenRequest) -> bool:
        """Return whether the requested session must not be given in any case.

        This concerns the node's own address, a quarantined node (S14), and a runtime of another
        domain while this node has a route to that domain.
        """
        runtime = request.runtime
        domain = domain_of(runtime)
        if domain == self._domain:
            return is_node(runtime)
        if is_node(runtime):
            return self._exchange.foreign.is_quarantined(runtime)
        return self._rights.is_routed(domain)

    def _asks_for_login(self, request: opening.OpenRequest) -> bool:
        """Return whether a request without login must be refused.

        If the node validates logins, nodes and runtimes of other domains always need a login.
        """
        if self._logins is None:
            return False
        is_ours = domain_of(request.runtime) == self._domain
        return self._logins.is_required or not is_ours

    def _decide(self, verdict: opening.Verdict) -> None:
        port = verdict.request.port
        if self._exchange.ports.get(port.number) is not port:
            # The link has ended meanwhile, and its end has not been reported yet.
            self._exchange.trace.drop(verdict.request.message, DropReason.SESSION_GONE)
            self._keep(verdict)
            return
        match verdict:
            case opening.Vouched(request):
                with self._available_session(request.runtime):
                    is_used = self._open_by_login(verdict)
                self._gate.settle()
                if not is_used:
                    self._keep(verdict)
            case opening.Denied(request, code, why, retry_after):
                self._refuse(request, code, why, retry_after)
                if code == Code.UNAUTHENTICATED:
                    self._exchange.record_failed_open(port)
            case _:
                assert_never(verdict)

    def _keep(self, verdict: opening.Verdict) -> None:
        """Keep a valid login that opened no session, so that the same token can be used again."""
        if self._logins is not None and isinstance(verdict, opening.Vouched):
            self._logins.keep(verdict)

    # ---- sessions for links

    def _is_proven(self, request: opening.OpenRequest, method: SessionMethod) -> bool:
        """Return whether the key that a request names, if any, is proven; else answer the link.

        The proof is checked before the token, so that a wrong proof does not use up a login token.

        Args:
            request: The request.
            method: Method of the request; a signature is valid for one method only.
        """
        link = request.port.number
        if request.key is None:
            return True
        if request.proof is None:
            challenge = self._entropy(CHALLENGE_BYTES).hex()
            self._challenges[link] = challenge
            value = write_body(SessionChallenge(challenge))
            answer = refuse(request.message, Code.UNAUTHENTICATED, "prove the key")
            body = {**answer.body, "value": value}
            self._exchange.send_to_link(request.port, attrs.evolve(answer, body=body))
            return False
        given = self._challenges.pop(link, None)
        if given is not None:
            parts = signed_parts(self._domain, request.runtime, given, request.token)
            if is_signed(request.public, method.value, parts, request.proof):
                return True
        self._refuse(request, Code.UNAUTHENTICATED, "the proof of the key does not fit")
        self._exchange.record_failed_open(request.port)
        return False

    def _open_by_login(self, vouched: opening.Vouched) -> bool:
        """Open the session of a user who has logged in.

        Returns:
            Whether the login is used up; a refusal for a reason of the node leaves it valid.
        """
        asker = Asker(vouched.request.runtime, vouched.identity)
        return (
            self._open_session(vouched.request, asker, vouched.credentials) is not Code.UNAVAILABLE
        )

    @staticmethod
    def _repeated_login(
        request: opening.OpenRequest, session: Session | None
    ) -> opening.Vouched | None:
        """Return the login that opened a session, if a link sends the same login token again.

        This happens if the answer to the first request was lost.
        """
        identity = None if session is None else session.identity
        if session is None or identity is None or not is_login_of(identity, request.token):
            return None
        credentials = session.core.lost_login(request.key, trio.current_time())
        return None if credentials is None else opening.Vouched(request, identity, credentials)

    def _refuse(
        self, request: opening.OpenRequest, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse a request, in any state of the session.

        Args:
            request: The request.
            code: Reply code.
            why: The reason.
            retry_after: Seconds after which a repeated request may succeed; None: unknown or never.
        """
        trace, port = self._exchange.trace, request.port
        trace.counters.count(Tally.REFUSALS, code)
        trace.record_refusal(request.message, port.runtime or port.name, code, why, Ground.SESSION)
        self._exchange.send_to_link(request.port, refuse(request.message, code, why, retry_after))

    def _open_session(
        self, request: opening.OpenRequest, asker: Asker, credentials: Credentials | None
    ) -> Code | None:
        """Open a session or refuse; return the code if the runtime's name is refused, else None."""
        if not self._is_permitted(request.message, request.port, asker):
            return None
        name_refusal = self._refuse_name(request, asker.identity)
        if name_refusal is not None:
            return name_refusal
        session = self._session(request, asker)
        link, liveness = request.port.number, request.port.acceptor.liveness
        is_upstream = request.port.acceptor.form is PeerForm.UPSTREAM
        session_request = SessionRequest(
            link,
            request.token,
            self._fresh(),
            liveness,
            credentials,
            is_unproved=is_upstream and self._logins is None,
            is_shared=self._exchange.tables.rights.names is Names.LOOSE,
            is_fixed=is_upstream,
            key=request.key,
        )
        asker = session.asker if credentials is None else asker
        outcome = session.tell(lambda core, now: core.open(session_request, now))
        is_granted = self._answer_open(request, session, outcome, asker)
        if is_granted and credentials is not None and asker.identity is not None:
            self._exchange.names.note_opened(request.runtime, asker.identity, request.port)
        return None

    def _refuse_name(self, request: opening.OpenRequest, identity: Identity | None) -> Code | None:
        """Refuse a name that belongs to another user; return the code, or None if permitted."""
        if identity is None and request.runtime in self._exchange.sessions:
            return None
        refusal = self._exchange.names.refusal(request.runtime, identity)
        if refusal is None:
            return None
        self._refuse(request, refusal.code, refusal.why)
        return refusal.code

    def _fresh(self) -> str:
        return self._entropy(_TOKEN_BYTES).hex()

    def _session(self, request: opening.OpenRequest, asker: Asker) -> Session:
        session = self._exchange.sessions.get(request.runtime)
        if session is not None and not self._is_abandoned(session, asker):
            return session
        if session is not None:
            session.leave()
        return self._exchange.begin(request.message.from_, asker, request.runtime)

    @staticmethod
    def _is_abandoned(session: Session, asker: Asker) -> bool:
        """Return whether a detached session of another domain's node may be replaced by a new one.

        A restarted node has lost the token of its session. Otherwise its whole domain would have to
        wait until `SESSION_IDLE` has passed.
        """
        is_away = session.port is None and is_node(session.core.runtime)
        return is_away and session.asker.identity is None and asker.identity is None

    def _answer_open(
        self,
        request: opening.OpenRequest,
        session: Session,
        outcome: SessionOutcome,
        asker: Asker | None = None,
    ) -> bool:
        """Answer a request for a session by its outcome; return whether the link has it now.

        `asker`: Facts about the sender that the session gets; None: they stay as they are.
        """
        match outcome:
            case Granted():
                session.stub = request.message.from_
                session.asker = asker or session.asker
                request.port.set_asker(session.asker)
                if outcome.is_lasting or not self._exchange.others.is_alone:
                    self._exchange.others.publish(session, request.port)
                answer = self._accept(request, outcome, session)
                self._exchange.write_opening(request.port, answer, outcome.waiting)
            case Refused(code, why):
                self._refuse(request, code, why)
                if request.token is not None:
                    self._exchange.record_failed_open(request.port)
            case None:
                self._exchange.trace.drop(request.message, DropReason.SESSION_GONE)
        return isinstance(outcome, Granted)

    def _accept(self, request: opening.OpenRequest, granted: Granted, session: Session) -> Message:
        """Return the answer that grants a session; a session claimed by name has no token."""
        if not granted.token:
            return reply_to(request.message, Code.OK)
        sender = session.asker.sender
        value = SessionGranted(
            granted.token,
            emptied=True if granted.is_emptied else None,
            recovered=granted.is_recovered,
            missing=granted.missing or None,
            identity=None if sender is None else write_sender(sender),
            statement=self._statement_of(session),
            domain_keys=None if request.key is None else self._keys,
        )
        pace = self._exchange.pace_of(request.runtime)
        if math.isfinite(pace.per_second) and request.port.acceptor.form is PeerForm.OWN:
            value = attrs.evolve(value, rate=pace.per_second, burst=pace.burst)
        return reply_to(request.message, Code.OK, {"value": write_body(value)})

    def _statement_of(self, session: Session) -> str | None:
        """Sign the domain's statement about a session's runtime and its proven key, or return None.

        The domain makes statements only about its own runtimes, and only if a key was proven.
        """
        thumbprint, runtime = session.core.key, session.core.runtime
        if thumbprint is None or domain_of(runtime) != self._domain:
            return None
        now, identity = self._clock(), session.identity
        until = now + STATEMENT_LIFE
        statement = Statement(
            domain=self._domain,
            runtime=runtime,
            thumbprint=thumbprint,
            issued=now,
            until=until if identity is None else min(until, identity.until),
            user=None if identity is None else identity.user,
            issuer=None if identity is None else identity.issuer,
        )
        return write_statement(statement, self._key)

    # ---- requests within a session

    def _is_permitted(self, message: Message, port: Connection, asker: Asker) -> bool:
        objection = self._gate.objection(message, asker)
        if objection is not None:
            self._gate.refuse(message, port, objection)
        return objection is None

    def _execute(
        self, message: Message, control: SessionControl, session: Session, port: Connection
    ) -> None:
        if control.method == SessionMethod.RENEW:
            statement = self._statement_of(session)
            if statement is None:
                answer = refuse(message, Code.NOT_FOUND, "no key of this runtime was proven")
            else:
                value = StatementGiven(statement, self._keys)
                answer = reply_to(message, Code.OK, {"value": write_body(value)})
            self._exchange.send_to_link(port, answer)
            return
        if control.method == SessionMethod.RELEASE:
            self._release(message, control.params.runtime_url, session, port)
            return
        self._exchange.send_to_link(port, reply_to(message, Code.OK))
        if control.method == SessionMethod.CLOSE:
            session.close(port.number)

    def _release(
        self, message: Message, requested_name: str | None, session: Session, port: Connection
    ) -> None:
        """Release a runtime name of the logged-in user; answer when the change is stored."""
        identity, runtime = session.identity, requested_name or session.core.runtime
        if identity is None:
            why = "names belong to users, and this session has no login"
            self._exchange.send_to_link(port, refuse(message, Code.FORBIDDEN, why))
            return
        objection = self._exchange.others.objection()
        if objection is not None:
            self._exchange.send_to_link(port, refuse(message, objection.code, objection.why))
            return
        code = self._exchange.names.release(runtime, identity, port)
        answer = reply_to(message, code)
        if code == Code.NOT_FOUND:
            answer = refuse(message, code, f"{runtime} is no name of this user")
        elif code == Code.OK:
            self._exchange.notify_left(
                RuntimeLeft(runtime, "its user has released its name", is_released=True)
            )
        self._exchange.send_to_link(port, answer)


def _no_peer_reason(runtime: str) -> str:
    if is_node(runtime):
        return f"{runtime} gets no session here now"
    return f"the messages of {domain_of(runtime)} come by its node"


def _brings_credentials(request: opening.OpenRequest) -> bool:
    """Return whether the token of a request can be a login token.

    Stubs of upstream cannot send a login token: the token in their address is that of a session,
    maybe of one that the node no longer knows, and proxies write the address into their logs.
    """
    return request.token is not None and request.port.acceptor.form is not PeerForm.UPSTREAM


# ---- the policy of the node


_After: TypeAlias = Callable[[], object]


class Gate:
    """Apply the policy of the node to messages, and refuse denied messages; the bus calls it."""

    def __init__(self, exchange: Exchange, policy: Policy) -> None:
        self._exchange = exchange
        self._policy = policy
        self._trace = exchange.trace
        self._after: _After | None = None

    def objection(self, message: Message, asker: Asker) -> Refusal | None:
        """Judge a message that the node handles itself; return the refusal, or None if permitted.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """
        outcome = self.judge(message, asker)
        return outcome if isinstance(outcome, Refusal) else None

    def judge(self, message: Message, asker: Asker) -> Message | Refusal:
        """Judge a message; return the message to route, maybe marked by the policy, or a refusal.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """
        if self._after is not None:
            self.settle()
        ruling = self._policy.judge(message, asker)
        self._trace.authz(message, ruling)
        self._after = ruling.after
        if ruling.decision is Decision.PERMIT:
            return message if ruling.marked is None else ruling.marked
        return Refusal(Check.POLICY, ruling.why or "blocked by policy", rule=ruling.policy)

    def settle(self) -> None:
        """Run the action that the last ruling demands after its message was routed or refused."""
        after, self._after = self._after, None
        if after is not None:
            after()

    def refuse(self, message: Message, port: Connection, refusal: Refusal) -> None:
        """Refuse a message over the link that brought it, even if its sender address is forged.

        Args:
            message: The message.
            port: Write end of the link.
            refusal: Code and reason.
        """
        answer = self._answer(message, refusal, port.runtime or port.name)
        if answer is not None:
            self._exchange.send_to_link(port, answer)
            self._trace.record_pass(Op.XMIT, answer, port.name)

    def turn_back(self, message: Message, peer: str, refusal: Refusal) -> None:
        """Refuse a message that came from another domain's node, over the route to that node.

        Args:
            message: The message.
            peer: Address of the peer.
            refusal: Code and reason.
        """
        answer = self._answer(message, refusal, peer)
        if answer is not None:
            self._exchange.send(peer, answer)

    def _answer(self, message: Message, refusal: Refusal, by: str) -> Message | None:
        """Record a refusal; return the answer to a request, or None for any other message."""
        code = refusal.code
        if code is not None:
            self._trace.counters.count(Tally.REFUSALS, code)
            self._trace.deny(message, code, refusal.why)
            self._trace.record_refusal(message, by, code, refusal.why, refusal.ground, refusal.rule)
        if code is None or not message.is_request:
            self._trace.drop(message, refusal.reason)
            return None
        answer = refuse(message, code, refusal.why)
        self._trace.hop(Op.SYNTH, answer)
        return answer
