"""Hyperties in sandbox processes of their own: their failures stay there (BUS-15, R11).

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
from actors.runtime.stubs.credentials import token_for_sandbox
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
from specs.message import Message, identified, refuse, stamped
from specs.reply_code import Code, DropReason
from transports.codec import encode, most_bytes

_NO_ROOM: Final = "its sandbox has no room"
_TOO_LARGE: Final = f"larger than {MAX_MESSAGE_BYTES} bytes"


class SandboxMail(SandboxHost[Delivery], ABC):
    """The host of a sandbox in a runtime: what enters and leaves, and the answers that are owed."""

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools, port: MiniBusPort) -> None:
        super().__init__(plan, tools)
        self.port = port
        self._handed = OutstandingCore()
        self._asking = 0
        self.is_ready = trio.Event()

    @override
    async def ready(self) -> None:
        self.is_ready.set()

    @override
    def ended(self, why: str) -> None:
        raise plans.SandboxEndedError(why) if self.is_ready.is_set() else plans.SandboxError(why)

    # ---- in

    @override
    async def handle(self, message: Delivery) -> None:
        await self._deliver(message.message)

    async def _deliver(self, message: Message) -> None:
        """Hand a message in, or refuse it."""
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
            await self.port.post(refuse(message, code, why, retry_after))
        else:
            is_full = retry_after is not None or code is Code.TOO_LARGE
            self.drop(message, DropReason.OVERFLOW if is_full else DropReason.NO_TARGET)

    @override
    async def lost(self, message: Message) -> None:
        # Nothing shows that it really went in.
        if not message.is_request or self._handed.knows(message):
            await self.refuse(message, Code.UNAVAILABLE, _NO_ROOM, RETRY_AFTER)

    # ---- out

    def answered(self, message: Message) -> bool:
        """Note an answer; return whether it comes from the receiver of a delivered request."""
        request = self._handed.asked(message)
        return request is not None and request.to == message.from_

    async def send_request(self, message: Message) -> None:
        """Have a request sent whose final answer is to be handed in."""
        if self._asking >= foreign_code.HYPERTY_REQUESTS:
            why = "too many requests are open"
            self.answer(refuse(message, Code.UNAVAILABLE, why, RETRY_AFTER))
        elif message.is_request:
            self._asking += 1
            self.spawn(self._ask, message)

    async def _ask(self, message: Message) -> None:
        try:
            answer = await self.port.request(message)
            await self.tell(_handed_in(message, answer))
        finally:
            self._asking -= 1

    def answer(self, answer: Message) -> None:
        """Hand in a short answer to what came from there, at once.

        Raises:
            BadMessageError: It is too large, or cannot be written.
        """
        self.say(_hand(answer))

    def drop(self, message: Message, reason: DropReason) -> None:
        """Count a message that goes nowhere."""
        self.tools.counters.drop(reason, message, self.port.url)

    # ---- the end

    async def give_up(self, why: str) -> None:
        """Answer the open requests: the sandbox has ended."""
        for request in self._handed.unanswered():
            await self.port.post(refuse(request, Code.UNAVAILABLE, why))


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
    def contents(self) -> plans.Contents:
        """The contents of its sandbox."""
        return plans.Contents(plans.ContentsKind.PROGRAM, self.where, {})

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
    contents: plans.Contents

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
            endpoints=(),
            session=None,
            ids=self.last_id,
            hops=False,
            largest_body=self._largest_body,
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
    """The hyperty, as the rest of the runtime sees it."""

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
    async def posted(self, message: Message) -> None:
        self._note(message)
        self.answered(message)
        await self.port.post(message)

    @override
    async def asked(self, message: Message) -> None:
        self._note(message)
        await self.send_request(message)

    def _note(self, message: Message) -> None:
        if message.from_ == self.plan.url and not message.is_response:
            self._processes.last_id = max(self._processes.last_id, message.id)

    @override
    async def reported(self, item: plans.PipeMessage) -> None:
        if item.word is plans.Word.FAULT:
            self._processes.record_error(item)
            return
        raise plans.PipeError(f"{item.word} is nothing a hyperty says")

    @override
    async def stop(self) -> None:
        await self.give_up(f"the hyperty is gone: {self.why}")


# Hyperties from signed descriptors: how they are found, and the step of a failure (HYP-01).
#
# The steps are: descriptor, trust, constraints, address, sandbox, registration. A step that fails
# undoes those before it.


@final
class LoadStep(StrEnum):
    """The steps of loading a hyperty."""

    DESCRIPTOR = "descriptor"
    """Its descriptor is fetched and read."""

    TRUST = "trust"
    """Its signature, its publisher and its package are verified."""

    CONSTRAINTS = "constraints"
    """What it needs is there."""

    ADDRESS = "address"
    """It gets an address."""

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
        reason: Why.
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
"""Steps that a refused descriptor fails at; any other reason is one not to trust it."""


@contextmanager
def load_errors(address: str) -> Iterator[None]:
    """Convert errors of a step into a `HypertyLoadError` with the step.

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

    If cancelled, what was fetched and accepted so far may be kept.

    Args:
        catalogue: Catalogue of the runtime.
        address: Catalogue address of the hyperty.
        name: Its name in the domain registry; None: that of its descriptor.

    Raises:
        HypertyLoadError: No catalogue is configured.
        RefusedDescriptorError: The hyperty must not run.
        BadUrlError: The address is none of a catalogue.
        CatalogueFileError: What was seen cannot be remembered.
    """
    found = await catalogue.hyperty(address)
    if found is None:
        raise HypertyLoadError(address, LoadStep.DESCRIPTOR, _NO_CATALOGUE)
    return _profile(found, name), _package(found)


def _profile(found: HypertyFound, name: str | None) -> Profile:
    descriptor, schema = found.descriptor, found.descriptor.message_schema
    return Profile(
        name or descriptor.object_name,
        descriptor.cguid,
        resources=descriptor.hyperty_type,
        data_schemes=found.schemes,
        message_schema=schema if isinstance(schema, dict) else None,
    )


def _package(found: HypertyFound) -> HypertyPackage:
    package, configuration = found.descriptor.source_package, found.descriptor.configuration
    entry_point = "" if package is None else package.entry_point
    contents = plans.Contents(plans.ContentsKind.HYPERTY, entry_point, configuration or {})
    return HypertyPackage(found.package, contents)


# Stubs that came as packages: each in a sandbox process of its own (PFY-01, STB-12, T13, T16).
#
# In the runtime's own sandbox there is only their host. Nothing a stub says is believed: it speaks
# as itself or for its domain, answers what it was asked, and reports the status of its connection
# that its table allows; the status events on the bus are the host's.

_OWN_IDS: Final = 1_000_000_000
"""Message ids in a stub's name that are its host's; those of the stub itself begin above."""


@attrs.frozen
class StubCode:
    """The code of a stub, as its descriptor names it.

    Attributes:
        archive: The very bytes that were verified: a zip archive of Python sources.
        entry_point: What makes the stub, as `module:activate`.
    """

    archive: bytes = attrs.field(repr=False)
    entry_point: str


def sandboxed_stub(code: StubCode, endpoints: tuple[str, ...], spawn: plans.Spawn) -> StubFactory:
    """Return what keeps such a stub in a sandbox, for each of its deployments.

    Its actor starts when the stub runs; if that cannot be it raises why. When the sandbox
    ends by itself it crashes, and messages that wait for the stub are answered 503.

    Args:
        code: Goes through the pipe and is imported from memory.
        endpoints: The only places it may dial: `ws://host:port/path`, `tcp://host:port`
            (frames behind their length), `stream://host:port` (raw bytes).
        spawn: Makes the sandbox.
    """
    return partial(_keep, code, endpoints, spawn)


def _keep(
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
        ids=context.ids.next(context.url) + _OWN_IDS,
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
    """The stub, as the rest of the runtime knows it."""

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

    # ---- what the stub says

    @override
    async def asked(self, message: Message) -> None:
        if message.from_ == self.plan.url:
            await self.send_request(self._by_itself(message))
        else:
            await self.posted(message)

    @override
    async def posted(self, message: Message) -> None:
        if message.from_ == self.plan.url:
            await self._own(message)
        elif message.is_response:
            await self._answer(message)
        elif self._may_bring(message):
            via = message if self.plan.url in message.via else stamped(message, self.plan.url)
            await self.port.post(identified(via, self._context.sender_of(message)))
        else:
            self._record_offence(message)

    async def _own(self, message: Message) -> None:
        """Take what the stub says as itself; of its status the bus has heard already."""
        if not is_below(message.to, status_of(self.plan.url)):
            await self.port.post(self._by_itself(message))
        elif message.body.get("value") != self.state:
            raise plans.PipeError("it reported a status that is not so")

    def _by_itself(self, message: Message) -> Message:
        """Return a message of the stub itself with its sender: this runtime, and no user."""
        return identified(message, SenderIdentity(self.plan.runtime))

    async def _answer(self, message: Message) -> None:
        if self.answered(message):
            await self.port.post(identified(message, self._context.sender_of(message)))
        else:
            # An honest stub, too, answers requests that are no longer awaited.
            self.drop(message, DropReason.UNMATCHED)

    def _may_bring(self, message: Message) -> bool:
        """Return whether a message may come by this stub: the own domain's brings them all."""
        own = domain_of(self.plan.runtime)
        return self.plan.domain in {own, domain_of(message.from_)}

    def _record_offence(self, message: Message) -> None:
        """Refuse what the stub had no right to say; one that goes on so is ended."""
        self._offences += 1
        if self._offences >= PEER_OFFENCES:
            raise plans.PipeError("it sent too many messages that it may not send")
        self.drop(message, DropReason.UNKNOWN_SOURCE)
        if message.is_request:
            why = f"{message.from_} is not of {self.plan.domain}"
            self.answer(refuse(message, Code.UNAUTHENTICATED, why))

    # ---- its connection

    @override
    async def moved(self, step: Step) -> None:
        await self.port.post(status_event(self._context, step, self._sessions))

    @override
    async def kept(self, token: str, *, is_anew: bool) -> None:
        if is_anew and self._token not in {None, token}:
            self._sessions += 1
        self._token = token
        self._context.keep(token, is_anew)

    # ---- the end

    @override
    async def stop(self) -> None:
        self.rest()
        await self.give_up(f"the stub is gone: {self.why}")
