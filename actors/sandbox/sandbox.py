"""A sandbox process: its MiniBUS and its component, from the plan to the close reason.

The component holds a port of the MiniBUS; messages that it posts leave by the pipe.
"""

import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import count
from traceback import format_exception
from typing import Final, Unpack

import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Crash,
    Intensity,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.kit.trace import More, Tracer
from actors.pipe import plan as plans
from actors.pipe.outlet import FrameParts, Outlet
from actors.runtime.bus.mini_bus import MiniBus, MiniBusPort, Progress
from actors.runtime.hop_trace import HopTrace
from actors.runtime.stubs.credentials import Credentials
from actors.runtime.stubs.stub import StubConfig, StubContext
from actors.sandbox.contents import open_contents
from actors.sandbox.network import PipeNetwork
from fsm.bus.listeners import ANY
from fsm.engine import Step
from fsm.p2p.transfer import Behind
from specs.bodies.link import Command
from specs.bodies.word import StubMethod
from specs.identity import READ
from specs.limits.foreign_code import PACKAGE_BYTES, SANDBOX_FAULT, SANDBOX_REASON
from specs.limits.protocol import GOODBYE_TIMEOUT, OPEN_TIMEOUT
from specs.message import Message, MessageType
from specs.trace import Fact, Op
from transports.bodies import write_body
from transports.codec import BadLine, decode_line, encode
from transports.errors import LinkError
from transports.link import Kind, Link, Upgrade
from transports.memory import Wire
from transports.sockets import open_background

_log = get_logger("actors.sandbox")


class PipePort(MiniBusPort):
    """The only route of a stub out of its sandbox, except for its links.

    Attributes:
        agent: Sender of the sandbox's own commands to the stub.
    """

    def __init__(self, url: str, outlet: Outlet, mini_bus: MiniBus) -> None:
        self.url = url
        self.agent = f"{url}/sandbox"
        self._outlet = outlet
        self._mini_bus = mini_bus
        self._awaited: dict[int, tuple[trio.MemorySendChannel[Message], Progress | None]] = {}
        self._obeyed = trio.Event()

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        if message.is_response and message.to == self.agent:
            self._obeyed.set()
            return
        await self._outlet.send(plans.PipeMessage(plans.Word.POST, rest=encode(message)))

    @override
    async def request(self, message: Message, progress: Progress | None = None) -> Message:
        give, answer = trio.open_memory_channel[Message](1)
        self._awaited[message.id] = give, progress
        try:
            await self._outlet.send(plans.PipeMessage(plans.Word.ASK, rest=encode(message)))
            return await answer.receive()
        finally:
            del self._awaited[message.id]

    def take_answer(self, message: Message) -> bool:
        """Take an answer to a request of the component; return whether it was awaited."""
        awaited = self._awaited.get(message.id)
        if awaited is None or message.to != self.url:
            return False
        give, progress = awaited
        if message.is_final:
            with suppress(trio.WouldBlock):
                give.send_nowait(message)
        elif progress is not None:
            progress(message)
        return True

    async def wait_obeyed(self) -> None:
        """Wait until the stub has answered a command of the sandbox."""
        await self._obeyed.wait()

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        for message in messages:
            await self._outlet.send(plans.PipeMessage(plans.Word.LOST, rest=encode(message)))

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        """Do nothing: no stub in a sandbox process has a direct link."""

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        for delivery in self._mini_bus.add(address, ref, self.url):
            await self.hand_back((delivery.message,))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self._mini_bus.remove(address, ref, self.url)


class PipeTracer(Tracer):
    """Reports steps always, and hops where they are wanted and the pipe has space."""

    def __init__(self, outlet: Outlet, *, hops: bool) -> None:
        self.hops = hops
        self._outlet = outlet

    @override
    def record(self, actor: str, fact: Fact) -> None:
        """Release it: records of other kinds stay inside."""

    @override
    def step(self, actor: str, step: Step) -> None:
        fields = {"cause": step.cause, "new": step.new, "machine": step.machine, "key": step.key}
        self._outlet.put(plans.PipeMessage(plans.Word.STEP, 0, actor, {**fields, "why": step.why}))

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        item = plans.PipeMessage(plans.Word.HOP, 0, actor, {"op": op.value}, encode(message))
        for name in ("listener", "stub", "link", "reason"):
            value = more.get(name)
            if isinstance(value, str):
                item.fields[name] = value
        self._outlet.offer(item)


_ID_BYTES: Final = 6


