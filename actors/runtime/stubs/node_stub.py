"""The stub that connects to a message node, over any wire protocol (STB-02..09).

The tasks of its link dial, read and write, and report to the stub.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, TypeVarTuple

import attrs
import orjson
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.hop_trace import HopTrace
from actors.runtime.stubs import credentials, login, stub, wire
from fsm.effects import deferred
from fsm.engine import Step
from fsm.limits.rates import Rate, TokenBuckets
from fsm.machines.stub_connection import STUB_CONNECTION, State
from fsm.session.assertion import digest_of
from fsm.session.stub_client import SessionAnswered, StubClientCore
from specs.addresses.address import domain_of, is_node
from specs.bodies import session
from specs.bodies.link import Command
from specs.bodies.word import SessionMethod, StubMethod
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_MESSAGE_BYTES, STUB_WINDOW, WARNING_PAUSE
from specs.message import Message, malformed_answer, refuse, reply_to, stamped
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY, Code, DropReason
from specs.trace import Op
from transports.bodies import read_body
from transports.codec import BadLine
from transports.errors import CloseReason, DialError, FrameTooLargeError, LinkBrokenError, LinkError
from transports.link import Link

_log = get_logger("actors.runtime")

_JITTER_BYTES: Final = 2


_Ts = TypeVarTuple("_Ts")
_Take: TypeAlias = Callable[["NodeLink", *_Ts], Awaitable[None] | None]
"""Method of the stub that handles an event of a link."""

Login: TypeAlias = Callable[[], Awaitable[str | credentials.CredentialsError]]
"""Function that returns a login token, or why there is none; it raises nothing."""


class NodeLink:
    """One attempt to connect, and the link; the stub ignores events of earlier attempts.

    Attributes:
        wire: The protocol that is spoken with the node.
        name: Name of the link, for traces; empty before it is open.
        lines: The lines since the last write.
        token: The login token for the first open; None: it is not known yet.
        is_left: Whether the node has closed it because it goes down in order.
        is_too_large: Whether the node has sent a frame over the limit.
        sent_login: The login token of the last open, which is sent again with a proof; None: it
            had none.
    """

    def __init__(self, stub: "NodeStub", spoken: wire.NodeWire, login: Login | None = None) -> None:
        """Construct the link; `run` dials.

        Args:
            stub: The stub.
            spoken: The protocol that is spoken with the node.
            login: Returns the token for a login; None: the session may need none.
        """
        self.wire = spoken
        self.name = ""
        self.token: str | credentials.CredentialsError | None = None
        self.sent_login: str | None = None
        self._login = login
        self._stub = stub
        self._link: Link | None = None
        self._asked_at = math.inf
        self._scope = trio.CancelScope()
        self.lines: deque[bytes] = deque()
        self._messages = 0
        self.is_left = False
        self.is_too_large = False
        self._wake = trio.Event()

    async def run(self) -> None:
        """Get the token, dial, then read and write until the link breaks or `hang_up` is called.

        The node waits for a login only for seconds: the token is there before it is dialled.

        If cancelled, the link is closed, and the stub gets no report.
        """
        why = "hung up"
        with self._scope:
            try:
                if self._login is not None and self.token is None:
                    self.token = await self._login()
                why = await self._live(await self.wire.dial())
            except (DialError, LinkError) as error:
                why = str(error)
        await self._report(self._stub.link_over, why)

    async def login(self, login: Login) -> None:
        """Get a login token for the stub while the link is open.

        If cancelled, the stub gets no report.
        """
        await self._report(self._stub.login_obtained, await login())

    async def _report(self, take: _Take[*_Ts], *args: *_Ts) -> None:
        # A stub that has stopped needs no report; its tasks are cancelled at once.
        with suppress(ActorStoppedError):
            await self._stub.me.tell((self, partial(take, self, *args)))

    async def _live(self, link: Link) -> str:
        self.name = link.name
        self._link = link
        try:
            await self._report(self._stub.link_opened)
            why = "it cannot be written to"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, link, nursery.cancel_scope)
                why = await self._read(link)
                nursery.cancel_scope.cancel()
            return why
        finally:
            with trio.CancelScope(shield=True):
                reason = CloseReason.TOO_LARGE if self.is_too_large else CloseReason.DONE
                await link.aclose(reason)

    async def _read(self, link: Link) -> str:
        try:
            while True:
                frame = await link.receive()
                await self._report(self._stub.frame_read, frame)
        except LinkError as error:
            left = isinstance(error, LinkBrokenError) and error.close_reason
            self.is_left = left is CloseReason.GOING_AWAY
            self.is_too_large = isinstance(error, FrameTooLargeError)
            return str(error)

    async def _write(self, link: Link, scope: trio.CancelScope) -> None:
        while True:
            if not self.lines:
                self._wake = trio.Event()
                await self._wake.wait()
                continue
            lines, self.lines = self.lines, deque()
            messages, self._messages = self._messages, 0
            try:
                await link.send_many(tuple(self.wire.frames(lines)))
            except LinkError:
                scope.cancel()
                return
            # Called directly: the call only counts, and waits for no message.
            await self._stub.messages_written(self, messages)

    def control(self, line: bytes) -> None:
        """Queue a control line, which does not count as a message, for the next `flush`."""
        self.lines.append(line)

    def message(self, line: bytes) -> None:
        """Queue a message for the next `flush`; `messages_written` then counts it."""
        self.lines.append(line)
        self._messages += 1

    def flush(self) -> None:
        """Write the lines since the last call; they may share frames."""
        self._wake.set()

    def ping(self) -> None:
        """Ask the transport of the link for a sign of life, which `sign_of_life` then returns."""
        if self._link is not None:
            self._asked_at = trio.current_time()
            self._link.ping()

    def sign_of_life(self) -> float | None:
        """Return the Trio time of the sign of life after `ping`; None: it has not come."""
        if self._link is None or self._link.heard_at < self._asked_at:
            return None
        self._asked_at = math.inf
        return self._link.heard_at

    def hang_up(self) -> None:
        """End at once, in any state. Idempotent."""
        self._scope.cancel()


NodeStubMessage: TypeAlias = Delivery | tuple[NodeLink, Callable[[], Awaitable[None] | None]]
"""A message for the stub; or a link with its event, ignored if the link was replaced."""


def activate(context: stub.StubContext) -> Actor[NodeStubMessage]:
    """Create the stub `websocket`, which speaks `protofly.v1` (STB-01).

    Raises:
        StubOptionError: The profile has options; the stub knows none.
    """
    wire.read_options("websocket", context.config.options, {})
    return NodeStub(context, lambda: wire.OwnWire(context))


class NodeStub(Actor[NodeStubMessage], stub.PortHost):
    """Hosts a `StubClientCore` over one link at a time.

    Args:
        context: What the stub may use.
        make_wire: Makes the wire protocol of a link.
    """

    def __init__(self, context: stub.StubContext, make_wire: wire.WireMaker) -> None:
        self.due = deque()
        self._context = context
        self._post = context.bus.post
        self._make_wire = make_wire
        self._url = context.url
        self._is_of_node = is_node(context.config.runtime)
        self._hops = HopTrace(context.tracer, f"stub:{context.url}", context.counters)
        self._link: NodeLink | None = None
        self._held = 0
        self._is_left = False
        self._warned: TokenBuckets[str] = TokenBuckets(Rate(1 / WARNING_PAUSE, 1))
        self._leave_asked: list[Message] = []
        self._logs_in = context.config.credentials is not credentials.NO_CREDENTIALS
        self._token: str | credentials.CredentialsError | None = None
        self._refusal: tuple[int, str] | None = None
        self._identity = context.identity
        self._is_own = domain_of(context.config.runtime) == context.config.domain
        is_owner = self._is_own and not self._is_of_node
        config, again = context.config, context.config.is_again
        owner = config.runtime if is_owner else None
        self._core = StubClientCore(
            self._url, self, self._jitter, config.session, owner, may_end=is_owner, is_again=again
        )

    def _jitter(self) -> float:
        drawn = int.from_bytes(self._context.entropy(_JITTER_BYTES))
        return drawn / (1 << (8 * _JITTER_BYTES))

    @override
    async def start(self) -> None:
        self._core.begin()
        await self.perform()
        await self._context.bus.room(STUB_WINDOW, is_first=True)

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        sign = None if self._link is None else self._link.sign_of_life()
        if sign is not None:
            self._core.note_life(sign)
        self._core.time_over(trio.current_time())
        await self.perform()

    @override
    async def drained(self) -> None:
        if self._link is not None and self._link.lines:
            self._link.flush()
        room = self._held and self._held - self._core.held
        if room:
            self._held -= room
            await self._context.bus.room(room)

    @override
    async def stop(self) -> None:
        # Stopped without a close reason: the machine comes to rest, waiting requests fail.
        now = trio.current_time()
        self._core.disconnect(now)
        self._core.lose_link("the stub was stopped", now)
        for act in self.due:
            for step in act.args:
                if isinstance(step, Step):
                    self._hops.step(step)
        self.due.clear()

    @override
    async def handle(self, message: NodeStubMessage) -> None:
        if self._core.link is None and self._logs_in and not self._core.has_session:
            # The time to open a session begins with the first message, once there is a token.
            self._token = await self._login()
        match message:
            case Delivery(outbound) if outbound.to == self._url:
                await self._command(outbound)
            case Delivery(outbound):
                self._held += 1
                self._core.send(outbound, trio.current_time())
            case link, take:
                taking = take() if link is self._link else None
                if taking is not None:
                    await taking
        if self.due:
            await self.perform()

    async def messages_written(self, link: NodeLink, messages: int) -> None:
        """Record that a link has written messages; called by its task."""
        if link is self._link:
            self._core.note_written(messages)
            with suppress(ActorStoppedError):
                await self.drained()

    # ---- events of the link in use

    def link_opened(self, _link: NodeLink) -> None:
        """Record that the link is open."""
        self._core.dialled(trio.current_time())

    def link_over(self, link: NodeLink, why: str) -> None:
        """Record that the link has ended, or was not established."""
        self._link = None
        if link.is_too_large:
            self._context.counters.drop(DropReason.MALFORMED)
            _log.warning("frame too large", domain=self._context.config.domain, why=why)
        if self._core.state is State.LIVE:  # else the attempt has failed
            self._is_left = link.is_left
        self._core.lose_link(why, trio.current_time())

    async def frame_read(self, link: NodeLink, frame: bytes) -> None:
        """Handle a received frame."""
        self._core.note_life(trio.current_time())
        for item in link.wire.read(frame):
            if self.due:
                await self.perform()
            await self._take_item(item, link)

    def login_obtained(self, link: NodeLink, login: str | credentials.CredentialsError) -> None:
        """Use a login token, which may be empty, or report why there is none."""
        if isinstance(login, credentials.CredentialsError):
            is_lasting = login.code == Code.UNAUTHENTICATED
            refusal = SessionAnswered(
                SessionMethod.OPEN, login.code, why=str(login), is_lasting=is_lasting
            )
            self._core.take_answer(refusal, trio.current_time())
        else:
            link.sent_login = login or None
            self._control(link, SessionMethod.OPEN, link.sent_login)

    # ---- commands of the runtime

    async def _command(self, message: Message) -> None:
        if message.is_response:
            return
        try:
            command = read_body(message, Command)
        except BadMessageError as error:
            await self._post(refuse(message, error.code, error.reason))
            return
        sessions = self._core.sessions
        if command.method == StubMethod.CONNECT:
            self._core.connect(trio.current_time())
            await self.perform()
            await self._post(reply_to(message, Code.ACCEPTED))
        elif command.method == StubMethod.RENEWED:
            if command.link == stub.session_name(self._url, sessions):
                self._core.end_renewal(sessions, trio.current_time())
                await self.perform()
            await self._post(reply_to(message, Code.OK))
        else:
            self._leave_asked.append(message)
            self._core.disconnect(trio.current_time())

    # ---- received items

    async def _take_item(self, item: wire.Item, link: NodeLink) -> None:
        match item:
            case Message():
                await self._inbound(item)
            case BadLine(answer=answer):
                self._context.counters.drop(DropReason.MALFORMED)
                if answer is not None:
                    link.control(link.wire.write(answer))
            case SessionAnswered():
                await self._take_answer(item, link)
            case session.StatementGiven() | session.SessionGranted():
                self._keep_statement(item)
            case bytes():
                link.control(item)
            case (message,):
                self._hops.record_drop(message, DropReason.UNMATCHED)

    async def _take_answer(self, answer: SessionAnswered, link: NodeLink) -> None:
        if answer.token is not None:
            self._context.keep(answer.token, answer.is_anew)
            await self._context.remember(answer.token)
            if self._is_own:
                self._context.own.set_identity(answer.sender)
        login = ""
        if answer.method is SessionMethod.OPEN and answer.challenge is None:
            token, link.sent_login = link.sent_login, None
            login = digest_of(token) if token else ""
            if answer.code <= LAST_SUCCESS and self._identity is not None and self._is_own:
                self._context.own.record_login(token)
                from actors.keys.token import is_bound_to  # noqa: PLC0415 - see `_keep_statement`

                is_bound = token and is_bound_to(token, self._identity.key.thumbprint)
                self._identity.assertion = token if is_bound else None
        if answer.is_recovered is False and (answer.missing or not self._is_left):
            # A node that went down in order has passed on all messages; otherwise their number is
            # unknown.
            missing = answer.missing or "unknown"
            _log.warning("messages missing", domain=self._context.config.domain, count=missing)
        self._log_refusal(answer)
        # With a login, a conflict means another user; and a single token cannot be used twice.
        is_single = isinstance(self._context.config.credentials, credentials.GivenToken)
        is_lasting = self._logs_in and (
            answer.code == Code.CONFLICT
            or (answer.code == Code.UNAUTHENTICATED and bool(login) and is_single)
        )
        answer = attrs.evolve(answer, is_lasting=is_lasting, login=login)
        self._core.take_answer(answer, trio.current_time())

    def _keep_statement(self, stated: wire.Stated) -> None:
        """Keep the keys of the domain, and the verified statement of the own domain.

        Nodes make no statements about runtimes of other domains.
        """
        config, identity = self._context.config, self._identity
        if identity is None:
            return
        # Keys are slow to import, and a stub in a sandbox process has no identity.
        from actors.keys.key_set import BadKeysError, read_keys  # noqa: PLC0415
        from actors.keys.token import BadStatementError  # noqa: PLC0415

        try:
            keys = read_keys(orjson.dumps(stated.domain_keys))
            if stated.statement is None or not self._is_own:
                identity.learn(config.domain, keys, is_signed=False)
                return
            life = identity.state(stated.statement, keys, config.runtime, config.domain)
        except (BadKeysError, BadStatementError) as exc:
            _log.warning("statement refused", domain=config.domain, why=exc.reason)
            return
        self._core.note_statement(life, trio.current_time())

    async def _inbound(self, message: Message) -> None:
        if "via" in message.body and self._url in message.via:
            self._hops.record_drop(message, DropReason.LOOP)
            return
        if not self._may_come_by(message):
            self._hops.record_drop(message, DropReason.UNKNOWN_SOURCE)
            if message.is_request and self._link is not None:
                why = f"{message.from_} is not of {self._context.config.domain}"
                answer = refuse(message, Code.UNAUTHENTICATED, why)
                self._link.control(self._link.wire.write(answer))
            return
        arrived = stamped(message, self._url, self._context.sender_of(message))
        name = "" if self._link is None else self._link.name
        if self._hops.is_on:
            self._hops.record_crossing(Op.RCV, arrived, self._url, name)
        await self._post(arrived)

    def _may_come_by(self, message: Message) -> bool:
        """Return whether a message may come by this node; by the own node all may.

        The node of another domain may bring messages from its domain, and messages to objects
        there. If this runtime is a node itself, it judges the messages elsewhere.
        """
        if self._is_own or self._is_of_node:
            return True
        return self._context.config.domain in {domain_of(message.from_), domain_of(message.to)}

    # ---- the port of the core

    @deferred
    async def step(self, step: Step) -> None:
        self._hops.step(step)
        if step.new == State.FAILED and step.old == State.DISCONNECTED:
            _log.warning("session over", domain=self._context.config.domain, why=step.why)
        if step.machine == STUB_CONNECTION.name:
            await self._post(stub.status_event(self._context, step, self._core.sessions))

    @deferred
    def dial(self) -> None:
        login = None if self._core.has_session or not self._logs_in else self._login
        fresh = self._link = NodeLink(self, self._make_wire(), login)
        fresh.token, self._token = self._token, None
        self.spawn(fresh.run)

    @deferred
    def hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.hang_up()

    @deferred
    def ask(
        self, method: SessionMethod, token: str | None = None, challenge: str | None = None
    ) -> None:
        link = self._link
        if link is None:
            return
        if method is not SessionMethod.OPEN:
            self._control(link, method, token, challenge)
        elif challenge is not None:
            self._control(link, method, link.sent_login, challenge)
        elif not self._logs_in:
            self._control(link, method, None)
        elif link.token is None:
            self.spawn(link.login, self._login)
        else:
            login, link.token = link.token, None
            self.login_obtained(link, login)

    async def _login(self) -> str | credentials.CredentialsError:
        config = self._context.config
        return await login.obtain_token(config.credentials, config.domain)

    def _control(
        self, link: NodeLink, method: SessionMethod, token: str | None, challenge: str | None = None
    ) -> None:
        match link.wire.ask(method, token, challenge):
            case None:
                link.ping()
            case SessionAnswered() as answer:
                self._core.take_answer(answer, trio.current_time())
            case line:
                link.control(line)

    @deferred
    def write(self, message: Message) -> None:
        if self._link is None:
            return
        if "via" in message.body and self._url in message.via:
            self._hops.record_drop(message, DropReason.LOOP)
            self._core.forget(message)
            return
        # A node knows its runtimes; a node that forwards a message states the sender's identity.
        stamp = stamped(message, self._url, message.identity if self._is_of_node else None)
        try:
            line = self._link.wire.write(stamp)
        except BadMessageError as error:
            self._give_up(message, error.code, error.reason)
            return
        if len(line) > MAX_MESSAGE_BYTES:
            why = f"larger than {MAX_MESSAGE_BYTES} bytes"
            self._give_up(message, Code.TOO_LARGE, why)
            return
        if self._hops.is_on:
            self._hops.record_crossing(Op.XMIT, stamp, self._url, self._link.name)
        self._link.message(line)

    def _give_up(self, message: Message, code: Code, why: str) -> None:
        """Drop a message that cannot be encoded; answer a request."""
        # The replacement takes the position of the message, as others of its pair wait behind it.
        later, self.due = self.due, deque()
        self._core.forget(message)
        if message.is_request:
            self.refuse(message, code, why)
        else:
            self._hops.record_drop(message, DropReason.MALFORMED)
            if message.is_final:
                self._core.send(malformed_answer(message, why), trio.current_time())
        self.due.extend(later)

    @deferred
    def queued(self, message: Message) -> None:
        self._hops.say(Op.QUEUE, message)
        pace = self._core.pace
        if pace is not None and self._warned.try_spend("message-rate", trio.current_time()):
            # Once a minute of a session.
            event = "messages wait: more come than the node accepts"
            domain = self._context.config.domain
            _log.warning(event, domain=domain, limit="message-rate", value=pace.per_second)

    @deferred
    def released(self, message: Message) -> None:
        self._hops.say(Op.FLUSH, message)

    @deferred
    async def refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self._hops.record_own_answer(response := refuse(message, code, why, retry_after))
        await self._post(response)

    @deferred
    def drop(self, message: Message, reason: DropReason) -> None:
        self._hops.record_drop(message, reason)

    @deferred
    async def ended(self) -> None:
        asked, self._leave_asked = self._leave_asked, []
        for message in asked:
            await self._post(reply_to(message, Code.OK))

    def _log_refusal(self, answer: SessionAnswered) -> None:
        """Log that the node refuses to open a session, once for each reason."""
        if answer.code <= LAST_SUCCESS:
            self._refusal = None
        elif answer.challenge is not None:
            return
        elif answer.method is SessionMethod.OPEN and self._refusal != (answer.code, answer.reason):
            self._refusal = (answer.code, answer.reason)
            event = "login refused" if answer.code in TURNED_AWAY else "session refused"
            domain = self._context.config.domain
            # A first refusal is also the answer to the caller; later ones are only logged.
            log = _log.warning if self._core.sessions else _log.info
            log(event, domain=domain, code=answer.code, why=answer.reason)
