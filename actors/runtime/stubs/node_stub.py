"""The stub that leads to a message node, over any wire protocol (STB-02..09, DESIGN section 8).

The tasks of its link dial, read and write, and report to the stub.
"""

from collections import deque
from typing import Final, TypeAlias

import attrs
import orjson
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.hop_trace import HopTrace
from actors.runtime.stubs import credentials, node_link, stub, wire
from actors.runtime.stubs.node_link import LinkEvents, NodeLink
from fsm.effects import deferred
from fsm.engine import Step
from fsm.limits.rates import Rate, TokenBuckets
from fsm.machines.stub_connection import STUB_CONNECTION, State
from fsm.session.assertion import digest_of
from fsm.session.stub_client import SessionAnswered, StubClientCore
from specs.addresses.address import domain_of, is_node
from specs.bodies.link import Command
from specs.bodies.word import SessionMethod, StubMethod
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_MESSAGE_BYTES, STUB_WINDOW, WARNING_PAUSE
from specs.message import Message, malformed_answer, refuse, reply_to, stamped
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY, Code, DropReason
from specs.trace import Op
from transports.bodies import read_body
from transports.codec import BadLine

_log = get_logger("actors.runtime")

NodeStubMessage: TypeAlias = Delivery | LinkEvents

_JITTER_BYTES: Final = 2


