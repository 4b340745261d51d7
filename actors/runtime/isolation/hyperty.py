"""Hyperties in sandbox processes of their own: their failures stay there (BUS-15, R11).

The sandbox of the runtime has only the host of the process. A hyperty that crashes, blocks
its process, or breaks the protocol of the pipe ends with its process: its host crashes, and is
started again with another process, until the restarts are used up. Every request that enters or
leaves a sandbox is answered, also when its process has ended.
"""

import re
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.guarded_network import NO_NETWORK
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.trace import NULL_TRACER
from actors.pipe import plan as plans
from actors.pipe.code import code_of, hyperty_code
from actors.pipe.host import HandInResult, HostTools, SandboxHost
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.hyperty.hyperty import Hyperty, Lifecycle
from fsm.bus.transactions import OutstandingCore
from specs.addresses.address import domain_of
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import one_line, visible
from specs.limits import foreign_code
from specs.limits.protocol import DEPLOY_TIMEOUT, MAX_MESSAGE_BYTES, RETRY_AFTER
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from transports.codec import encode, most_bytes

_NO_ROOM: Final = "its sandbox has no room"
_TOO_LARGE: Final = f"larger than {MAX_MESSAGE_BYTES} bytes"


class SandboxMail:
    """The mail of one sandbox; part of its host's task."""

    def __init__(self, port: MiniBusPort, counters: Counters, host: SandboxHost[Delivery]) -> None:
        self._port = port
        self._counters = counters
        self._host = host
        self._handed = OutstandingCore()
        self._asking = 0

    # ---- in

    async def deliver(self, message: Message) -> None:
        """Hand a message in, or refuse it."""
        if self._port.url in message.via:
            self._drop(message, DropReason.LOOP)
            return
        try:
            line = encode(message)
        except BadMessageError as exc:
            await self.refuse(message, exc.code, exc.reason)
            return
        match self._host.hand(message, line):
            case HandInResult.TAKEN:
                if message.is_request:
                    self._handed.ask(message, trio.current_time())
            case HandInResult.FULL:
                await self.refuse(message, Code.UNAVAILABLE, _NO_ROOM, RETRY_AFTER)
            case HandInResult.TOO_LARGE:
                await self.refuse(message, Code.TOO_LARGE, _TOO_LARGE)
            case HandInResult.GONE:
                await self.refuse(message, Code.UNAVAILABLE, "its sandbox is not there")

    async def refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """End an inbound message: a request is answered, anything else is counted.

        Args:
            message: The message.
            code: Reply code.
            why: The reason.
            retry_after: Seconds after which a full queue may have space; None: it is not that.
        """
        self._handed.forget(message)
        if message.is_request:
            await self._port.post(refuse(message, code, why, retry_after))
        else:
            is_full = retry_after is not None or code is Code.TOO_LARGE
            self._drop(message, DropReason.OVERFLOW if is_full else DropReason.NO_TARGET)

    async def lost(self, message: Message) -> None:
        """Refuse what went in and found no place, if it really went in."""
        if not message.is_request or self._handed.knows(message):
            await self.refuse(message, Code.UNAVAILABLE, _NO_ROOM, RETRY_AFTER)

    # ---- out

    def answered(self, message: Message) -> bool:
        """Note an answer; return whether it comes from the receiver of a delivered request."""
        request = self._handed.asked(message)
        return request is not None and request.to == message.from_

    async def ask(self, message: Message) -> None:
        """Have a request sent whose final answer is to be handed in."""
        if self._asking >= foreign_code.HYPERTY_REQUESTS:
            why = "too many requests are open"
            self.answer(refuse(message, Code.UNAVAILABLE, why, RETRY_AFTER))
        elif message.is_request:
            self._asking += 1
            self._host.spawn(self._ask, message)

    async def _ask(self, message: Message) -> None:
        try:
            answer = await self._port.request(message)
            await self._host.tell(_handed_in(message, answer))
        finally:
            self._asking -= 1

    def answer(self, answer: Message) -> None:
        """Hand in a short answer to what came from there, at once.

        Raises:
            BadMessageError: It is too large, or cannot be written.
        """
        self._host.say(_hand(answer))

    def _drop(self, message: Message, reason: DropReason) -> None:
        self._counters.drop(reason, message, self._port.url)

    # ---- the end

    async def give_up(self, why: str) -> None:
        """Answer the open requests: the sandbox has ended."""
        for request in self._handed.unanswered():
            await self._port.post(refuse(request, Code.UNAVAILABLE, why))