def _record_error(outlet: Outlet, error: Exception, handler: str) -> str:
    """Report an exception of a handler by the pipe, ahead of the answer that names it."""
    correlation = secrets.token_hex(_ID_BYTES)
    lines = "".join(format_exception(error)).encode(errors="replace")
    fields = {"handler": handler[:SANDBOX_REASON]}
    outlet.put(
        plans.PipeMessage(plans.Word.FAULT, 0, correlation, {**fields}, lines[-SANDBOX_FAULT:])
    )
    return correlation


class PipeCredentials(Credentials):
    """Nothing is kept in the sandbox: a token opens one session, and its file moves on."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._numbers = count(1)
        self._number = 0
        self._token = ""
        self._answered = trio.Event()

    @override
    async def token(self, audience: str) -> str:
        self._number, self._token, self._answered = next(self._numbers), "", trio.Event()
        with trio.move_on_after(OPEN_TIMEOUT):
            await self._outlet.send(plans.PipeMessage(plans.Word.LOGIN, self._number))
            await self._answered.wait()
        return self._token

    def take_token(self, item: plans.PipeMessage) -> None:
        """Take the host's answer; ignore one that is no longer awaited."""
        if item.number == self._number:
            self._token = item.text
            self._answered.set()


_ESSENTIAL: Final = ("limits", "privileges", "files", "processes")
"""Rights that a process must have given up before unknown code may run in it."""

_NO_ROOT: Final = ("user", "namespaces")
"""One of these ensures that the process does not run as the machine's administrator."""

_ONE_LIFE: Final = Intensity(restarts=0)
"""Nothing in a sandbox is started again: its host opens another."""


async def run_sandbox(link: Link, lacking: Iterable[str] = ()) -> None:
    """Obey a host over a pipe, until it orders to leave or the pipe ends.

    Args:
        link: The pipe.
        lacking: What this process could not give up, by the names of `confine`: a package is
            refused where that is something without which its code is not kept in.

    Raises:
        PipeError: The first message is no plan.
        ExceptionGroup: With a PipeError when the host says what no host says, or a
            RestartLimitError when the component crashed.
    """
    try:
        first = plans.read_message(await link.receive())
        if first.word is not plans.Word.PLAN:
            raise plans.PipeError("the first word is no plan")
        plan = plans.read_plan(first.fields)
        archive = await _archive(link) if plan.contents.is_packaged else b""
        await _Sandbox(plan, link).live(archive, frozenset(lacking))
    except* LinkError:
        # The host is gone: no requester is left.
        pass


@asynccontextmanager
async def open_local_sandbox(label: str) -> AsyncIterator[Link]:
    """Run a sandbox in a task of this process while the context is open (see `Spawn`).

    Under any clock: for scenarios and tests, not for foreign code.
    """
    wire = Wire(Kind.UNIX, label, 1, Upgrade())

    async def live() -> None:
        with Crash() as crash:
            await run_sandbox(wire.acceptor)
        if crash.error is not None:
            _log.warning("sandbox crashed", domain=label, why=str(crash.error))
        await wire.acceptor.aclose()

    async with open_background() as background:
        background.start_soon(live)
        yield wire.dialler
        await trio.aclose_forcefully(wire.dialler)


async def _archive(link: Link) -> bytes:
    """Take the code of a package, which follows its plan."""
    parts, archive = FrameParts(PACKAGE_BYTES), None
    while archive is None:
        item = plans.read_message(await link.receive())
        if item.word is not plans.Word.CODE:
            raise plans.PipeError("something else than the code that the plan speaks of")
        archive = parts.add(item)
    return archive


def _check(plan: plans.SandboxPlan, lacking: frozenset[str]) -> None:
    """Refuse code that would not be kept in.

    Raises:
        SandboxError: This machine cannot.
    """
    root = _NO_ROOT if lacking.issuperset(_NO_ROOT) else ()
    unconfined = [*(each for each in _ESSENTIAL if each in lacking), *root]
    if plan.contents.is_packaged and unconfined:
        raise plans.SandboxError(
            f"this machine cannot keep code in: {', '.join(unconfined)} not confined"
        )


