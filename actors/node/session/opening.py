"""Requests to open a session, and the validation of logins for them.

POL-18, M-14, M-15, M-55, SC-40.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import trio

from actors.keys.key_set import BadKeysError
from actors.keys.runtime_key import thumbprint_of
from actors.kit.counters import Outcome, Tally
from actors.kit.log import get_logger
from actors.node.host import NodeHost
from actors.node.links.connection import Connection
from actors.node.login.connector import VALIDATE, IdentityConnector
from actors.node.login.provider import Admission, Login
from actors.node.session.exchange import Exchange
from fsm.registry.node_rights import Names, NodeRights
from fsm.session.assertion import BOUND, digest_of
from fsm.session.node_session_io import Credentials, PeerForm
from specs.addresses.address import RUNTIME_SCHEME, domain_of, is_node, parse
from specs.bodies import session
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Identity, speaks_for
from specs.limits.node import LOGINS_PENDING
from specs.limits.protocol import OPEN_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.bodies import write_body


@attrs.frozen
class OpenRequest:
    """Request of a link for the session of a runtime, or of another domain's node.

    Attributes:
        runtime: Address of the runtime, or of the node of a domain.
        token: Token of a session, or a login token; None: the link sent none.
        key: Thumbprint of the key that the link names; None: it names none.
        public: The named key, in base64url.
        proof: Signature by which the link proves the key; None: the link awaits a challenge.
    """

    message: Message = attrs.field(repr=False)
    port: Connection
    runtime: str
    token: str | None = attrs.field(default=None, repr=False)
    key: str | None = None
    public: str = ""
    proof: str | None = None


def open_request(
    message: Message, control: session.SessionControl, port: Connection, rights: NodeRights
) -> OpenRequest:
    """Read the runtime, token and key from the body of a request to open or reopen a session.

    Args:
        message: The message.
        control: Body of the request.
        port: The requesting link.
        rights: The rights of sessions at the node.

    Raises:
        BadMessageError: The address is not of a runtime or node, or is below a session's address;
            or the key is invalid.
    """
    text = control.params.runtime_url
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
    params = control.params
    request = OpenRequest(message, port, url.text, params.token)
    if port.acceptor.form is PeerForm.UPSTREAM:
        return request
    if params.key is None:
        if params.proof is not None:
            raise BadMessageError("params.proof is of no key; params.key is missing")
        return request
    try:
        key = thumbprint_of(params.key)
        return attrs.evolve(request, key=key, public=params.key, proof=params.proof)
    except BadKeysError as exc:
        raise BadMessageError(f"params.key: {exc.reason}") from exc


_log = get_logger("actors.node")

_AWAY = "your login cannot be verified now; try again"


@attrs.frozen
class Vouched:
    """Outcome of a login that succeeded: identity of the user, and credentials for the session."""

    request: OpenRequest
    identity: Identity
    credentials: Credentials


@attrs.frozen
class Denied:
    """Outcome of a login that failed: code and reason for the answer.

    Attributes:
        retry_after: Seconds after which another attempt may succeed; None: unknown or never.
    """

    request: OpenRequest
    code: Code
    why: str
    retry_after: float | None = None


Verdict: TypeAlias = Vouched | Denied


class Logins:
    """Validate logins by the identity connector, each in a task of its own; the bus calls it.

    Each link has at most one pending login, and the node `LOGINS_PENDING`. A link is refused if its
    login takes longer than `OPEN_TIMEOUT`. A login that succeeds too late, or for which the node
    has no room, is kept: the same token then opens the session. While a token is validated,
    requests with the same token are asked to try again.

    Attributes:
        is_required: Whether each session needs a login.
        decide: Receives the outcome of each login.
    """

    decide: Callable[[Verdict], None]

    def __init__(
        self, host: NodeHost, exchange: Exchange, login: Login, connector: IdentityConnector
    ) -> None:
        self.is_required: Final = login.admission is Admission.VOUCHED
        self._host: Final = host
        self._exchange: Final = exchange
        self._connector: Final = connector
        self._life: Final = login.life
        self._clock: Final = host.login_clock
        self._waiting: dict[int, tuple[OpenRequest, float]] = {}
        self._asked: set[str] = set()
        self._unused: dict[str, Vouched] = {}

    def is_waiting(self, link: int) -> bool:
        """Return whether a login of a link is pending."""
        return link in self._waiting

    def ask(self, request: OpenRequest) -> Denied | None:
        """Start the validation of a login; return the denial if it cannot be started."""
        token = request.token or ""
        digest = digest_of(token)
        if len(self._waiting) >= LOGINS_PENDING or digest in self._asked:
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        node = self._exchange.tables.addresses
        number = self._exchange.next_id(node.session)
        call = session.IdentityCall(
            VALIDATE, {"assertion": request.token, "origin": node.domain, "key": request.key}
        )
        question = Message(
            number, MessageType.EXECUTE, node.session, node.identities, write_body(call)
        )
        self._exchange.trace.hop(Op.DELIVER, question, listener=node.identities)
        self._asked.add(digest)
        self._waiting[request.port.number] = request, trio.current_time() + OPEN_TIMEOUT
        self._host.bus.spawn(self._validate, request, question, token, digest)
        return None

    async def _validate(
        self, request: OpenRequest, question: Message, token: str, digest: str
    ) -> None:
        answer, identity = await self._connector.validate(question, token, request.key)
        self._asked.discard(digest)
        self._host.bus.call(self._take, request, answer, identity)

    def _take(self, request: OpenRequest, answer: Message, identity: Identity | None) -> None:
        """Process the connector's answer; keep the login if the link no longer waits for it."""
        link = request.port.number
        trace, (waiting, _) = self._exchange.trace, self._waiting.get(link, (None, 0.0))
        verdict = self._verdict(request, answer, identity)
        if waiting is request:
            del self._waiting[link]
            trace.hop(Op.DELIVER, answer, listener=answer.to)
            self._count(_outcome(verdict))
            self.decide(verdict)
        else:
            trace.drop(answer, DropReason.UNMATCHED)
            if isinstance(verdict, Vouched):
                self.keep(verdict)

    def keep(self, vouched: Vouched) -> None:
        """Keep a valid login that opened no session, for another request with the same token."""
        digest = vouched.identity.login
        if digest is not None:
            self._unused[digest] = vouched
            if len(self._unused) > LOGINS_PENDING:
                del self._unused[next(iter(self._unused))]

    def take_unused(self, request: OpenRequest) -> Vouched | None:
        """Remove and return a kept login for the token of a request; None: there is none."""
        digest = digest_of(request.token or "")
        vouched = self._unused.get(digest)
        if vouched is None or self._objection(request, vouched.identity, self._clock()) is not None:
            return None
        del self._unused[digest]
        is_over = trio.current_time() >= vouched.credentials.until
        return None if is_over else attrs.evolve(vouched, request=request)

    def _verdict(self, request: OpenRequest, answer: Message, identity: Identity | None) -> Verdict:
        why = str(answer.body.get("description", ""))
        if answer.code == Code.UNAUTHENTICATED:
            after = answer.body.get("retryAfter")
            pause = float(after) if isinstance(after, int | float) else None
            return attrs.evolve(_deny(request, why), retry_after=pause)
        if identity is None:
            _log.warning("login not looked into", runtime=request.runtime, why=why)
            return Denied(request, Code.UNAVAILABLE, _AWAY)
        wall, now = self._clock(), trio.current_time()
        objection = self._objection(request, identity, wall)
        if objection is not None:
            return _deny(request, objection)
        until = min(identity.until, wall + self._life)
        identity = attrs.evolve(identity, until=until, login=digest_of(request.token or ""))
        credentials = Credentials(identity.user, identity.issuer, now + until - wall)
        return Vouched(request, identity, credentials)

    def forget(self, link: int) -> None:
        """Discard the pending login of a link that has ended."""
        self._waiting.pop(link, None)

    def deadline(self) -> float:
        """Return when the next pending login is overdue; infinity if none is pending."""
        return next((until for _, until in self._waiting.values()), math.inf)

    def overdue(self) -> list[Denied]:
        """Remove the pending logins that took too long; return their denials."""
        now = trio.current_time()
        overdue = [request for request, until in self._waiting.values() if until <= now]
        for request in overdue:
            del self._waiting[request.port.number]
            self._count(Outcome.TIMEOUT)
        return [Denied(request, Code.UNAVAILABLE, _AWAY) for request in overdue]

    def _count(self, outcome: Outcome) -> None:
        self._exchange.trace.counters.count(Tally.LOGINS, outcome)

    def _objection(self, request: OpenRequest, identity: Identity, wall: float) -> str | None:
        """Return why a valid login may not open the requested session; None: it may."""
        runtime, domain = request.runtime, domain_of(request.runtime)
        why = None
        if identity.until <= wall:
            why = "what vouched for you is over"
        elif identity.runtime is not None and identity.runtime != runtime:
            why = f"the token is good for {identity.runtime} only"
        elif identity.key is not None and identity.key != request.key:
            why = BOUND
        elif is_node(runtime):
            # Otherwise the token of any user could act for a whole domain.
            if identity.runtime is None:
                why = "a node shows a token that is bound to its address"
        elif not (
            domain == self._exchange.tables.addresses.domain or speaks_for(identity.issuer, domain)
        ):
            why = f"{identity.issuer} does not speak for {domain}"
        return why


def _outcome(verdict: Verdict) -> Outcome:
    if isinstance(verdict, Vouched):
        return Outcome.OK
    return Outcome.REFUSED if verdict.code == Code.UNAUTHENTICATED else Outcome.FAILED


def _deny(request: OpenRequest, why: str) -> Denied:
    _log.info("login refused", runtime=request.runtime, why=why)
    return Denied(request, Code.UNAUTHENTICATED, why)
