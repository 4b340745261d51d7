"""Stubs that came as packages: each in a sandbox process of its own (PFY-01, STB-12, T13, T16).

In the runtime's own sandbox there is only their host. Nothing a stub says is believed: it
speaks as itself or for its domain, answers what it was asked, and reports the status of its
connection that its table allows; the status events on the bus are the host's.
"""

from functools import partial
from typing import Final

import attrs
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, Delivery
from actors.pipe import plan as plans
from actors.pipe.host import HostTools, StubHost
from actors.runtime.isolation.hyperty import SandboxMail
from actors.runtime.stubs.credentials import shown
from actors.runtime.stubs.stub import StubContext, StubFactory, status_event
from fsm.engine import Step
from specs.addresses.address import domain_of, is_below, status_of
from specs.identity import SenderIdentity
from specs.limits.foreign_code import HYPERTY_BURST, HYPERTY_RATE, SANDBOX_YIELD
from specs.limits.protocol import PEER_OFFENCES
from specs.message import Message, identified, refuse, stamped
from specs.reply_code import Code, DropReason

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
        contents=plans.PackageContents(code.entry_point, config.options),
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
        login=partial(shown, config.credentials, config.domain),
        archive=code.archive,
        rate=HYPERTY_RATE,
        burst=HYPERTY_BURST,
        patience=SANDBOX_YIELD,
    )
    return SandboxedStub(plan, tools, context)


class SandboxedStub(StubHost[Delivery]):
    """The stub, as the rest of the runtime knows it."""

    def __init__(self, plan: plans.SandboxPlan, tools: HostTools, context: StubContext) -> None:
        super().__init__(plan, tools)
        self._context = context
        self._mail = SandboxMail(context.bus, context.counters, self)
        self._is_ready = trio.Event()
        self._offences = 0
        self._token: str | None = None
        self._sessions = 1

    @override
    async def start(self) -> None:
        await super().start()
        try:
            await self._is_ready.wait()
        finally:
            if not self._is_ready.is_set():
                self.rest()

    @override
    async def handle(self, message: Delivery) -> None:
        await self._mail.deliver(message.message)

    # ---- what the stub says

    @override
    async def ready(self) -> None:
        self._is_ready.set()

    @override
    async def asked(self, message: Message) -> None:
        if message.from_ == self.plan.url:
            await self._mail.ask(self._by_itself(message))
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
            await self._context.bus.post(identified(via, self._context.sender_of(message)))
        else:
            self._offended(message)

    async def _own(self, message: Message) -> None:
        """Take what the stub says as itself; of its status the bus has heard already."""
        if not is_below(message.to, status_of(self.plan.url)):
            await self._context.bus.post(self._by_itself(message))
        elif message.body.get("value") != self.state:
            raise plans.PipeError("it reported a status that is not so")

    def _by_itself(self, message: Message) -> Message:
        """Return a message of the stub itself with its sender: this runtime, and no user."""
        return identified(message, SenderIdentity(self.plan.runtime))

    async def _answer(self, message: Message) -> None:
        if self._mail.answered(message):
            await self._context.bus.post(identified(message, self._context.sender_of(message)))
        else:
            # An honest stub, too, answers requests that are no longer awaited.
            self._drop(message, DropReason.UNMATCHED)

    def _may_bring(self, message: Message) -> bool:
        """Return whether a message may come by this stub: the own domain's brings them all."""
        own = domain_of(self.plan.runtime)
        return self.plan.domain in {own, domain_of(message.from_)}

    def _offended(self, message: Message) -> None:
        """Refuse what the stub had no right to say; one that goes on so is ended."""
        self._offences += 1
        if self._offences >= PEER_OFFENCES:
            raise plans.PipeError("it sent too many messages that it may not send")
        self._drop(message, DropReason.UNKNOWN_SOURCE)
        if message.is_request:
            why = f"{message.from_} is not of {self.plan.domain}"
            self._mail.answer(refuse(message, Code.UNAUTHENTICATED, why))

    def _drop(self, message: Message, reason: DropReason) -> None:
        self._context.counters.drop(reason, message, self.plan.url)

    @override
    async def lost(self, message: Message) -> None:
        await self._mail.lost(message)

    # ---- its connection

    @override
    async def moved(self, step: Step) -> None:
        await self._context.bus.post(status_event(self._context, step, self._sessions))

    @override
    async def kept(self, token: str, *, is_anew: bool) -> None:
        if is_anew and self._token not in {None, token}:
            self._sessions += 1
        self._token = token
        self._context.keep(token, is_anew)

    # ---- the end

    @override
    def ended(self, why: str) -> None:
        raise plans.SandboxEndedError(why) if self._is_ready.is_set() else plans.SandboxError(why)

    @override
    async def stop(self) -> None:
        self.rest()
        await self._mail.give_up(f"the stub is gone: {self.why}")
