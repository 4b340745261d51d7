"""A P2P set-up between two runtimes by one node, of whom one is a process that can be harmed.

The others run in this process over real sockets, so that their time can be made to fly
while the harmed one is dead or stands still.
"""

import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import Enum
from itertools import count
from pathlib import Path
from random import Random

import attrs
import trio
from trio.testing import MockClock

from actors.hyperties import Caller, Echo
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.testing.chaos.network import ChaosNetwork
from fsm.judge.replay import Judgement
from specs.identity import VouchedBy
from specs.message import MessageType
from tests.support.command import Serving, serving
from tests.support.node.issuer import login_by
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.support.warm import WarmProcess
from tests.system.asker import Asker
from tests.system.harmed import BRISK, HASTE, RETRY, Harm, insist
from tests.system.p2p.halting_gate import Choice, HaltingGate, open_gate
from tests.system.p2p.set_up_parties import DOMAIN, Here, Party, There, TokenIssuer, real_time
from transports.link import Kind
from transports.system import open_system_network

ALICE, BOB, NODE = "alice", "bob", "node"


class Stage(Enum):
    """How far the set-up is: the states of the connection, as its two ends see them."""

    REQUESTER_CREATED = "requester created"
    REQUESTER_IN_PROGRESS = "requester in-progress"
    HANDLER_CREATED = "handler created"
    HANDLER_IN_PROGRESS = "handler in-progress"
    LIVE = "live"
    DISCONNECTED = "disconnected"


def _is_address_given(name: str) -> Choice:
    to = f"hyperty-runtime://{DOMAIN}/{name}/address-allocation"
    return lambda message: message.is_response and message.to == to


def _is_invitation_of(stub: str) -> Choice:
    return lambda message: message.type is MessageType.CREATE and f"/{stub}/" in message.to


_HELD: dict[Stage, tuple[str, Choice]] = {
    Stage.REQUESTER_CREATED: (ALICE, _is_address_given(ALICE)),
    Stage.REQUESTER_IN_PROGRESS: (ALICE, _is_invitation_of("p2phandler")),
    Stage.HANDLER_CREATED: (BOB, _is_address_given(BOB)),
    Stage.HANDLER_IN_PROGRESS: (BOB, _is_invitation_of("p2prequester")),
}
"""The message without which a stage does not end, and at whose gate it comes by."""