def activate(context: stub.StubContext) -> Actor[NodeStubMessage]:
    """Make the stub `websocket`, which speaks `protofly.v1` (STB-01).

    Raises:
        StubOptionError: Its profile has options; it knows none.
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
        self._make_wire = make_wire
        self._url = context.url
        self._is_of_node = is_node(context.config.runtime)
        self._hops = HopTrace(context.tracer, f"stub:{context.url}", context.counters)
        self._link: NodeLink | None = None
        self._attempts = 0
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
        room = self._held - self._core.held
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
            case _:
                if self._link is not None and message.attempt == self._link.attempt:
                    await self._link_changed(message, self._link)
        if self.due:
            await self.perform()

    async def _link_changed(self, happened: LinkEvents, link: NodeLink) -> None:
        now = trio.current_time()
        match happened:
            case node_link.Opened():
                self._core.dialled(now)
            case node_link.Unavailable(_, why, is_left, is_too_large):
                self._link = None
                if is_too_large:
                    self._context.counters.drop(DropReason.MALFORMED)
                    _log.warning("frame too large", domain=self._context.config.domain, why=why)
                if self._core.state is State.LIVE:  # else it is an attempt in vain
                    self._is_left = is_left
                self._core.lose_link(why, now)
            case node_link.Wrote(_, messages):
                self._core.note_written(messages)
            case node_link.Obtained(_, login):
                self._open(link, login)
            case node_link.Read(_, frame):
                self._core.note_life(now)
                for item in link.wire.read(frame):
                    if self.due:
                        await self.perform()
                    await self._take_item(item, link)

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

    async def _post(self, message: Message) -> None:
        await self._context.bus.post(message)

    # ---- what came over the link

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
            case wire.Stated():
                self._keep_statement(item)
            case wire.Reply(line):
                link.control(line)
            case wire.Stray(message):
                self._hops.dropped(message, DropReason.UNMATCHED)

    async def _take_answer(self, answer: SessionAnswered, link: NodeLink) -> None:
        if answer.token is not None:
            self._context.keep(answer.token, answer.is_anew)
            await self._context.remember(answer.token)
            if self._is_own:
                self._context.own.identified(answer.sender)
        login = ""
        if answer.method is SessionMethod.OPEN and answer.challenge is None:
            shown, link.shown = link.shown, None
            login = digest_of(shown) if shown else ""
            if answer.code <= LAST_SUCCESS and self._identity is not None and self._is_own:
                self._context.own.logged_in(shown)
                from actors.keys.token import is_bound_to  # noqa: PLC0415 - see `_keep_statement`

                is_bound = shown and is_bound_to(shown, self._identity.key.thumbprint)
                self._identity.assertion = shown if is_bound else None
        if answer.is_recovered is False and (answer.missing or not self._is_left):
            # A node that went down in order had passed on all it had; of one that is gone, nobody
            # knows how many.
            missing = answer.missing or "unknown"
            _log.warning("messages missing", domain=self._context.config.domain, count=missing)
        self._log_refusal(answer)
        # With a login, the name belongs to another user; and a single token helps no second time.
        is_single = isinstance(self._context.config.credentials, credentials.GivenToken)
        is_lasting = self._logs_in and (
            answer.code == Code.CONFLICT
            or (answer.code == Code.UNAUTHENTICATED and bool(login) and is_single)
        )
        answer = attrs.evolve(answer, is_lasting=is_lasting, login=login)
        self._core.take_answer(answer, trio.current_time())

    def _keep_statement(self, stated: wire.Stated) -> None:
        """Keep the keys of the domain, and what the own one states, once it is verified."""
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
            self._hops.dropped(message, DropReason.LOOP)
            return
        if not self._may_bring(message):
            self._hops.dropped(message, DropReason.UNKNOWN_SOURCE)
            if message.is_request and self._link is not None:
                why = f"{message.from_} is not of {self._context.config.domain}"
                answer = refuse(message, Code.UNAUTHENTICATED, why)
                self._link.control(self._link.wire.write(answer))
            return
        arrived = stamped(message, self._url, self._context.sender_of(message))
        name = "" if self._link is None else self._link.name
        if self._hops.is_on:
            self._hops.crossed(Op.RCV, arrived, self._url, name)
        await self._post(arrived)

    def _may_bring(self, message: Message) -> bool:
        """Return whether a message may come by this node: the own one brings them all.

        That of another domain brings those of its domain, and what others add to objects there.
        What it brings to the node of a domain, that node judges.
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
        self._attempts += 1
        login = None if self._core.has_session or not self._logs_in else self._login
        fresh = self._link = NodeLink(self._attempts, self._make_wire(), self.me, login)
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
            self._control(link, method, link.shown, challenge)
        elif not self._logs_in:
            self._control(link, method, None)
        elif link.token is None:
            self.spawn(link.login, self._login)
        else:
            login, link.token = link.token, None
            self._open(link, login)

    async def _login(self) -> str | credentials.CredentialsError:
        config = self._context.config
        return await credentials.obtained(config.credentials, config.domain)

    def _open(self, link: NodeLink, login: str | credentials.CredentialsError) -> None:
        if isinstance(login, credentials.CredentialsError):
            is_lasting = login.code == Code.UNAUTHENTICATED
            refusal = SessionAnswered(
                SessionMethod.OPEN, login.code, why=str(login), is_lasting=is_lasting
            )
            self._core.take_answer(refusal, trio.current_time())
        else:
            link.shown = login or None
            self._control(link, SessionMethod.OPEN, link.shown)

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
            self._hops.dropped(message, DropReason.LOOP)
            self._core.forget(message)
            return
        # A runtime is known to its node; a node says of which runtime it passes a message on.
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
            self._hops.crossed(Op.XMIT, stamp, self._url, self._link.name)
        self._link.message(line)

    def _give_up(self, message: Message, code: Code, why: str) -> None:
        """Give up a message that cannot be written."""
        # What is said instead keeps the place of the message: others of its pair wait behind it.
        later, self.due = self.due, deque()
        self._core.forget(message)
        if message.is_request:
            self.refuse(message, code, why)
        else:
            self._hops.dropped(message, DropReason.MALFORMED)
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
        self._hops.synthesised(response := refuse(message, code, why, retry_after))
        await self._post(response)

    @deferred
    def drop(self, message: Message, reason: DropReason) -> None:
        self._hops.dropped(message, reason)

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
            # A first refusal is the answer to who asks; later ones are told nobody else.
            log = _log.warning if self._core.sessions else _log.info
            log(event, domain=domain, code=answer.code, why=answer.reason)
