"""The opening of sessions: verify the login, ask policy, give the link its session.

POL-18, M-14, M-15, M-55, SC-40.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar, final

import attrs
import trio

from actors.keys.key_set import BadKeysError
from actors.keys.runtime_key import is_signed, thumbprint_of
from actors.kit.back_ends.requests import Asked
from actors.kit.counters import Outcome, Tally
from actors.kit.log import get_logger
from actors.node.links.port import Port
from actors.node.login.connector import VALIDATE, read_identity
from actors.node.login.provider import Login
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.session.gate import Gate
from actors.node.session.session import Session
from actors.node.session.statements import Statements
from fsm.registry.node_rights import Names, NodeRights
from fsm.session.assertion import BOUND, digest_of, is_login_of
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
from fsm.session.possession import Challenges, signed_parts
from specs.addresses.address import RUNTIME_SCHEME, domain_of, is_node, parse
from specs.bodies.session import (
    IdentityCall,
    SessionChallenge,
    SessionControl,
    SessionGranted,
    SessionParams,
    StatementGiven,
)
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Identity, speaks_for, write_sender
from specs.limits.node import CHALLENGE_BYTES, LOGINS_PENDING
from specs.limits.protocol import OPEN_TIMEOUT
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code, DropReason, Ground
from specs.trace import Op
from transports.bodies import write_body


@final
@attrs.frozen
class ShownKey:
    """A public key that a link shows.

    Attributes:
        public: The key, in base64url.
        thumbprint: Its name.
        proof: Signature by which the link proves the key; None: it awaits a challenge.
    """

    public: str
    thumbprint: str
    proof: str | None


@final
@attrs.frozen
class OpenRequest:
    """A link wants the session of a runtime, or of another domain's node.

    Attributes:
        runtime: Whose session; the node of a domain is known by its own address.
        token: What it brought, a session's token or credentials; None: nothing.
        shown: The key that it shows; None: none.
    """

    message: Message = attrs.field(repr=False)
    port: Port
    runtime: str
    token: str | None = attrs.field(default=None, repr=False)
    shown: ShownKey | None = None

    @property
    def key(self) -> str | None:
        """Thumbprint of the shown key; None: none is shown."""
        return None if self.shown is None else self.shown.thumbprint


def open_request(
    message: Message, asked: SessionControl, port: Port, rights: NodeRights
) -> OpenRequest:
    """Read whose session is asked for.

    Args:
        message: The message.
        asked: Body of the request.
        port: Write end of the requesting link.
        rights: The rights of sessions at the node.

    Raises:
        BadMessageError: The address of no runtime and no node, or below a runtime with a session,
            or a key that is none.
    """
    text = asked.params.runtime_url
    if text is None:
        raise BadMessageError("params.runtimeURL is missing")
    try:
        url = parse(text)
    except BadUrlError as exc:
        raise BadMessageError(f"params.runtimeURL {exc}") from exc
    may_be_long = rights.names is Names.LOOSE and port.acceptor.form is PeerForm.UPSTREAM
    is_name = len(url.path) == 1 or (may_be_long and url.path)
    if not (url.scheme == RUNTIME_SCHEME and is_name) and not is_node(url.text):
        raise BadMessageError(f"params.runtimeURL is no {RUNTIME_SCHEME}://<domain>/<name>")
    if not is_node(url.text) and not rights.may_be_called(url.text):
        raise BadMessageError("params.runtimeURL is below a runtime's address", Code.CONFLICT)
    is_upstream = port.acceptor.form is PeerForm.UPSTREAM
    shown = None if is_upstream else _shown(asked.params)
    return OpenRequest(message, port, url.text, asked.params.token, shown)


def _shown(params: SessionParams) -> ShownKey | None:
    if params.key is None:
        if params.proof is not None:
            raise BadMessageError("params.proof is of no key; params.key is missing")
        return None
    try:
        return ShownKey(params.key, thumbprint_of(params.key), params.proof)
    except BadKeysError as exc:
        raise BadMessageError(f"params.key: {exc.reason}") from exc


_TOKEN_BYTES: Final = 32


@final
class Opening:
    """Asks policy about each request exactly once, then the session; part of the bus's task.

    Args:
        exchange: The sessions.
        gate: Asks the policy.
        entropy: Source of tokens and challenges.
        statements: Makes the statements of the domain.
        has_login: Whether runtimes can log in.
    """

    def __init__(
        self,
        exchange: Exchange,
        gate: Gate,
        entropy: Callable[[int], bytes],
        statements: Statements,
        *,
        has_login: bool,
    ) -> None:
        self._exchange = exchange
        self._gate = gate
        self._entropy = entropy
        self._statements = statements
        self._has_login = has_login
        self._challenges = Challenges()

    def is_proven(self, request: OpenRequest, method: SessionMethod) -> bool:
        """Return whether a link has the key that it shows, if it shows any; else answer it.

        The proof is checked before everything else, so a request whose proof fails uses no token
        up.

        Args:
            request: The request.
            method: Method of the request; a signature is valid for one method only.
        """
        shown, link = request.shown, request.port.number
        if shown is None:
            return True
        if shown.proof is None:
            challenge = self._entropy(CHALLENGE_BYTES).hex()
            self._challenges.give(link, challenge)
            value = write_body(SessionChallenge(challenge))
            answer = refuse(request.message, Code.UNAUTHENTICATED, "prove the key")
            body = {**answer.body, "value": value}
            self._exchange.send_to_link(request.port, attrs.evolve(answer, body=body))
            return False
        given = self._challenges.use(link)
        domain = self._exchange.tables.addresses.domain
        if given is not None:
            parts = signed_parts(domain, request.runtime, given, request.token)
            if is_signed(shown.public, method.value, parts, shown.proof):
                return True
        self.refuse(request, Code.UNAUTHENTICATED, "the proof of the key does not fit")
        self._exchange.failed(request.port)
        return False

    def forget(self, link: int) -> None:
        """Note that a link is gone."""
        self._challenges.forget(link)

    def renew(self, message: Message, port: Port, session: Session) -> None:
        """Answer a request for a newer statement about the key of a session.

        Args:
            message: The request.
            port: Write end of the link.
            session: The session that the link has.
        """
        stated = self._statements.about(session)
        if stated is None:
            answer = refuse(message, Code.NOT_FOUND, "no key of this runtime was proven")
        else:
            value = StatementGiven(stated, self._statements.keys)
            answer = reply_to(message, Code.OK, {"value": write_body(value)})
        self._exchange.send_to_link(port, answer)

    def logged_in(self, vouched: "Vouched") -> bool:
        """Open the session for a user who has logged in.

        Returns:
            Whether the login is used up: it is not if the node refuses for a reason of its own.
        """
        asker = Asker(vouched.request.runtime, vouched.identity)
        return self._opened(vouched.request, asker, vouched.credentials) is not Code.UNAVAILABLE

    @staticmethod
    def repeated(request: OpenRequest, session: Session | None) -> "Vouched | None":
        """Return the login that has opened a session if a link shows its token once more.

        The answer to it was lost.
        """
        identity = None if session is None else session.identity
        if session is None or identity is None or not is_login_of(identity, request.token):
            return None
        credentials = session.core.lost_login(request.key, trio.current_time())
        return None if credentials is None else Vouched(request, identity, credentials)

    def anonymous(self, request: OpenRequest) -> None:
        """Open the session for a peer with the session's token, or with no credentials."""
        session = self._exchange.sessions.get(request.runtime)
        is_own = (
            session is not None and request.token is not None and session.core.knows(request.token)
        )
        asker = session.asker if session is not None and is_own else Asker(request.runtime)
        self._opened(request, asker, None)

    def again(self, request: OpenRequest, session: Session) -> None:
        """Give a session back to a holder of its token.

        Args:
            request: The request.
            session: The session.
        """
        if self._is_permitted(request, session.asker):
            acceptor = request.port.acceptor
            fresh = None if acceptor.form is PeerForm.UPSTREAM else self._fresh()
            asked = ReopenAsked(
                request.port.number, request.token, acceptor.liveness, fresh, request.key
            )
            self._ask(request, session, asked)

    def claimed(self, request: OpenRequest) -> None:
        """Give a session to a link of a kind that knows no tokens."""
        asker = Asker(request.runtime)
        if self._is_permitted(request, asker) and self._is_anothers(request, None) is None:
            session = self._session(request, asker)
            self._ask(
                request, session, ClaimAsked(request.port.number, request.port.acceptor.liveness)
            )

    def refuse(
        self, request: OpenRequest, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse a request, for any state of the session.

        Args:
            request: The request.
            code: Reply code.
            why: The reason.
            retry_after: Seconds after which it may be granted; None: never, or not known.
        """
        trace, port = self._exchange.trace, request.port
        trace.counters.count(Tally.REFUSALS, code)
        trace.refused(request.message, port.runtime or port.name, code, why, Ground.SESSION)
        self._exchange.send_to_link(request.port, refuse(request.message, code, why, retry_after))

    def _opened(
        self, request: OpenRequest, asker: Asker, credentials: Credentials | None
    ) -> Code | None:
        """Open a session, or refuse it; return the code of a refusal by the names of runtimes."""
        if not self._is_permitted(request, asker):
            return None
        refused = self._is_anothers(request, asker.identity)
        if refused is not None:
            return refused
        session = self._session(request, asker)
        link, liveness = request.port.number, request.port.acceptor.liveness
        is_upstream = request.port.acceptor.form is PeerForm.UPSTREAM
        asked = OpenAsked(
            link,
            request.token,
            self._fresh(),
            liveness,
            credentials,
            is_unproved=is_upstream and not self._has_login,
            is_shared=self._exchange.tables.rights.names is Names.LOOSE,
            is_fixed=is_upstream,
            key=request.key,
        )
        is_granted = self._ask(
            request, session, asked, session.asker if credentials is None else asker
        )
        if is_granted and credentials is not None and asker.identity is not None:
            self._exchange.names.opened(request.runtime, asker.identity, request.port)
        return None

    def _is_anothers(self, request: OpenRequest, identity: Identity | None) -> Code | None:
        """Refuse a name of another user; without a login its session does, and counts tokens."""
        if identity is None and request.runtime in self._exchange.sessions:
            return None
        refusal = self._exchange.names.refusal(request.runtime, identity)
        if refusal is None:
            return None
        self.refuse(request, refusal.code, refusal.why)
        return refusal.code

    def _fresh(self) -> str:
        return self._entropy(_TOKEN_BYTES).hex()

    def _is_permitted(self, request: OpenRequest, asker: Asker) -> bool:
        objection = self._gate.objection(request.message, asker)
        if objection is not None:
            self._gate.refuse(request.message, request.port, objection)
        return objection is None

    def _session(self, request: OpenRequest, asker: Asker) -> Session:
        session = self._exchange.sessions.get(request.runtime)
        if session is not None and not self._is_left(session, asker):
            return session
        if session is not None:
            self._exchange.feed(session, NodeLeaves())
        return self._exchange.begin(request.message.from_, asker, request.runtime)

    @staticmethod
    def _is_left(session: Session, asker: Asker) -> bool:
        """Return whether a session was left by another domain's node that knows of it no more.

        A node that was started again has no token of it. For a runtime that would be a
        matter of `SESSION_IDLE`; here a whole domain would wait for it.
        """
        is_away = session.port is None and is_node(session.core.runtime)
        return is_away and session.asker.identity is None and asker.identity is None

    def _ask(
        self,
        request: OpenRequest,
        session: Session,
        asked: OpenAsked | ReopenAsked | ClaimAsked,
        asker: Asker | None = None,
    ) -> bool:
        """Ask the session and answer the link; return whether the link has it now.

        `asker`: who has it then, if that changes.
        """
        outcome = self._exchange.feed(session, asked)
        match outcome.verdict:
            case Granted() as granted:
                session.stub = request.message.from_
                session.asker = asker or session.asker
                request.port.belongs_to(session.asker)
                if granted.is_lasting or self._exchange.others is not None:
                    self._exchange.store(session, request.port)
                answer = self._granted(request, granted, session)
                self._exchange.hand_out(request.port, answer, outcome.waiting)
            case Refused(_, code, why):
                self.refuse(request, code, why)
                if request.token is not None:
                    self._exchange.failed(request.port)
            case None:
                self._exchange.trace.drop(request.message, DropReason.SESSION_GONE)
        return isinstance(outcome.verdict, Granted)

    def _granted(self, request: OpenRequest, granted: Granted, session: Session) -> Message:
        """Accept a request; a session claimed by its name alone has no token for a resumption."""
        if not granted.token:
            return reply_to(request.message, Code.OK)
        sender = session.asker.sender
        value = SessionGranted(
            granted.token,
            emptied=True if granted.is_emptied else None,
            recovered=granted.is_recovered,
            missing=granted.missing or None,
            identity=None if sender is None else write_sender(sender),
            statement=self._statements.about(session),
            domain_keys=None if request.shown is None else self._statements.keys,
        )
        pace = self._exchange.pace_of(request.runtime)
        if math.isfinite(pace.per_second) and request.port.acceptor.form is PeerForm.OWN:
            value = attrs.evolve(value, rate=pace.per_second, burst=pace.burst)
        return reply_to(request.message, Code.OK, {"value": write_body(value)})


_log = get_logger("actors.node")

_AWAY = "your login cannot be verified now; try again"


@final
@attrs.frozen
class Vouched:
    """A login succeeded."""

    request: OpenRequest
    identity: Identity
    credentials: Credentials


@final
@attrs.frozen
class Denied:
    """A login did not succeed, because of this; it may after as many seconds."""

    request: OpenRequest
    code: Code
    why: str
    retry_after: float | None = None


Verdict: TypeAlias = Vouched | Denied


@final
class Logins:
    """Asks the identity connector by message, and keeps the waiting links; part of the bus's task.

    Each link waits for one login, all together for `LOGINS_PENDING`; a link without an answer
    within `OPEN_TIMEOUT` is refused. A login that succeeds too late for its link, or for which the
    node has no room, is kept: the same token opens the session of whom it is good for. A token
    that is being looked into is no used one: who shows it meanwhile comes again.
    """

    def __init__(self, exchange: Exchange, login: Login, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._life = login.life
        self._clock = clock
        self._waiting: dict[int, tuple[OpenRequest, float]] = {}
        self._links: dict[int, int] = {}
        self._late: dict[int, OpenRequest] = {}
        self._asked: dict[str, float] = {}
        self._unused: dict[str, Vouched] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def is_waiting(self, link: int) -> bool:
        """Return whether a login of a link is under way."""
        return link in self._links

    def ask(self, request: OpenRequest) -> Denied | None:
        """Have a login looked into; return why that is not possible."""
        node = self._exchange.tables.addresses
        connector = self._exchange.components.get(node.identities)
        now, digest = trio.current_time(), digest_of(request.token or "")
        is_asked = self._asked.get(digest, now) > now
        if connector is None or len(self._waiting) >= LOGINS_PENDING or is_asked:
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        number = self._exchange.next_id(node.session)
        call = IdentityCall(
            VALIDATE, {"assertion": request.token, "origin": node.domain, "key": request.key}
        )
        question = Message(
            number, MessageType.EXECUTE, node.session, node.identities, write_body(call)
        )
        if not connector.try_tell(Asked(question, node.session, None)):
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        self._exchange.trace.hop(Op.DELIVER, question, listener=node.identities)
        self._asked[digest] = now + 2 * OPEN_TIMEOUT  # its answer may be late; a crash has none
        _bound(self._asked)
        self._waiting[number] = request, now + OPEN_TIMEOUT
        self._links[request.port.number] = number
        return None

    def keep(self, vouched: Vouched) -> None:
        """Keep a login that has opened no session."""
        digest = vouched.identity.login
        if digest is not None:
            self._unused[digest] = vouched
            _bound(self._unused)

    def unused(self, request: OpenRequest) -> Vouched | None:
        """Take the login that a link shows again, if it has opened no session."""
        digest = digest_of(request.token or "")
        kept = self._unused.get(digest)
        if kept is None or self._objection(request, kept.identity, self._clock()) is not None:
            return None
        del self._unused[digest]
        is_over = trio.current_time() >= kept.credentials.until
        return None if is_over else attrs.evolve(kept, request=request)

    def answered(self, answer: Message) -> Verdict | None:
        """Take the connector's answer; None: nobody has asked, or asks any more."""
        late, request = self._late.pop(answer.id, None), self._taken(answer.id)
        if (asked := request or late) is not None:
            self._asked.pop(digest_of(asked.token or ""), None)
        if late is not None and answer.code == Code.OK:
            verdict = self._vouched(late, answer)
            if isinstance(verdict, Vouched):
                self.keep(verdict)
        if request is None:
            return None
        self._exchange.trace.hop(Op.DELIVER, answer, listener=answer.to)
        verdict = self._verdict(request, answer)
        self._count(_outcome(verdict))
        return verdict

    def _verdict(self, request: OpenRequest, answer: Message) -> Verdict:
        why = str(answer.body.get("description", ""))
        if answer.code == Code.UNAUTHENTICATED:
            after = answer.body.get("retryAfter")
            pause = float(after) if isinstance(after, int | float) else None
            return attrs.evolve(_refused(request, why), retry_after=pause)
        if answer.code != Code.OK:
            _log.warning("login not looked into", runtime=request.runtime, why=why)
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        return self._vouched(request, answer)

    def forget(self, link: int) -> None:
        """Wait for nothing of a link any more: it is gone."""
        number = self._links.get(link)
        if number is not None:
            self._give_up(number)

    def deadline(self) -> float:
        """Return when `overdue` has a link to name."""
        return next((until for _, until in self._waiting.values()), float("inf"))

    def overdue(self) -> list[Denied]:
        """Give up on those who have waited too long."""
        now = trio.current_time()
        late = [number for number, (_, until) in self._waiting.items() if until <= now]
        for _ in late:
            self._count(Outcome.TIMEOUT)
        requests = [self._give_up(number) for number in late]
        return [
            Denied(request, Code.UNAVAILABLE, _AWAY) for request in requests if request is not None
        ]

    def _count(self, outcome: Outcome) -> None:
        self._exchange.trace.counters.count(Tally.LOGINS, outcome)

    def _give_up(self, number: int) -> OpenRequest | None:
        request = self._taken(number)
        if request is not None:
            self._late[number] = request
            _bound(self._late)
        return request

    def _taken(self, number: int) -> OpenRequest | None:
        request, _ = self._waiting.pop(number, (None, 0.0))
        if request is not None:
            del self._links[request.port.number]
        return request

    def _vouched(self, request: OpenRequest, answer: Message) -> Verdict:
        wall, now = self._clock(), trio.current_time()
        try:
            identity = read_identity(answer.body.get("value"), wall + self._life)
        except BadMessageError as exc:
            _log.warning("login not understood", runtime=request.runtime, why=exc.reason)
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        objection = self._objection(request, identity, wall)
        if objection is not None:
            return _refused(request, objection)
        until = now + identity.until - wall
        if request.token is not None:
            identity = attrs.evolve(identity, login=digest_of(request.token))
        return Vouched(request, identity, Credentials(identity.user, identity.issuer, until))

    def _objection(self, request: OpenRequest, identity: Identity, wall: float) -> str | None:
        """Return why a login does not open the requested session; None: it does."""
        runtime, domain = request.runtime, domain_of(request.runtime)
        why = None
        if identity.until <= wall:
            why = "what vouched for you is over"
        elif identity.runtime is not None and identity.runtime != runtime:
            why = f"the token is good for {identity.runtime} only"
        elif identity.key is not None and identity.key != request.key:
            why = BOUND
        elif is_node(runtime):
            # Or any user's token would do to speak for a whole domain.
            if identity.runtime is None:
                why = "a node shows a token that is bound to its address"
        elif not (
            domain == self._exchange.tables.addresses.domain or speaks_for(identity.issuer, domain)
        ):
            why = f"{identity.issuer} does not speak for {domain}"
        return why


Key = TypeVar("Key")
Value = TypeVar("Value")


def _bound(kept: dict[Key, Value]) -> None:
    """Forget the oldest entry if there are more than as many logins as may be open at once."""
    if len(kept) > LOGINS_PENDING:
        del kept[next(iter(kept))]


def _outcome(verdict: Verdict) -> Outcome:
    if isinstance(verdict, Vouched):
        return Outcome.OK
    return Outcome.REFUSED if verdict.code == Code.UNAUTHENTICATED else Outcome.FAILED


def _refused(request: OpenRequest, why: str) -> Denied:
    _log.info("login refused", runtime=request.runtime, why=why)
    return Denied(request, Code.UNAUTHENTICATED, why)
