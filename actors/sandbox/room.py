"""A room: the MiniBUS and the stub of a sandbox, from the plan to the farewell."""

import secrets
from functools import partial
from typing import Final, final

import attrs
import trio

from actors.kit.actor import Actor, ActorRef
from actors.kit.counters import Counters
from actors.kit.delivery import Delivery
from actors.kit.ids import IdSource
from actors.kit.supervisor import ChildSpec, Intensity, Strategy, Supervisor, open_supervisor
from actors.pipe.errors import PipeError
from actors.pipe.outlet import Outlet
from actors.pipe.plan import RoomPlan, read_plan
from actors.pipe.said import Said, Word, read_said
from actors.runtime import node_stub
from actors.runtime.bus_messages import ListenerAdded, Lost, MiniBusMessage
from actors.runtime.hops import Hops
from actors.runtime.mini_bus import MiniBus
from actors.runtime.stub import StubConfig, StubContext
from actors.sandbox.credentials import PipeCredentials
from actors.sandbox.network import PipeNetwork
from actors.sandbox.port import PipePort
from actors.sandbox.tracer import PipeTracer
from fsm.cores.routing import ANY
from specs.body import Command
from specs.limits import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from specs.word import StubMethod
from transports.background import open_background
from transports.bodies import write_body
from transports.codec import BadLine, decode_line, encode
from transports.errors import LinkError
from transports.link import Link

__all__ = ["run_room"]

_ONE_LIFE: Final = Intensity(restarts=0)
"""Nothing in a room is started again: whoever keeps it opens another."""


async def run_room(link: Link) -> None:
    """Do what a keeper says over a pipe, until it says leave or the pipe ends.

    Raises:
        PipeError: The keeper says what no keeper says.
        RestartLimitError: The stub crashed; comes out in a group.
    """
    try:
        first = read_said(await link.receive())
        if first.word is not Word.PLAN:
            raise PipeError("the first word is no plan")
        await _live(link, read_plan(first.told))
    except LinkError:
        # The keeper is gone: there is nobody to speak for, nor to tell.
        pass


async def _live(link: Link, plan: RoomPlan) -> None:
    outlet, counters = Outlet(link), Counters()
    async with (
        open_background() as background,
        open_supervisor(plan.stub, Strategy.ONE_FOR_ALL, _ONE_LIFE) as supervisor,
    ):
        background.start_soon(outlet.run)
        tools = _Tools(plan, outlet, counters, PipeTracer(outlet, hops=plan.hops))
        room = await tools.open(supervisor)
        outlet.put(Said(Word.READY))
        await room.serve(link)
        await room.leave()


@final
@attrs.frozen
class _Tools:
    """What the parts of a room are made with."""

    plan: RoomPlan
    outlet: Outlet
    counters: Counters
    tracer: PipeTracer

    async def open(self, supervisor: Supervisor) -> "_Room":
        """Start MiniBUS and stub; the stub hears of everything."""
        plan, network = self.plan, PipeNetwork(self.outlet)
        credentials = PipeCredentials(self.outlet)
        hops = Hops(self.tracer, f"minibus:{plan.stub}", self.counters)
        make_bus = partial(MiniBus, self._lost, hops)
        mini_bus = await supervisor.start_child(ChildSpec("minibus", make_bus))
        port = PipePort(plan.stub, self.outlet, mini_bus)
        make_stub = partial(self._stub, port, network, credentials)
        stub = await supervisor.start_child(ChildSpec(plan.stub, make_stub))
        await mini_bus.ask(lambda done: ListenerAdded(ANY, stub, "room", done))
        return _Room(self, (network, credentials), port, mini_bus)

    def _stub(
        self, port: PipePort, network: PipeNetwork, credentials: PipeCredentials
    ) -> Actor[Delivery]:
        plan = self.plan
        config = StubConfig(
            runtime=plan.runtime,
            domain=plan.domain,
            node_url=plan.endpoint,
            credentials=credentials,
            session=plan.session,
        )
        return node_stub.activate(
            StubContext(
                url=plan.stub,
                bus=port,
                config=config,
                network=network,
                tracer=self.tracer,
                ids=IdSource(plan.ids),
                entropy=secrets.token_bytes,
                counters=self.counters,
                keep=lambda token: self.outlet.put(Said(Word.KEEP, text=token)),
            )
        )

    def _lost(self, lost: Lost) -> bool:
        return self.outlet.offer(Said(Word.LOST, rest=encode(lost.delivery.message)))


@final
class _Room:
    """A room in which everything runs."""

    def __init__(
        self,
        tools: _Tools,
        asking: tuple[PipeNetwork, PipeCredentials],
        port: PipePort,
        mini_bus: ActorRef[MiniBusMessage],
    ) -> None:
        self._tools = tools
        self._network, self._credentials = asking
        self._port = port
        self._mini_bus = mini_bus
        self._told: dict[str, int] = {}

    async def serve(self, link: Link) -> None:
        """Do what the keeper says, until it says leave."""
        while True:
            said = read_said(await link.receive())
            match said.word:
                case Word.HAND:
                    await self._handed(said)
                case Word.PING:
                    self._tools.outlet.put(Said(Word.PONG, told={**self._drops()}))
                case Word.LOGIN:
                    self._credentials.heard(said)
                case Word.LEAVE:
                    return
                case _:
                    self._network.heard(said)

    async def _handed(self, said: Said) -> None:
        message = decode_line(said.rest)
        if isinstance(message, BadLine):
            raise PipeError("a handed message that is none")
        if not self._port.answered(message):
            await self._mini_bus.tell(Delivery(message, self._port.url))

    def _drops(self) -> dict[str, int]:
        """Return what was dropped since this was asked last."""
        now = {reason.value: count for reason, count in self._tools.counters.drops.items()}
        news = {one: count - self._told.get(one, 0) for one, count in now.items()}
        self._told = now
        return {one: count for one, count in news.items() if count}

    async def leave(self) -> None:
        """Have the stub close its session; then tell that nothing more will come."""
        port = self._port
        body = write_body(Command(StubMethod.DISCONNECT.value))
        command = Message(1, MessageType.EXECUTE, port.agent, port.url, body)
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await self._mini_bus.tell(Delivery(command, port.url))
            await port.wait_obeyed()
        outlet = self._tools.outlet
        outlet.put(Said(Word.PONG, told={**self._drops()}))
        outlet.put(Said(Word.LEFT))
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await outlet.flushed()