class _Sandbox:
    """A sandbox: its MiniBUS, and its component."""

    def __init__(self, plan: plans.SandboxPlan, link: Link) -> None:
        self._plan = plan
        self._link = link
        outlet = self._outlet = Outlet(link)
        self._counters = Counters()
        self._tracer = PipeTracer(outlet, hops=plan.hops)
        name = f"minibus:{plan.url}"
        self._mini_bus = MiniBus(name, HopTrace(self._tracer, name, self._counters))
        self._network = PipeNetwork(outlet)
        self._credentials = PipeCredentials(outlet)
        self._port = PipePort(plan.url, outlet, self._mini_bus)
        self._reported: dict[str, int] = {}
        self._shall_leave = trio.Event()

    async def live(self, archive: bytes, lacking: frozenset[str]) -> None:
        """Open the sandbox, and obey its host until that orders to leave."""
        async with open_background() as background:
            background.start_soon(self._outlet.run)
            try:
                await self._inhabit(archive, lacking)
            finally:
                # What has crashed may still owe an answer.
                with trio.move_on_after(GOODBYE_TIMEOUT / 2, shield=True):
                    await self._outlet.wait_flushed()

    async def _inhabit(self, archive: bytes, lacking: frozenset[str]) -> None:
        plan, outlet, why = self._plan, self._outlet, ""
        async with (
            AsyncExitStack() as stack,
            open_supervisor(plan.url, Strategy.ONE_FOR_ALL, _ONE_LIFE) as supervisor,
            open_background() as background,
        ):
            # While it starts, a component may ask and dial already.
            background.start_soon(self._serve)
            with Crash() as crash:
                _check(plan, lacking)
                record_error = partial(_record_error, outlet)
                contents = open_contents(plan, archive, record_error)
                make = partial(stack.enter_context(contents), self._context())
                component = await supervisor.start_child(ChildSpec(plan.url, make))
                await self._port.add_listener(ANY, component)
            if crash.error is not None:
                why = f"{type(crash.error).__name__}: {crash.error}"[:SANDBOX_REASON]
            outlet.put(plans.PipeMessage(plans.Word.READY, text=why))
            if crash.error is None:
                await self._shall_leave.wait()
                await self._leave(supervisor)

    def _context(self) -> StubContext:
        plan, contents = self._plan, self._plan.contents
        config = StubConfig(
            runtime=plan.runtime,
            domain=plan.domain,
            node_url=plan.endpoints[0] if plan.endpoints else None,
            endpoints=plan.endpoints,
            credentials=self._credentials,
            session=plan.session,
            options={} if contents.is_hyperty else contents.options,
        )
        return StubContext(
            url=plan.url,
            bus=self._port,
            config=config,
            network=self._network,
            tracer=self._tracer,
            ids=IdSource(plan.ids),
            entropy=secrets.token_bytes,
            counters=self._counters,
            keep=lambda token, is_anew: self._outlet.put(
                plans.PipeMessage(plans.Word.KEEP, number=int(is_anew), text=token)
            ),
        )

    # ---- the host

    async def _serve(self) -> None:
        """Obey the host until it orders to leave."""
        while not self._shall_leave.is_set():
            item = plans.read_message(await self._link.receive())
            match item.word:
                case plans.Word.HAND:
                    await self._take_handed(item)
                case plans.Word.PING:
                    self._outlet.put(plans.PipeMessage(plans.Word.PONG, fields={**self._drops()}))
                case plans.Word.LOGIN:
                    self._credentials.take_token(item)
                case plans.Word.LEAVE:
                    self._shall_leave.set()
                case _:
                    self._network.receive(item)

    async def _take_handed(self, item: plans.PipeMessage) -> None:
        message = decode_line(item.rest, READ)
        if isinstance(message, BadLine):
            raise plans.PipeError("a handed message that is none")
        if not self._port.take_answer(message):
            await self._deliver(message)

    async def _deliver(self, message: Message) -> None:
        if self._mini_bus.try_tell(Delivery(message, self._port.url)):
            return
        if self._outlet.is_crowded:
            await self._port.hand_back((message,))
        else:
            # Without waiting: answers and the words of the host come behind this message.
            self._outlet.put(plans.PipeMessage(plans.Word.LOST, rest=encode(message)))

    def _drops(self) -> dict[str, int]:
        """Return what was dropped since this was asked last."""
        now = {reason.value: count for reason, count in self._counters.drops.items()}
        fresh = {each: count - self._reported.get(each, 0) for each, count in now.items()}
        self._reported = now
        return {each: count for each, count in fresh.items() if count}

    # ---- the end

    async def _leave(self, supervisor: Supervisor) -> None:
        """Stop the component; then report that nothing more will come."""
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            if self._plan.contents.is_hyperty:
                await supervisor.stop_child(self._port.url)
            else:
                await self._close_session()
        self._outlet.put(plans.PipeMessage(plans.Word.LEFT, fields={**self._drops()}))
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await self._outlet.wait_flushed()

    async def _close_session(self) -> None:
        port = self._port
        body = write_body(Command(StubMethod.DISCONNECT.value))
        command = Message(1, MessageType.EXECUTE, port.agent, port.url, body)
        await self._deliver(command)
        await port.wait_obeyed()
