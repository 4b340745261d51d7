"""Hyperties and stubs in sandbox processes, where their failures stay (BUS-15, R11).

The sandbox of the runtime has only the host of the process. A hyperty that crashes, blocks
its process, or breaks the protocol of the pipe ends with its process: its host crashes, and is
started again with another process, until the restarts are used up. Every request that enters or
leaves a sandbox is answered, also when its process has ended.
"""

import re
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.catalogue.errors import CatalogueFileError, RefusedDescriptorError
from actors.kit.counters import Counters
from actors.kit.guarded_network import NO_NETWORK
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import NULL_TRACER
from actors.pipe import plan as plans
from actors.pipe.code import code_of, hyperty_code
from actors.pipe.host import HandInResult, HostTools, SandboxHost, StubHost
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.hyperty.hyperty import Hyperty, Lifecycle, Profile
from actors.runtime.registry.allocation import AllocationError, NotKeptError
from actors.runtime.registry.registrations import RegistrationError
from actors.runtime.stubs.catalogue import Catalogue, HypertyFound
from actors.runtime.stubs.login import token_for_sandbox
from actors.runtime.stubs.stub import StubContext, StubFactory, status_event
from fsm.bus.transactions import OutstandingCore
from fsm.catalogue.descriptor import Reason
from fsm.engine import Step
from specs.addresses.address import domain_of, is_below, status_of
from specs.errors import BadMessageError, BadUrlError, ProtoflyError
from specs.identity import SenderIdentity
from specs.jsonvalue import one_line, visible
from specs.limits import foreign_code
from specs.limits.foreign_code import HYPERTY_BURST, HYPERTY_RATE, SANDBOX_YIELD
from specs.limits.protocol import DEPLOY_TIMEOUT, MAX_MESSAGE_BYTES, PEER_OFFENCES, RETRY_AFTER
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES
from specs.message import GIVEN_UP, Message, identified, refuse, stamped
from specs.reply_code import Code, DropReason
from transports.codec import encode, most_bytes

_NO_ROOM: Final = "its sandbox has no room"
_TOO_LARGE: Final = f"larger than {MAX_MESSAGE_BYTES} bytes"


class SandboxMail(SandboxHost[Delivery], ABC):
    """Host in the runtime of one sandbox process: it passes messages in both directions."""

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools, port: MiniBusPort) -> None:
        super().__init__(plan, tools)
        self.port = port
        self._delivered = OutstandingCore()
        self._open_requests = 0
        self.is_ready = trio.Event()

    @override
    async def on_ready(self) -> None:
        self.is_ready.set()

    @override
    def on_end(self, why: str) -> None:
        raise plans.SandboxEndedError(why) if self.is_ready.is_set() else plans.SandboxError(why)

    # ---- in

    @override
    async def handle(self, message: Delivery) -> None:
        await self._deliver(message.message)

    async def _deliver(self, message: Message) -> None:
        """Pass a message to the process, or refuse the message."""
        if self.port.url in message.via:
            self.drop(message, DropReason.LOOP)
            return
        try:
            line = encode(message)
        except BadMessageError as exc:
            await self.refuse(message, exc.code, exc.reason)
            return
        match self.hand(message, line):
            case HandInResult.TAKEN:
                if message.is_request:
                    self._delivered.ask(message, trio.current_time())
                elif GIVEN_UP in message.body:
                    self._delivered.end_given_up(message)
            case HandInResult.FULL:
                await self.refuse(message, Code.UNAVAILABLE, _NO_ROOM, RETRY_AFTER)
            case HandInResult.TOO_LARGE:
                await self.refuse(message, Code.TOO_LARGE, _TOO_LARGE)
            case HandInResult.GONE:
                await self.refuse(message, Code.UNAVAILABLE, "its sandbox is not there")

    async def refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse a message to the process: a request is answered, any other message is counted.

        Args:
            message: The message.
            code: Reply code.
            why: The reason.
            retry_after: Seconds after which a full queue may have space; None: no queue is full.
        """
        self._delivered.forget(message)
        if message.is_request:
            await self.port.post(refuse(message, code, why, retry_after))
        else:
            is_full = retry_after is not None or code is Code.TOO_LARGE
            self.drop(message, DropReason.OVERFLOW if is_full else DropReason.NO_TARGET)

    @override
    async def on_lost(self, message: Message) -> None:
        # The message may not have reached the process.
        if not message.is_request or self._delivered.knows(message):
            await self.refuse(message, Code.UNAVAILABLE, _NO_ROOM, RETRY_AFTER)

    # ---- out

    def settle_answer(self, message: Message) -> bool:
        """Close the request of an answer; return whether the request's receiver sent the answer."""
        request = self._delivered.asked(message)
        return request is not None and request.to == message.from_

    async def send_request(self, message: Message) -> None:
        """Send a request of the process from a task, which passes back the final answer."""
        if self._open_requests >= foreign_code.HYPERTY_REQUESTS:
            why = "too many requests are open"
            self.answer(refuse(message, Code.UNAVAILABLE, why, RETRY_AFTER))
        elif message.is_request:
            self._open_requests += 1
            self.spawn(self._ask, message)

    async def _ask(self, message: Message) -> None:
        try:
            answer = await self.port.request(message, self._pass_progress)
            await self.tell(_answer_or_refusal(message, answer))
        finally:
            self._open_requests -= 1

    def _pass_progress(self, answer: Message) -> None:
        """Pass a provisional answer to the process; one that does not fit is dropped."""
        try:
            is_sent = self.offer(_pipe_answer(answer))
        except BadMessageError:
            is_sent = False
        if not is_sent:
            self.drop(answer, DropReason.OVERFLOW)

    def answer(self, answer: Message) -> None:
        """Pass a short answer to the process, without waiting.

        Raises:
            BadMessageError: The answer is too large, or cannot be written.
        """
        self.say(_pipe_answer(answer))

    def drop(self, message: Message, reason: DropReason) -> None:
        """Count a message that is dropped."""
        self.tools.counters.drop(reason, message, self.port.url)

    # ---- the end

    async def give_up(self, why: str) -> None:
        """Answer the open requests with errors, because the sandbox process has ended."""
        for request in self._delivered.unanswered():
            await self.port.post(refuse(request, Code.UNAVAILABLE, why))