def _handed_in(request: Message, answer: Message) -> plans.PipeMessage:
    """Return how an answer is delivered, or that it cannot be; never raise for an answer."""
    try:
        return _hand(answer)
    except BadMessageError as exc:
        return _hand(refuse(request, exc.code, exc.reason))


def _hand(answer: Message) -> plans.PipeMessage:
    """Return how an answer is handed in.

    Raises:
        BadMessageError: It is too large, or cannot be written.
    """
    line = encode(answer)
    if len(line) > most_bytes(answer):
        raise BadMessageError(_TOO_LARGE, Code.TOO_LARGE)
    return plans.PipeMessage(plans.Word.HAND, rest=line)


_FORM: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@final
class NoCodeError(ProtoflyError, public=True):
    """Another process cannot import the class of a hyperty.

    Attributes:
        where: The class, as `module:Class`.
    """

    def __init__(self, where: str) -> None:
        super().__init__(
            f"another process cannot import {where}: put the class into a module, at its top level"
        )
        self.where = where


@attrs.frozen
class HypertyCode:
    """The module and class by which another process imports a hyperty.

    Attributes:
        where: `module:Class`.

    Raises:
        NoCodeError: `where` is not of that form, or the module is `__main__`.
    """

    where: str = attrs.field()

    @where.validator
    def _check(self, _: object, where: str) -> None:
        module, _colon, _name = where.partition(":")
        if _FORM.fullmatch(where) is None or module == "__main__":
            raise NoCodeError(where)

    @property
    def module(self) -> str:
        """The module of the class."""
        return self.where.partition(":")[0]

    @property
    def contents(self) -> plans.HypertyContents:
        """The contents of its sandbox."""
        return plans.HypertyContents(self.where)

    @property
    def archive(self) -> bytes:
        """Nothing: its sources come with what it imports."""
        return b""

    def find(self) -> plans.SandboxCode:
        """Find what it can read and import; blocks.

        Raises:
            ImportError: Its sources are more than a package may have, or cannot be read.
        """
        return code_of(self.module)

    @classmethod
    def of(cls, made: type[Hyperty]) -> "HypertyCode":
        """Return where a class is.

        Raises:
            NoCodeError: It is in the main script, or inside a function or class.
        """
        return cls(f"{made.__module__}:{made.__qualname__}")


@attrs.frozen
class HypertyPackage:
    """The code of a hyperty that came from a catalogue.

    Attributes:
        archive: The very bytes that were verified: a zip archive of Python sources.
        contents: Its class, and what it is to know.
    """

    archive: bytes = attrs.field(repr=False)
    contents: plans.HypertyPackageContents

    def find(self) -> plans.SandboxCode:
        """Find what it can read and import besides its own code; blocks."""
        return hyperty_code()


SandboxedCode: TypeAlias = HypertyCode | HypertyPackage
"""The code of a hyperty that runs in a sandbox."""