@attrs.define
class SetUp:
    """Node, Alice who asks, Bob who is asked, and Carol who has no links and looks on.

    Attributes:
        codes: What Alice's requests were answered with.
        asked: How many there were.
    """

    kind: Kind
    victim: str
    clock: MockClock
    chaos: ChaosNetwork
    stack: AsyncExitStack
    nursery: trio.Nursery
    desk: TokenIssuer
    gates: dict[str, HaltingGate] = attrs.field(factory=dict)
    parties: dict[str, Party] = attrs.field(factory=dict)
    tracers: list[AwaitableTracer] = attrs.field(factory=list)
    codes: list[int] = attrs.field(factory=list)
    numbers: Iterator[int] = attrs.field(factory=count)
    asked: int = 0
    _answered: trio.Event = attrs.field(factory=trio.Event)

    # ---- coming

    async def start(self) -> None:
        upstream = await self._start_node()
        for name in (ALICE, BOB, "carol"):
            self.gates[name] = await self.stack.enter_async_context(
                open_gate(self.chaos.end(f"gate of {name}"), upstream)
            )
        for name in (BOB, ALICE):
            await self._start_runtime(name)
        self.parties["carol"] = await self._open_here("carol", Caller(), ())

    async def _start_node(self) -> str:
        if self.victim == NODE:
            keys = str(self.desk.keys)
            party = There(await self._serve("node", "--domain", DOMAIN, "--jwks", keys))
            self.parties[NODE] = party
            return party.serving.url
        login = attrs.evolve(login_by(self.desk.issuer), clock=real_time)
        config = NodeConfig(domain=DOMAIN, login=login)
        opened = open_node(config, self.chaos.end(NODE), self._tracer())
        return (await self.stack.enter_async_context(opened)).url

    async def _start_runtime(self, name: str) -> None:
        made = Asker if name == ALICE else Echo
        if self.victim == name:
            self.parties[name] = There(
                await self._serve(
                    *("runtime", "--domain", DOMAIN, "--name", name),
                    *("--node", self.gates[name].url, "--p2p", self.kind.value),
                    *("--p2p-require", "none"),
                    *("--hyperty", f"it={made.__module__}:{made.__name__}"),
                    *("--token-file", str(await self.desk.file())),
                )
            )
            return
        self.parties[name] = await self._open_here(name, made(), (self.kind,))

    async def _open_here(self, name: str, hyperty: Hyperty, kinds: tuple[Kind, ...]) -> Here:
        tracer = self._tracer()
        config = RuntimeConfig(
            domain=DOMAIN,
            name=name,
            node=self.gates[name].url,
            kinds=kinds,
            # Its time flies here: statements of the node, whose time is the world's, are over.
            p2p_require=VouchedBy.NONE,
            credentials=self.desk,
        )
        opened = open_runtime(config, self.chaos.end(name), tracer)
        runtime = await self.stack.enter_async_context(opened)
        return Here(runtime, tracer, hyperty, await runtime.deploy(name, lambda: hyperty))

    def _tracer(self) -> AwaitableTracer:
        self.tracers.append(tracer := AwaitableTracer())
        return tracer

    async def _serve(self, *arguments: str) -> Serving:
        return await self.stack.enter_async_context(serving(*arguments))

    # ---- acting

    def here(self, name: str) -> Here:
        party = self.parties[name]
        assert isinstance(party, Here)
        return party

    async def ask(self) -> int:
        """Let Alice ask Bob; return the code of her answer, or of Carol's if she is gone."""
        self.asked += 1
        reported = {"to": self.parties[BOB].address, "number": next(self.numbers)}
        alice = self.parties[ALICE]
        if isinstance(alice, Here):
            code = int((await alice.hyperty.request(str(reported["to"]), reported)).code)
        else:
            answer = await self.here("carol").hyperty.request(alice.address, reported)
            value = answer.body.get("value")
            code = value if isinstance(value, int) else int(answer.code)
        self.codes.append(code)
        return code

    async def _ask_beside(self) -> None:
        await self.ask()
        self._answered.set()

    async def insist(self) -> None:
        """Ask again, as an application does, until there is an answer."""
        await insist(self.ask)

    async def reach(self, stage: Stage) -> None:
        """Begin a set-up, and come as far as this."""
        held = _HELD.get(stage)
        if held is not None:
            name, choice = held
            self.gates[name].hold(choice)
            self.nursery.start_soon(self._ask_beside)
            await self.gates[name].holds.wait()
            return
        await self.go_live()
        # By the link: its senders are proven now, and stay so when the node is gone.
        await self.insist()
        if stage is Stage.DISCONNECTED:
            await self._lose_link()

    async def _lose_link(self) -> None:
        """Cut the link; if one of its ends is to be harmed, that end does not get to know."""
        if self.victim != NODE:
            self.harm(Harm.STOPPED)
        [(name, other), *_] = self._ends_here()
        for one, there in ((ALICE, BOB), (ALICE, None), (BOB, None)):
            # The victim may be in a process of its own, and then is no party of this network.
            with suppress(ValueError):
                self.chaos.reset(one, there)
        await self.here(name).wait_while(other, {"live"})

    def _ends_here(self) -> list[tuple[str, str]]:
        ends = ((ALICE, BOB), (BOB, ALICE))
        return [(name, other) for name, other in ends if name != self.victim]

    async def go_live(self) -> None:
        """Ask until the link is live, as those who are here see it."""
        while not await self._is_live():
            await self.ask()
            await trio.sleep(RETRY)  # real time: it asks again

    async def link_is_back(self) -> None:
        """Wait until the link is live at both ends, without anybody asking."""
        for name, other in self._ends_here():
            await self.here(name).wait_while(other, _NOT_LIVE)

    async def _is_live(self) -> bool:
        ends = [await self.here(name).status(other) for name, other in self._ends_here()]
        return set(ends) == {"live"}

    def harm(self, how: Harm) -> None:
        self._process().send_signal(how.value)

    async def heal(self, how: Harm) -> None:
        """Let the stopped go on; start the killed anew."""
        self.clock.rate = BRISK
        if how is Harm.STOPPED:
            await self.desk.file()
            self._process().send_signal(signal.SIGCONT)
            return
        await self._process().ended()
        if self.victim != NODE:
            await self._start_runtime(self.victim)
            return
        upstream = await self._start_node()
        for gate in self.gates.values():
            gate.upstream = upstream

    def _process(self) -> WarmProcess:
        party = self.parties[self.victim]
        assert isinstance(party, There)
        return party.serving.process

    async def settle(self) -> None:
        """Let time fly until nobody who is here has a link half made, or to one who is away."""
        self.clock.rate = HASTE
        unsettled = _HALF_MADE if self.victim == NODE else _HALF_MADE | {"live"}
        for name, other in self._ends_here():
            await self.here(name).wait_while(other, unsettled)
        if len(self.codes) < self.asked:
            await self._answered.wait()
        self.clock.rate = 1.0

    def judged(self) -> list[Judgement]:
        """What is judged of those who were here; they have ended."""
        return [tracer.judged() for tracer in self.tracers]


_HALF_MADE: set[str | None] = {"created", "in-progress"}
_NOT_LIVE: set[str | None] = {None, "disconnected", "failed", *_HALF_MADE}


@asynccontextmanager
async def open_set_up(kind: Kind, victim: str, clock: MockClock) -> AsyncIterator[SetUp]:
    """Start everybody."""
    async with (
        open_system_network() as network,
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        desk = TokenIssuer(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        chaos = ChaosNetwork(network, Random(1))  # noqa: S311 - chance, no secret
        set_up = SetUp(kind, victim, clock, chaos, stack, nursery, desk)
        await set_up.start()
        yield set_up
        for gate in set_up.gates.values():
            gate.release()
