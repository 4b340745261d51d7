"""Host of a sandbox process: passes messages through the pipe and checks all input (T16).

The host passes messages in both directions, dials for the sandbox, and asks it for heartbeats. A
sandbox that is silent, floods the pipe, or breaks the protocol of the pipe is ended; its owner is
notified once, for any reason. Trace records of the sandbox are checked before the host records
them. The host of a stub checks the stub's state transitions by their declared table (OBS-06).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import ClassVar, Final, TypeAlias, TypeVar, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.kit.trace import More, Tracer
from actors.pipe import plan as plans
from actors.pipe.outlet import Outlet, Relays
from actors.pipe.process import ProcessLink
from fsm.engine import Step
from fsm.limits.rates import FloodCore, TokenBucket
from fsm.limits.timers import IDLE, ProcessorTime, Sign, SignsOfLife
from fsm.machines.stub_connection import STUB_CONNECTION, State
from fsm.session.stub_client import StubMirror
from fsm.table import UndeclaredTransitionError
from specs.identity import NOBODY, READ, Stamp
from specs.limits import foreign_code, protocol
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Op
from transports.codec import BadLine, decode_line, most_bytes
from transports.errors import LinkError
from transports.link import Link, Network

_OPS: Final = frozenset({Op.DELIVER, Op.XMIT, Op.RCV, Op.QUEUE, Op.FLUSH, Op.DROP, Op.SYNTH})
_LONGEST: Final = 2048

_MANY: Final = 10_000
"""Maximum number of drops that a sandbox may report between two signs of life."""


def keep_hop(tracer: Tracer, stub: str, item: plans.PipeMessage) -> None:
    """Record an event of a message that a sandbox reports, if the event concerns its own component.

    Args:
        tracer: Destination of the records.
        stub: Address of the stub.
        item: Message of the pipe.

    Raises:
        PipeError: The report is about another component, or of a kind that no sandbox may report.
    """
    message = decode_line(item.rest)
    op = item.get("op")
    if item.text not in {f"stub:{stub}", f"minibus:{stub}"} or op not in _OPS:
        raise plans.PipeError("evidence that is not a sandbox's to give")
    if item.get("stub") not in {"", stub} or isinstance(message, BadLine):
        raise plans.PipeError("evidence of a message that is none of its stub's")
    more: More = {}
    if item.get("stub"):
        more["stub"] = stub
    if item.get("link"):
        more["link"] = item.get("link")[:_LONGEST]
    if item.get("listener"):
        more["listener"] = item.get("listener")[:_LONGEST]
    if item.get("reason") in set(DropReason):
        more["reason"] = item.get("reason")
    tracer.message(item.text, Op(op), message, **more)


def count_drops(counters: Counters, item: plans.PipeMessage) -> None:
    """Count the messages that a sandbox has dropped since its last report.

    Args:
        counters: Counters of the process.
        item: Message of the pipe.

    Raises:
        PipeError: A reason or a count is invalid.
    """
    for reason, count in item.fields.items():
        # `type`, as a boolean is an int, too.
        if reason not in set(DropReason) or type(count) is not int or not 0 < count <= _MANY:
            raise plans.PipeError("a count of unknown kind")
        counters.dropped_elsewhere(DropReason(reason), count)


_log = get_logger("actors.pipe")

M = TypeVar("M")

_Wait: TypeAlias = Callable[[], Awaitable[None]]


class HandInResult(Enum):
    """Result of passing a message into a sandbox."""

    TAKEN = auto()
    FULL = auto()
    TOO_LARGE = auto()
    GONE = auto()


@attrs.frozen
class HostTools:
    """Dependencies and limits of a sandbox host.

    Attributes:
        login: Returns the token with which its stub opens a session; called for each session.
        archive: The code for the sandbox, if its plan is for a package.
        rate: Messages that the component may send per second.
        burst: Messages that the component may send at once.
        patience: Seconds that each of its messages waits at most until this process has nothing
            else to do, if it posts more than SANDBOX_EASY_RATE.
    """

    spawn: plans.Spawn
    network: Network
    tracer: Tracer
    counters: Counters
    login: plans.TokenSource = plans.nothing
    archive: bytes = attrs.field(default=b"", repr=False)
    rate: float = protocol.SANDBOX_RATE
    burst: int = protocol.SANDBOX_BURST
    patience: float = 0.0


class SandboxHost(Actor[M], ABC):
    """Base class of actors that run one sandbox with one component.

    Attributes:
        why: Why the sandbox has ended, once it has.
        stamp: Whether sender identities in its messages are read, for the owner to check.
    """

    stamp: ClassVar[Stamp] = NOBODY

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools) -> None:
        self.plan = plan
        self.why = "it was ended"
        self.tools = tools
        self._easy = TokenBucket(foreign_code.SANDBOX_EASY_RATE, foreign_code.SANDBOX_EASY_BURST)
        self._posts = FloodCore(tools.rate, tools.burst, foreign_code.SANDBOX_FLOOD)
        self._words = FloodCore(
            foreign_code.SANDBOX_WORDS * tools.rate,
            foreign_code.SANDBOX_WORDS * tools.burst,
            foreign_code.SANDBOX_FLOOD,
        )
        self._waited = 0.0
        self._at_rest: _Wait = trio.lowlevel.checkpoint
        self._outlet: Outlet | None = None
        self._signs = SignsOfLife()
        self._used: Callable[[], ProcessorTime] = lambda: IDLE
        self._has_left = trio.Event()

    # ---- hooks of the owner

    @abstractmethod
    async def on_ready(self) -> None:
        """Handle the report that the component in the sandbox has started."""

    @abstractmethod
    async def on_post(self, message: Message) -> None:
        """Handle an unchecked message that the component sent."""

    @abstractmethod
    async def on_request(self, message: Message) -> None:
        """Handle a request of the component; the final answer must be passed into the sandbox."""

    @abstractmethod
    async def on_lost(self, message: Message) -> None:
        """Handle an untrusted message that the sandbox could not accept, as its queue was full."""

    @abstractmethod
    async def on_report(self, item: plans.PipeMessage) -> None:
        """Handle a pipe message that only some kinds of components may send.

        Raises:
            PipeError: This component may not send it.
        """

    @abstractmethod
    def on_end(self, why: str) -> None:
        """Handle an end of the sandbox that the host did not request."""

    # ---- inbound

    @override
    async def start(self) -> None:
        self.spawn(self._live)

    @final
    def hand(self, message: Message, line: bytes) -> HandInResult:
        """Pass a message into the sandbox, without waiting.

        Args:
            message: The message.
            line: The encoded message.
        """
        if len(line) > most_bytes(message):
            return HandInResult.TOO_LARGE
        if self._outlet is None or self._outlet.is_closed:
            return HandInResult.GONE
        return (
            HandInResult.TAKEN
            if self._outlet.offer(plans.PipeMessage(plans.Word.HAND, rest=line))
            else HandInResult.FULL
        )

    @final
    def say(self, item: plans.PipeMessage) -> None:
        """Send a pipe message without waiting, if the pipe is open."""
        if self._outlet is not None:
            self._outlet.put(item)

    @final
    def offer(self, item: plans.PipeMessage) -> bool:
        """Send a pipe message if the pipe is open and has room; return whether it was sent."""
        return self._outlet is not None and self._outlet.offer(item)

    @final
    async def tell(self, item: plans.PipeMessage) -> None:
        """Send a large item, if the pipe is open; wait while there is no room.

        No checkpoint while there is room. If cancelled, the item is not sent.
        """
        if self._outlet is not None:
            await self._outlet.send(item)

    # ---- signs of life

    @override
    def deadline(self) -> float:
        return self._signs.due

    @override
    async def timed_out(self) -> None:
        now = trio.current_time()
        match self._signs.timed_out(now, self._used()):
            case Sign.ASK:
                self.say(plans.PipeMessage(plans.Word.PING))
            case Sign.END:
                self._leave(f"it gave no sign of life for {self._signs.silence(now):.0f} s")
            case Sign.WAIT:
                pass

    def _alive(self) -> None:
        self._signs.alive(trio.current_time())
        self.wake()

    def _leave(self, why: str) -> None:
        if not self._has_left.is_set():
            _log.warning("sandbox ended", component=self.plan.url, why=why)
            self.why = why
            self._has_left.set()
            self.on_end(why)

    @override
    async def closing(self) -> None:
        if self._outlet is not None and not self._has_left.is_set():
            self._outlet.put(plans.PipeMessage(plans.Word.LEAVE))
            with trio.move_on_after(2 * protocol.GOODBYE_TIMEOUT):
                await self._has_left.wait()

    # ---- the pipe

    async def _live(self) -> None:
        try:
            why = await self._run_sandbox()
        except (plans.SandboxError, plans.PipeError) as exc:
            why = exc.reason
        except LinkError:
            why = "its process ended"
        self._leave(why)

    async def _run_sandbox(self) -> str:
        """Run the sandbox until it ends; return the reason of the end."""
        # The module is slow to import, and only needed with sandboxes.
        from trio.testing import wait_all_tasks_blocked  # noqa: PLC0415

        self._at_rest = wait_all_tasks_blocked
        async with self.tools.spawn(self.plan.domain) as link:
            if isinstance(link, ProcessLink):
                self._used = link.processor_time
            outlet = Outlet(link)
            relays = Relays(self.tools.network, self.plan.endpoints, outlet)
            await link.send(
                plans.write_message(
                    plans.PipeMessage(plans.Word.PLAN, fields=plans.write_plan(self.plan))
                )
            )
            self.spawn(self._write, outlet)
            if self.plan.contents.is_packaged:
                for part in plans.parts_of(0, self.tools.archive, plans.Word.CODE):
                    await outlet.send(part)
            self._outlet = outlet
            return await self._read(link, relays)

    async def _write(self, outlet: Outlet) -> None:
        await outlet.run()
        if outlet.is_overrun:
            self._leave("it does not read what is sent to it")

    async def _read(self, link: Link, relays: Relays) -> str:
        while not self._has_left.is_set():
            item = await self._next(link)
            await self._slow_down(self._words)
            match item.word:
                case plans.Word.DATA | plans.Word.TOOK | plans.Word.HANG:
                    relays.receive(item)
                case plans.Word.DIAL:
                    work = relays.dial(item)
                    if work is not None:
                        self.spawn(work)
                case plans.Word.HOP:
                    if self.plan.hops:
                        keep_hop(self.tools.tracer, self.plan.url, item)
                case plans.Word.READY if item.text:
                    return f"it could not be started: {item.text[: foreign_code.SANDBOX_REASON]}"
                case _:
                    await self._receive(item)
        return self.why

    async def _next(self, link: Link) -> plans.PipeMessage:
        """Return the next message of the pipe; add the time of the wait to `_waited`."""
        start = trio.current_time()
        frame = await link.receive()
        self._waited += trio.current_time() - start
        return plans.read_message(frame)

    async def _slow_down(self, flood: FloodCore) -> None:
        pause = flood.spend(trio.current_time(), self._waited)
        if pause == math.inf:
            raise plans.PipeError("it says too much for too long")
        # Other tasks run after each message, however many come at once.
        await trio.sleep(pause)

    async def _receive(self, item: plans.PipeMessage) -> None:
        match item.word:
            case plans.Word.READY:
                self._alive()
                await self.on_ready()
            case plans.Word.PONG if self._signs.is_owed:
                self._alive()
                self._count(item)
            case plans.Word.LEFT:
                self._count(item)
                self._has_left.set()
                self.finish()
            case plans.Word.POST | plans.Word.ASK | plans.Word.LOST | plans.Word.FAULT:
                await self._slow_down(self._posts)
                await self._yield_to_others()
                await self._take_message(item)
            case _:
                await self.on_report(item)

    async def _yield_to_others(self) -> None:
        """Let other tasks run until they wait, if the component posts many messages."""
        if self.tools.patience and not self._easy.try_spend(trio.current_time()):
            with trio.move_on_after(self.tools.patience):
                await self._at_rest()

    async def _take_message(self, item: plans.PipeMessage) -> None:
        match item.word:
            case plans.Word.POST:
                await self.on_post(_message(item, self.stamp))
            case plans.Word.ASK:
                await self.on_request(_message(item, self.stamp))
            case plans.Word.LOST:
                await self.on_lost(_message(item, self.stamp))
            case _:
                await self.on_report(item)

    def _count(self, item: plans.PipeMessage) -> None:
        count_drops(self.tools.counters, item)


def _message(item: plans.PipeMessage, stamp: Stamp) -> Message:
    message = decode_line(item.rest, stamp)
    if isinstance(message, BadLine):
        raise plans.PipeError(f"a message that is none: {message.error.reason}")
    return message


class StubHost(SandboxHost[M], ABC):
    """Base class of hosts of a sandbox with a stub; checks the stub's state transitions."""

    stamp = READ

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools) -> None:
        super().__init__(plan, tools)
        self._tracer = tools.tracer
        self._login = tools.login
        self._mirror = StubMirror(plan.url)
        self._is_logging_in = False

    @property
    def state(self) -> State | None:
        """State of the stub's connection; None: no state transition was reported yet."""
        return self._mirror.state

    @abstractmethod
    async def on_step(self, step: Step) -> None:
        """Handle a state transition of the stub's connection, which the transition table allows."""

    @abstractmethod
    async def on_token(self, token: str, *, is_anew: bool) -> None:
        """Keep the token of the stub's session for the next one.

        Args:
            token: The token.
            is_anew: Whether the token is of a new session.
        """

    @override
    async def on_report(self, item: plans.PipeMessage) -> None:
        match item.word:
            case plans.Word.STEP:
                await self._take_step(item)
            case plans.Word.KEEP:
                await self.on_token(item.text, is_anew=bool(item.number))
            case plans.Word.LOGIN:
                self._ask_login(item.number)
            case _:
                raise plans.PipeError(f"{item.word} is no word of a sandbox")

    async def _take_step(self, item: plans.PipeMessage) -> None:
        why = item.get("why")[: foreign_code.SANDBOX_REASON]
        try:
            machine, cause, new = item.get("machine"), item.get("cause"), item.get("new")
            step = self._mirror.follow(machine, cause, new, why)
        except UndeclaredTransitionError:
            # Let this actor crash: the monitor records it, and the sandbox ends.
            self.why = "its stub took a step that no table declares"
            raise
        self._tracer.step(f"stub:{self.plan.url}", step)
        if step.machine == STUB_CONNECTION.name:
            await self.on_step(step)

    @final
    def rest(self) -> Step | None:
        """Record the final state transitions of the stub, as its sandbox has ended.

        Returns:
            The last transition of its connection; None: the connection was closed already.
        """
        steps = self._mirror.rest(self.why)
        for step in steps:
            self._tracer.step(f"stub:{self.plan.url}", step)
        return next((each for each in steps if each.machine == STUB_CONNECTION.name), None)

    # ---- logging in

    def _ask_login(self, number: int) -> None:
        if self._is_logging_in:
            # The last login still runs, and may still succeed.
            self.say(plans.PipeMessage(plans.Word.LOGIN, number))
        else:
            self._is_logging_in = True
            self.spawn(self._log_in, number)

    async def _log_in(self, number: int) -> None:
        token = await self._login()
        self._is_logging_in = False
        self.say(plans.PipeMessage(plans.Word.LOGIN, number, token or ""))
