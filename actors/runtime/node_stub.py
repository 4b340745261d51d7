"""The stub that leads to a message node over a WebSocket (STB-02..09, DESIGN section 8)."""

from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.delivery import Delivery
from actors.runtime.hops import Hops
from actors.runtime.node_link import LinkNews, NodeLink, Opened, Read, Unavailable, Wrote
from actors.runtime.stub import StubContext
from fsm.cores import stub_events as ev
from fsm.cores.effects import Dropped
from fsm.cores.stub_client import StubClientCore
from fsm.engine import Step
from fsm.machines.stub_connection import State
from specs.address import session_manager, status_of
from specs.body import Command, SessionControl, SessionGranted, SessionParams, Status
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, refuse, reply_to, stamped
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.trace import Op
from specs.word import SessionMethod, StubMethod
from transports.bodies import read_body, write_body
from transports.codec import BadLine, decode_frame, encode

__all__ = ["NodeStub", "NodeStubMessage", "activate"]

NodeStubMessage: TypeAlias = Delivery | LinkNews

_JITTER_BYTES: Final = 2


def activate(context: StubContext) -> Actor[NodeStubMessage]:
    """Make a node stub (STB-01)."""
    return NodeStub(context)


@final
class NodeStub(Actor[NodeStubMessage]):
    """Hosts a `StubClientCore` over one link at a time."""

    def __init__(self, context: StubContext) -> None:
        self._context = context
        self._url = context.url
        self._manager = session_manager(context.config.domain)
        self._hops = Hops(context.tracer, f"stub:{context.url}", context.counters)
        self._core = StubClientCore(context.url, self._jitter, context.config.session)
        self._link: NodeLink | None = None
        self._attempts = 0
        self._controls: dict[int, SessionMethod] = {}
        self._leave_asked: list[Message] = []

    def _jitter(self) -> float:
        drawn = int.from_bytes(self._context.entropy(_JITTER_BYTES))
        return drawn / (1 << (8 * _JITTER_BYTES))

    @override
    async def start(self) -> None:
        await self._perform(self._core.begin())

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        await self._feed(ev.TimePassed())

    @override
    async def drained(self) -> None:
        if self._link is not None:
            self._link.flush()

    @override
    async def stop(self) -> None:
        # Stopped without a farewell: the machine comes to rest, waiters are told.
        now = trio.current_time()
        effects = self._core.feed(ev.DisconnectAsked(), now)
        effects += self._core.feed(ev.LinkLost("the stub was stopped"), now)
        for effect in effects:
            if isinstance(effect, Step):
                self._hops.step(effect)
        self._controls.clear()

    @override
    async def handle(self, message: NodeStubMessage) -> None:
        match message:
            case Delivery(outbound) if outbound.to == self._url:
                await self._command(outbound)
            case Delivery(outbound):
                await self._feed(ev.SendAsked(outbound))
            case Opened() | Unavailable() | Read() | Wrote():
                if self._link is not None and message.attempt == self._link.attempt:
                    await self._news(message)

    async def _news(self, news: LinkNews) -> None:
        match news:
            case Opened():
                await self._feed(ev.Dialled())
            case Unavailable(_, why):
                self._link = None
                self._controls.clear()
                await self._feed(ev.LinkLost(why))
            case Wrote(_, messages):
                await self._feed(ev.Written(messages))
            case Read(_, frame):
                await self._feed(ev.Heard())
                for line in decode_frame(frame):
                    await self._inbound(line)

    async def _feed(self, happened: ev.Input) -> None:
        await self._perform(self._core.feed(happened, trio.current_time()))

    # ---- commands of the runtime

    async def _command(self, message: Message) -> None:
        if message.is_response:
            return
        try:
            method = read_body(message, Command).method
        except BadMessageError as error:
            await self._post(refuse(message, error.code, error.reason))
            return
        if method == StubMethod.CONNECT:
            await self._feed(ev.ConnectAsked())
            await self._post(reply_to(message, Code.ACCEPTED))
        else:
            self._leave_asked.append(message)
            await self._feed(ev.DisconnectAsked())

    async def _post(self, message: Message) -> None:
        await self._context.bus.post(message)

    # ---- what came over the link

    async def _inbound(self, line: Message | BadLine) -> None:
        if isinstance(line, BadLine):
            self._context.counters.drop(DropReason.MALFORMED)
            if line.answer is not None:
                self._write_control(line.answer)
            return
        if line.to == self._url and line.from_ == self._manager:
            await self._session(line)
            return
        if self._url in line.via:
            self._hops.dropped(line, DropReason.LOOP)
            return
        self._hops.crossed(Op.RCV, line, self._url, self._link_name())
        await self._post(stamped(line, self._url))

    async def _session(self, message: Message) -> None:
        if not message.is_response:
            self._write_control(reply_to(message, Code.OK))
            return
        method = self._controls.pop(message.id, None)
        if method is None:
            self._hops.dropped(message, DropReason.UNMATCHED)
            return
        why = message.body.get("description")
        token = _token(message)
        if token is not None:
            self._context.keep(token)
        answer = ev.SessionAnswered(
            method, message.code, token, why if isinstance(why, str) else ""
        )
        await self._feed(answer)

    def _link_name(self) -> str:
        return "" if self._link is None else self._link.name

    # ---- effects

    async def _perform(self, effects: list[ev.Effect]) -> None:
        for effect in effects:
            match effect:
                case Step():
                    await self._stepped(effect)
                case ev.Refuse(message, code, why):
                    await self._refuse(message, code, why)
                case ev.Queued(message):
                    self._hops.say(Op.QUEUE, message)
                case ev.Released(message):
                    self._hops.say(Op.FLUSH, message)
                case Dropped(message, reason):
                    self._hops.dropped(message, reason)
                case ev.Ended():
                    await self._ended()
                case _:
                    await self._on_link(effect)

    async def _on_link(self, effect: ev.Dial | ev.HangUp | ev.Ask | ev.Write) -> None:
        match effect:
            case ev.Dial():
                self._attempts += 1
                fresh = self._link = NodeLink(self._attempts, self.me)
                self.spawn(fresh.run, self._context.network, self._context.config.node_url or "")
            case ev.HangUp():
                link, self._link = self._link, None
                self._controls.clear()
                if link is not None:
                    link.hang_up()
            case ev.Ask(method, token):
                await self._ask(method, token)
            case ev.Write(message):
                await self._write(message)

    async def _stepped(self, step: Step) -> None:
        self._hops.step(step)
        session = f"{self._url}/session/{self._core.sessions}"
        link = session if step.new == State.LIVE else None
        body = write_body(Status(step.new, description=step.why or None, link=link))
        await self._post(self._own(MessageType.UPDATE, status_of(self._url), body))

    def _own(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        return Message(self._context.ids.next(self._url), kind, self._url, to, body)

    async def _refuse(self, message: Message, code: Code, why: str) -> None:
        self._hops.synthesised(response := refuse(message, code, why), message)
        await self._post(response)

    async def _ended(self) -> None:
        asked, self._leave_asked = self._leave_asked, []
        for message in asked:
            await self._post(reply_to(message, Code.OK))

    async def _ask(self, method: SessionMethod, token: str | None) -> None:
        if method is SessionMethod.OPEN and token is None:
            token = await self._context.config.credentials.fresh()
        params = SessionParams(self._context.config.runtime, token)
        body = write_body(SessionControl(method.value, params))
        message = self._own(MessageType.EXECUTE, self._manager, body)
        self._controls[message.id] = method
        self._write_control(message)

    def _write_control(self, message: Message) -> None:
        if self._link is not None:
            self._link.control(encode(message))

    async def _write(self, message: Message) -> None:
        if self._link is None:
            return
        if self._url in message.via:
            self._hops.dropped(message, DropReason.LOOP)
            await self._feed(ev.Unwritable(message))
            return
        stamp = stamped(message, self._url)
        try:
            line = encode(stamp)
        except BadMessageError as error:
            await self._unwritable(message, error.code, error.reason)
            return
        if len(line) > MAX_MESSAGE_BYTES:
            why = f"larger than {MAX_MESSAGE_BYTES} bytes"
            await self._unwritable(message, Code.TOO_LARGE, why)
            return
        self._hops.crossed(Op.XMIT, stamp, self._url, self._link.name)
        self._link.message(line)

    async def _unwritable(self, message: Message, code: Code, why: str) -> None:
        await self._feed(ev.Unwritable(message))
        if message.is_request:
            await self._refuse(message, code, why)
        else:
            self._hops.dropped(message, DropReason.MALFORMED)


def _token(answer: Message) -> str | None:
    """Return the session token an answer brings, if it says yes and brings one."""
    value: Json = answer.body.get("value")
    if answer.code > LAST_SUCCESS or not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), SessionGranted).session_token
    except BadMessageError:
        return None
