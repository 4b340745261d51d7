"""The connectors of a node to its back ends, and the actor of one connector (CON-07)."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.back_ends.requests import Asked, BackEndError
from actors.kit.counters import BackEnd, Outcome, Timing
from actors.kit.http_client import HttpError, ServerUrl
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.node.connectors.global_registry import GlobalRecords, GlobalRegistry
from actors.node.connectors.push import Push, PushConfig
from actors.node.connectors.quality import Quality, QualityBroker
from actors.node.connectors.rest_registry import RestRegistry
from actors.node.connectors.service import Plan, Replied, Service
from actors.node.host import NodeHost
from actors.node.messages import RuntimeLeft
from actors.node.trace import Direction
from fsm.limits.shares import user_of
from fsm.registry.relay import RelayCore, RelayLimits, RelayPort
from specs.addresses.address import GLOBAL_REGISTRY, domain_of, push_manager, quality_broker
from specs.errors import BadMessageError
from specs.limits import node
from specs.message import Message, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.trace import Op

_log = get_logger("actors.node")

RELAY_LIMITS: Final = RelayLimits(
    node.BACKEND_CONNECTIONS, node.BACKEND_QUEUE, node.BACKEND_TIMEOUT
)
"""Default limits of the requests to a back end."""


@attrs.frozen
class _Done:
    """Outcome of one request at the back end."""

    number: int
    outcome: Replied | HttpError | BackEndError


@attrs.define
class _Job:
    """A request that is being relayed."""

    request: Asked
    plan: Plan
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    begun: float = attrs.field(factory=trio.current_time)


_Message: TypeAlias = Asked | RuntimeLeft | _Done


class Connector(Actor[_Message], RelayPort):
    """Relay the requests to one address to one back end, and answer each of them.

    Args:
        service: The back end; the connector closes it.
    """

    def __init__(
        self, host: NodeHost, name: BackEnd, address: str, service: Service, limits: RelayLimits
    ) -> None:
        self._host: Final = host
        self._name: Final = name
        self._address: Final = address
        self._service: Final = service
        self._trace: Final = host.trace(f"connector:{name}")
        self._core = RelayCore(limits, self)
        self._jobs: dict[int, _Job] = {}
        self._outcomes: dict[int, Replied] = {}
        self._numbers = count(1)
        self._is_lost = False

    @override
    async def start(self) -> None:
        self.spawn(self._service.run, self._host.send)
        self._host.bus.attach(self._address, self.me)

    @override
    async def handle(self, message: _Message) -> None:
        match message:
            case Asked():
                self._take_request(message)
            case RuntimeLeft(runtime):
                self._core.leave(runtime)
                self._service.forget_runtime(runtime)
            case _Done():
                self._take_outcome(message)
            case _:
                assert_never(message)

    @override
    def deadline(self) -> float:
        return self._core.deadline()

    @override
    async def timed_out(self) -> None:
        self._core.tick(trio.current_time())

    @override
    async def closing(self) -> None:
        await self._service.closing()

    @override
    async def stop(self) -> None:
        """Answer all open requests; the bus may have ended before."""
        self._host.bus.detach(self._address, self.me)
        for job in self._jobs.values():
            self._refuse(job, Code.UNAVAILABLE, "the connector to the back end stops")
        await self._service.aclose()

    def _take_request(self, request: Asked) -> None:
        try:
            plan = self._service.plan(request)
        except BadMessageError as exc:
            self._send(refuse(request.message, exc.code, exc.reason), request)
            return
        if isinstance(plan, Replied):
            self._send(reply_to(request.message, plan.code, plan.body), request)
            return
        number = next(self._numbers)
        self._jobs[number] = _Job(request, plan)
        user = user_of(request.message, domain_of(self._address))
        self._core.want(number, request.by, trio.current_time(), plan.lane, user)

    def _take_outcome(self, done: _Done) -> None:
        match done.outcome:
            case Replied():
                self._outcomes[done.number] = done.outcome
                self._log_return()
                self._core.take_answer(done.number)
                self._outcomes.pop(done.number, None)
            case error:
                self._log_loss(error.reason)
                self._core.take_failure(done.number, error.reason)

    # ---- commands of the core

    @override
    def send(self, number: int) -> None:
        job = self._jobs[number]
        self._trace.relay(job.request.message, Direction.OUT)
        self.spawn(partial(self._work, number, job))

    @override
    def deliver(self, number: int) -> None:
        job, replied = self._jobs.pop(number), self._outcomes[number]
        answer = reply_to(job.request.message, replied.code, replied.body)
        self._trace.relay(answer, Direction.IN)
        self._count(job, Outcome.OK if replied.code <= LAST_SUCCESS else Outcome.REFUSED)
        self._send(answer, job.request)
        for notice in replied.notices:
            self._host.send(notice)

    @override
    def refuse(self, number: int, code: Code, why: str) -> None:
        self._refuse(self._jobs.pop(number), code, why)

    @override
    def give_up(self, number: int) -> None:
        job = self._jobs.pop(number)
        job.scope.cancel()
        self._trace.drop(job.request.message, DropReason.SESSION_GONE)

    @override
    def drop_late(self, number: int) -> None:
        self._trace.counters.drop(DropReason.LATE_RESPONSE)

    # ---- work and answers

    async def _work(self, number: int, job: _Job) -> None:
        """Send a request to the back end, and post the outcome to the own mailbox."""
        outcome: Replied | HttpError | BackEndError
        with job.scope:
            try:
                outcome = await job.plan.perform()
            except (HttpError, BackEndError) as exc:
                outcome = exc
            await self.me.tell(_Done(number, outcome))

    def _refuse(self, job: _Job, code: Code, why: str) -> None:
        job.scope.cancel()
        self._count(job, Outcome.TIMEOUT if code == Code.BACKEND_TIMEOUT else Outcome.FAILED)
        answer = refuse(job.request.message, code, why)
        self._trace.hop(Op.SYNTH, answer)
        self._send(answer, job.request)

    def _count(self, job: _Job, outcome: Outcome) -> None:
        seconds = trio.current_time() - job.begun
        self._trace.counters.took(Timing.CONNECTOR, seconds, self._name, outcome)

    def _send(self, answer: Message, request: Asked) -> None:
        self._host.send(answer, request.by)

    def _log_loss(self, why: str) -> None:
        """Log once that the back end is away, until it is back."""
        if not self._is_lost:
            _log.warning("back end lost", connector=self._address, why=why)
        self._is_lost = True

    def _log_return(self) -> None:
        if self._is_lost:
            _log.info("back end is back", connector=self._address)
        self._is_lost = False


@final
@attrs.frozen
class BackEnds:
    """The back ends of a node; None: there is none of that kind, and its address is unused.

    Attributes:
        registry: Server that keeps the domain's records instead of the node.
        global_registry: Makes the client of the global registry; called for each start.
        quality: Makes the client of the quality broker; called for each start.
        push: Configuration of the calls to devices of sleeping runtimes.
    """

    registry: ServerUrl | None = None
    global_registry: Callable[[], GlobalRecords] | None = None
    quality: Callable[[], QualityBroker] | None = None
    push: PushConfig | None = None
    limits: RelayLimits = RELAY_LIMITS


def connector_addresses(back_ends: BackEnds, domain: str) -> Iterator[str]:
    """Return the addresses of the connectors, besides the one of the domain registry.

    Args:
        back_ends: Back ends of the node.
        domain: Domain of the node.
    """
    if back_ends.global_registry is not None:
        yield GLOBAL_REGISTRY
    if back_ends.quality is not None:
        yield quality_broker(domain)
    if back_ends.push is not None:
        yield push_manager(domain)


async def start_connectors(back_ends: BackEnds, host: NodeHost) -> None:
    """Start a connector to each configured back end."""
    for name, address, make in _services(back_ends, host):
        limits = back_ends.limits
        if name is BackEnd.PUSH:
            limits = attrs.evolve(limits, parallel=node.PUSH_PARALLEL, each=node.PUSH_EACH)
        make_connector = partial(_connector, host, name, address, make, limits)
        await host.start(f"connector:{name}", make_connector)


def _connector(
    host: NodeHost,
    name: BackEnd,
    address: str,
    make: Callable[[], Service],
    limits: RelayLimits,
) -> Connector:
    return Connector(host, name, address, make(), limits)


def _services(
    back_ends: BackEnds, host: NodeHost
) -> Iterator[tuple[BackEnd, str, Callable[[], Service]]]:
    """Yield the name and address of each connector, and the maker of its service."""
    addresses, records, broker = host.addresses, back_ends.global_registry, back_ends.quality
    if back_ends.registry is not None:
        make = partial(RestRegistry, addresses.registry, back_ends.registry, host.ids)
        yield BackEnd.REGISTRY, addresses.registry, make
    if records is not None:
        yield BackEnd.GLOBAL, GLOBAL_REGISTRY, lambda: GlobalRegistry(records())
    if broker is not None:
        yield BackEnd.QUALITY, addresses.quality, lambda: Quality(broker(), host.entropy)
    if back_ends.push is not None:
        yield BackEnd.PUSH, addresses.push, partial(Push, back_ends.push, host.login_clock)