class SandboxProcesses:
    """A hyperty in sandbox processes, one after the other, for `Runtime.host`.

    The other process calls the class without arguments: configuration must come by messages.
    The hyperty can send, report and observe as usual; it has no network, no files but those that
    it declares (`actors.pipe.code`), and no environment. When its process ends, open requests to
    it are answered 503 at once, and another process is started; after more crashes than
    `Intensity` allows, the runtime undeploys it.

    Args:
        code: Where its class is, or the package that has it.
        spawn: Makes the sandbox.
        runtime: Address of the runtime.
        ids: Message ids of the hyperty begin where this source is.
        counters: Counts inbound and outbound messages that are dropped.
        life: Lifecycle of the hyperty; records the exceptions of its handlers.
        largest_body: Bytes that a body of the hyperty may have, in chunks.

    Attributes:
        last_id: Highest id of its messages: ids continue from one process to the next.
    """

    def __init__(
        self,
        code: SandboxedCode,
        spawn: plans.Spawn,
        runtime: str,
        ids: IdSource,
        counters: Counters,
        life: Lifecycle,
        largest_body: int = SANDBOX_TRANSFER_BYTES,
    ) -> None:
        self._code = code
        self._spawn = spawn
        self._runtime = runtime
        self._ids = ids
        self._counters = counters
        self._life = life
        self._largest_body = largest_body
        self.last_id = 0

    def record_error(self, item: plans.PipeMessage) -> None:
        """Record an exception of a handler; its text is untrusted."""
        trace = item.rest[-foreign_code.SANDBOX_FAULT :].decode(errors="replace")
        lines = visible(trace).split("\n")
        correlation, handler = (
            one_line(text[: foreign_code.SANDBOX_REASON])
            for text in (item.text, item.get("handler"))
        )
        error = next((line for line in reversed(lines) if line.strip()), "")
        self._life.log_error(correlation, handler, error, exception="\n".join(lines))

    def begin(self, port: MiniBusPort) -> "SandboxedHyperty":
        """Make the host of one process."""
        self.last_id = max(self.last_id, self._ids.next(port.url))
        plan = plans.SandboxPlan(
            url=port.url,
            runtime=self._runtime,
            domain=domain_of(port.url),
            contents=self._code.contents,
            largest_body=self._largest_body,
            ids=self.last_id,
        )
        tools = HostTools(
            spawn=self._spawn,
            network=NO_NETWORK,
            tracer=NULL_TRACER,
            counters=self._counters,
            archive=self._code.archive,
            rate=foreign_code.HYPERTY_RATE,
            burst=foreign_code.HYPERTY_BURST,
            patience=foreign_code.SANDBOX_YIELD,
        )
        return SandboxedHyperty(plan, tools, port, self)


class SandboxedHyperty(SandboxHost[Delivery]):
    """The hyperty, as the rest of the runtime sees it."""

    def __init__(
        self,
        plan: plans.SandboxPlan,
        tools: HostTools,
        port: MiniBusPort,
        processes: SandboxProcesses,
    ) -> None:
        super().__init__(plan, tools)
        self._port = port
        self._processes = processes
        self._mail = SandboxMail(port, tools.counters, self)
        self._is_ready = trio.Event()

    @override
    async def start(self) -> None:
        await super().start()
        with trio.move_on_after(DEPLOY_TIMEOUT):
            await self._is_ready.wait()
            return
        raise plans.SandboxError("it was not ready in time")

    @override
    async def handle(self, message: Delivery) -> None:
        await self._mail.deliver(message.message)

    @override
    async def ready(self) -> None:
        self._is_ready.set()

    @override
    async def posted(self, message: Message) -> None:
        self._note(message)
        self._mail.answered(message)
        await self._port.post(message)

    @override
    async def asked(self, message: Message) -> None:
        self._note(message)
        await self._mail.ask(message)

    def _note(self, message: Message) -> None:
        if message.from_ == self.plan.url and not message.is_response:
            self._processes.last_id = max(self._processes.last_id, message.id)

    @override
    async def lost(self, message: Message) -> None:
        await self._mail.lost(message)

    @override
    async def reported(self, item: plans.PipeMessage) -> None:
        if item.word is plans.Word.FAULT:
            self._processes.record_error(item)
            return
        raise plans.PipeError(f"{item.word} is nothing a hyperty says")

    @override
    def ended(self, why: str) -> None:
        raise plans.SandboxEndedError(why) if self._is_ready.is_set() else plans.SandboxError(why)

    @override
    async def stop(self) -> None:
        await self._mail.give_up(f"the hyperty is gone: {self.why}")