def _answer_or_refusal(request: Message, answer: Message) -> plans.PipeMessage:
    """Return the pipe message for an answer, or for a refusal if the answer cannot be encoded."""
    try:
        return _pipe_answer(answer)
    except BadMessageError as exc:
        return _pipe_answer(refuse(request, exc.code, exc.reason))


def _pipe_answer(answer: Message) -> plans.PipeMessage:
    """Return the pipe message that passes an answer to the process.

    Raises:
        BadMessageError: The answer is too large, or cannot be written.
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
    def contents(self) -> plans.Contents:
        """Files that are packed for the sandbox process."""
        return plans.Contents(plans.ContentsKind.PROGRAM, self.where, {})

    @property
    def archive(self) -> bytes:
        """An empty archive: the process reads the sources as files."""
        return b""

    def find(self) -> plans.SandboxCode:
        """Find the files that the process can read and import; blocks.

        Raises:
            ImportError: The sources exceed the limits of a package, or cannot be read.
        """
        return code_of(self.module)

    @classmethod
    def of(cls, made: type[Hyperty]) -> "HypertyCode":
        """Return the module and name of a class.

        Raises:
            NoCodeError: The class is in the main script, or inside a function or class.
        """
        return cls(f"{made.__module__}:{made.__qualname__}")


@attrs.frozen
class HypertyPackage:
    """The code of a hyperty that came from a catalogue.

    Attributes:
        archive: The very bytes that were verified: a zip archive of Python sources.
        contents: Its class and its configuration.
    """

    archive: bytes = attrs.field(repr=False)
    contents: plans.Contents

    def find(self) -> plans.SandboxCode:
        """Find the files that the process can read and import besides the archive; blocks."""
        return hyperty_code()


SandboxedCode: TypeAlias = HypertyCode | HypertyPackage
"""Code of a hyperty that runs in a sandbox process: a module, or a package of a catalogue."""


class SandboxProcesses:
    """Starts sandbox processes for one hyperty, one after the other, for `Runtime.host`.

    The other process calls the class without arguments: configuration must come by messages.
    The hyperty can send, report and observe as usual; it has no network, no files but those that
    it declares (`actors.pipe.code`), and no environment. When its process ends, open requests to
    it are answered 503 at once, and another process is started; after more crashes than
    `Intensity` allows, the runtime undeploys it.

    Args:
        code: Where its class is, or the package that has it.
        spawn: Makes the sandbox.
        runtime: Address of the runtime.
        ids: Source of message ids; those of the hyperty begin at its next id.
        counters: Counts inbound and outbound messages that are dropped.
        life: Lifecycle of the hyperty; records the exceptions of its handlers.
        largest_body: Bytes that a body of the hyperty may have, in chunks.
        answer_within: Seconds that its handlers may take, unless its class names a time.

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
        answer_within: float | None = None,
    ) -> None:
        self._code = code
        self._spawn = spawn
        self._runtime = runtime
        self._ids = ids
        self._counters = counters
        self._life = life
        self._largest_body = largest_body
        self._answer_within = answer_within
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
        """Return the host object of a new sandbox process."""
        self.last_id = max(self.last_id, self._ids.next(port.url))
        plan = plans.SandboxPlan(
            url=port.url,
            runtime=self._runtime,
            domain=domain_of(port.url),
            contents=self._code.contents,
            endpoints=(),
            session=None,
            ids=self.last_id,
            hops=False,
            largest_body=self._largest_body,
            answer_within=self._answer_within,
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


class SandboxedHyperty(SandboxMail):
    """The actor in the runtime that stands for a hyperty in a sandbox process."""

    def __init__(
        self,
        plan: plans.SandboxPlan,
        tools: HostTools,
        port: MiniBusPort,
        processes: SandboxProcesses,
    ) -> None:
        super().__init__(plan, tools, port)
        self._processes = processes

    @override
    async def start(self) -> None:
        await super().start()
        with trio.move_on_after(DEPLOY_TIMEOUT):
            await self.is_ready.wait()
            return
        raise plans.SandboxError("it was not ready in time")

    @override
    async def on_post(self, message: Message) -> None:
        self._record_id(message)
        self.settle_answer(message)
        if GIVEN_UP in message.body:
            # The task that sends the request has perhaps not begun.
            await trio.lowlevel.checkpoint()
        await self.port.post(message)

    @override
    async def on_request(self, message: Message) -> None:
        self._record_id(message)
        await self.send_request(message)

    def _record_id(self, message: Message) -> None:
        if message.from_ == self.plan.url and not message.is_response:
            self._processes.last_id = max(self._processes.last_id, message.id)

    @override
    async def on_report(self, item: plans.PipeMessage) -> None:
        if item.word is plans.Word.FAULT:
            self._processes.record_error(item)
            return
        raise plans.PipeError(f"{item.word} is no word of a hyperty")

    @override
    async def stop(self) -> None:
        await self.give_up(f"the hyperty is gone: {self.why}")


# Hyperties from signed descriptors: how they are found, and the step of a failure (HYP-01).
#
# The steps are: descriptor, trust, constraints, address, sandbox, registration. A step that fails
# undoes those before it.


@final
class LoadStep(StrEnum):
    """The stages of loading a hyperty from a catalogue."""

    DESCRIPTOR = "descriptor"
    """Its descriptor is fetched and read."""

    TRUST = "trust"
    """Its signature, its publisher and its package are verified."""

    CONSTRAINTS = "constraints"
    """The runtime meets its constraints."""

    ADDRESS = "address"
    """The node allocates its address."""

    SANDBOX = "sandbox"
    """It starts in a sandbox process."""

    REGISTRATION = "registration"
    """The domain registry takes its record."""


@final
class HypertyLoadError(ProtoflyError, public=True):
    """A hyperty of a catalogue was not deployed; all completed steps were undone.

    Attributes:
        address: Catalogue address of its descriptor.
        step: The step that failed.
        reason: Why the step failed.
    """

    def __init__(self, address: str, step: LoadStep, reason: str) -> None:
        super().__init__(f"{address} is not loaded: {step}: {reason}")
        self.address = address
        self.step = step
        self.reason = reason


_NO_CATALOGUE: Final = (
    "no catalogues are configured; name them with --catalogue and --trust, or "
    "RuntimeConfig.catalogues"
)

_STEPS: Final = {
    **dict.fromkeys(
        (
            Reason.NOT_THERE,
            Reason.AWAY,
            Reason.MALFORMED,
            Reason.MISPLACED,
            Reason.LANGUAGE,
            Reason.NOTHING_TO_DEPLOY,
        ),
        LoadStep.DESCRIPTOR,
    ),
    Reason.CONSTRAINT: LoadStep.CONSTRAINTS,
    Reason.NO_SANDBOX: LoadStep.SANDBOX,
}
"""The failed step by the reason of a refusal; all other reasons mean `LoadStep.TRUST`."""


@contextmanager
def load_errors(address: str) -> Iterator[None]:
    """Convert errors in the context into a `HypertyLoadError` that names the stage of loading.

    Args:
        address: Catalogue address of the hyperty.

    Raises:
        HypertyLoadError: A step failed.
    """
    try:
        yield
    except RefusedDescriptorError as exc:
        step = _STEPS.get(exc.refused.reason, LoadStep.TRUST)
        raise HypertyLoadError(address, step, str(exc)) from exc
    except BadUrlError as exc:
        raise HypertyLoadError(address, LoadStep.DESCRIPTOR, str(exc)) from exc
    except CatalogueFileError as exc:
        raise HypertyLoadError(address, LoadStep.TRUST, str(exc)) from exc
    except (AllocationError, NotKeptError, BadMessageError) as exc:
        raise HypertyLoadError(address, LoadStep.ADDRESS, str(exc)) from exc
    except (plans.SandboxError, plans.SandboxEndedError) as exc:
        raise HypertyLoadError(address, LoadStep.SANDBOX, str(exc)) from exc
    except RegistrationError as exc:
        raise HypertyLoadError(address, LoadStep.REGISTRATION, str(exc)) from exc


async def find_hyperty(
    catalogue: Catalogue, address: str, name: str | None
) -> tuple[Profile, HypertyPackage]:
    """Return the description of a hyperty of a catalogue, and its verified code (CAT-02).

    If cancelled, fetched and accepted descriptors may be kept.

    Args:
        catalogue: Catalogue of the runtime.
        address: Catalogue address of the hyperty.
        name: Its name in the domain registry; None: that of its descriptor.

    Raises:
        HypertyLoadError: No catalogue is configured.
        RefusedDescriptorError: The hyperty must not run.
        BadUrlError: The address is no catalogue address.
        CatalogueFileError: The record of accepted descriptors cannot be written.
    """
    hyperty = await catalogue.hyperty(address)
    if hyperty is None:
        raise HypertyLoadError(address, LoadStep.DESCRIPTOR, _NO_CATALOGUE)
    return _profile(hyperty, name), _package(hyperty)


def _profile(hyperty: HypertyFound, name: str | None) -> Profile:
    descriptor, schema = hyperty.descriptor, hyperty.descriptor.message_schema
    return Profile(
        name or descriptor.object_name,
        descriptor.cguid,
        resources=descriptor.hyperty_type,
        data_schemes=hyperty.schemes,
        message_schema=schema if isinstance(schema, dict) else None,
    )


def _package(hyperty: HypertyFound) -> HypertyPackage:
    package, configuration = hyperty.descriptor.source_package, hyperty.descriptor.configuration
    entry_point = "" if package is None else package.entry_point
    contents = plans.Contents(plans.ContentsKind.HYPERTY, entry_point, configuration or {})
    return HypertyPackage(hyperty.package, contents)


# Stubs that came as packages: each in a sandbox process of its own (PFY-01, STB-12, T13, T16).
#
# The runtime's own sandbox has only their host, which checks each message of a stub: its sender is
# the stub or an address of the stub's domain, an answer belongs to an open request, and a step of
# its connection is a row of the table. The host itself publishes the status events on the bus.

_HOST_IDS: Final = 1_000_000_000
"""Number of message ids that are reserved for the host; the ids of the stub begin above."""


@attrs.frozen
class StubCode:
    """The code of a stub, as its descriptor names it.

    Attributes:
        archive: The very bytes that were verified: a zip archive of Python sources.
        entry_point: The function that makes the stub, as `module:activate`.
    """

    archive: bytes = attrs.field(repr=False)
    entry_point: str


def sandboxed_stub(code: StubCode, endpoints: tuple[str, ...], spawn: plans.Spawn) -> StubFactory:
    """Return the factory of a stub that runs in a sandbox process.

    The actor of the stub has started once the stub runs; if the stub cannot run, the start raises
    the reason. When the process ends by itself, the actor crashes, and messages that wait for the
    stub are answered 503.

    Args:
        code: The code, which goes through the pipe and is imported from memory.
        endpoints: The only endpoints that the stub may dial: `ws://host:port/path`, `tcp://host:port`
            (frames behind their length), `stream://host:port` (raw bytes).
        spawn: Makes the sandbox.
    """
    return partial(_make_stub_host, code, endpoints, spawn)


def _make_stub_host(
    code: StubCode, endpoints: tuple[str, ...], spawn: plans.Spawn, context: StubContext
) -> Actor[Delivery]:
    config = context.config
    plan = plans.SandboxPlan(
        url=context.url,
        runtime=config.runtime,
        domain=config.domain,
        contents=plans.Contents(plans.ContentsKind.PACKAGE, code.entry_point, config.options),
        endpoints=endpoints,
        session=config.session,
        ids=context.ids.next(context.url) + _HOST_IDS,
        hops=context.tracer.hops,
    )
    tools = HostTools(
        spawn=spawn,
        network=context.network,
        tracer=context.tracer,
        counters=context.counters,
        login=partial(token_for_sandbox, config.credentials, config.domain),
        archive=code.archive,
        rate=HYPERTY_RATE,
        burst=HYPERTY_BURST,
        patience=SANDBOX_YIELD,
    )
    return SandboxedStub(plan, tools, context)


class SandboxedStub(SandboxMail, StubHost[Delivery]):
    """The actor in the runtime that stands for a stub in a sandbox process."""

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools, context: StubContext) -> None:
        super().__init__(plan, tools, context.bus)
        self._context = context
        self._offences = 0
        self._token: str | None = None
        self._sessions = 1

    @override
    async def start(self) -> None:
        await super().start()
        try:
            await self.is_ready.wait()
        finally:
            if not self.is_ready.is_set():
                self.rest()

    # ---- messages of the stub

    @override
    async def on_request(self, message: Message) -> None:
        if message.from_ == self.plan.url:
            await self.send_request(self._with_own_sender(message))
        else:
            await self.on_post(message)

    @override
    async def on_post(self, message: Message) -> None:
        if message.from_ == self.plan.url:
            await self._post_own(message)
        elif message.is_response:
            await self._answer(message)
        elif self._may_come_by(message):
            via = message if self.plan.url in message.via else stamped(message, self.plan.url)
            await self.port.post(identified(via, self._context.sender_of(message)))
        else:
            self._record_offence(message)

    async def _post_own(self, message: Message) -> None:
        """Post a message of the stub itself, but no status event: the host publishes these."""
        if not is_below(message.to, status_of(self.plan.url)):
            await self.port.post(self._with_own_sender(message))
        elif message.body.get("value") != self.state:
            raise plans.PipeError("it reported a status that it does not have")

    def _with_own_sender(self, message: Message) -> Message:
        """Return a message of the stub itself, sent as this runtime, without a user."""
        return identified(message, SenderIdentity(self.plan.runtime))

    async def _answer(self, message: Message) -> None:
        if self.settle_answer(message):
            await self.port.post(identified(message, self._context.sender_of(message)))
        else:
            # An honest stub, too, answers requests that are no longer awaited.
            self.drop(message, DropReason.UNMATCHED)

    def _may_come_by(self, message: Message) -> bool:
        """Return whether a sender may be reached by this stub; any may by the own domain's stub."""
        own = domain_of(self.plan.runtime)
        return self.plan.domain in {own, domain_of(message.from_)}

    def _record_offence(self, message: Message) -> None:
        """Refuse a message that the stub may not send; after `PEER_OFFENCES` end the stub."""
        self._offences += 1
        if self._offences >= PEER_OFFENCES:
            raise plans.PipeError("it sent too many messages that it may not send")
        self.drop(message, DropReason.UNKNOWN_SOURCE)
        if message.is_request:
            why = f"{message.from_} is not of {self.plan.domain}"
            self.answer(refuse(message, Code.UNAUTHENTICATED, why))

    # ---- its connection

    @override
    async def on_step(self, step: Step) -> None:
        await self.port.post(status_event(self._context, step, self._sessions))

    @override
    async def on_token(self, token: str, *, is_anew: bool) -> None:
        if is_anew and self._token not in {None, token}:
            self._sessions += 1
        self._token = token
        self._context.keep(token, is_anew)

    # ---- the end

    @override
    async def stop(self) -> None:
        self.rest()
        await self.give_up(f"the stub is gone: {self.why}")
