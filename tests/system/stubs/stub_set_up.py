"""Two domains: a runtime of one reaches the other by a stub that its catalogue names.

Either the runtime or the node of the other domain is a process that can be harmed; the
rest runs in this process over real sockets, so that its time can be made to fly.
"""

import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from itertools import count
from pathlib import Path

import attrs
import trio
from trio.testing import MockClock

from actors.catalogue.client import CatalogueAccess
from actors.http.config import HttpConfig
from actors.hyperties import Caller, Echo
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from fsm.catalogue.descriptor import Reach
from fsm.judge.replay import Judgement
from specs.trace import Kind
from tests.support.catalogues import B, Publishing, Wall
from tests.support.command import Serving, serving
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.system.asker import Asker
from tests.system.harmed import BRISK, HASTE, PATIENCE, Harm, insist
from tests.system.stubs.pausing_proxy import PausingProxy, open_pausing_proxy
from transports.link import Network
from transports.system import open_system_network

A = "a.ex"
RUNTIME, NODE = "runtime", "node"
TRUST = f"""
[domains."{B}"]
keys = "actors.json"
reach = "anywhere"
"""


class Stage(Enum):
    """How far the stub is."""

    IN_PROGRESS = "in-progress"
    LIVE = "live"
    DISCONNECTED = "disconnected"


FORMS = {
    "websocket": ("websocket", "url", {}),
    "legacy-websocket": ("legacy-websocket", "legacy_url", {}),
    "legacy-session": ("legacy-session", "session_url", {}),
    "rest-long-poll": ("rest", "rest_url", {}),
    "rest-sse": ("rest", "rest_url", {"receive": "sse"}),
}
"""Name in a profile, where the ready line tells its door, options."""


@attrs.define
class Other:
    """The other domain's node, wherever it runs."""

    urls: dict[str, str]
    process: trio.Process | None = None
    tracer: AwaitableTracer | None = None


@attrs.define
class StubSetUp:
    """Alice at a.ex, Bob and Carol at b.ex.

    Attributes:
        codes: What Alice's requests were answered with.
    """

    form: str
    victim: str
    clock: MockClock
    network: Network
    stack: AsyncExitStack
    folder: Path
    publishing: Publishing = attrs.field(factory=Publishing)
    codes: list[int] = attrs.field(factory=list)
    tracers: list[AwaitableTracer] = attrs.field(factory=list)
    _names: "count[int]" = attrs.field(factory=count)

    node: Other = attrs.field(init=False)
    proxies: list[PausingProxy] = attrs.field(factory=list)
    alice: Hyperty | None = None
    asker: str = ""
    process: trio.Process | None = None
    bob: str = ""
    carol: Hyperty = attrs.field(factory=Caller)
    own: str = ""

    @property
    def proxy(self) -> PausingProxy:
        """What stands before Alice's way to the other domain."""
        return self.proxies[0]

    # ---- coming

    async def start(self) -> None:
        self.node = await self._start_node()
        for _ in range(2):
            opened = open_pausing_proxy(self.node.urls["url"])
            self.proxies.append(await self.stack.enter_async_context(opened))
        self._publish()
        here = open_node(NodeConfig(domain=A), self.network, self._reported())
        self.own = (await self.stack.enter_async_context(here)).url
        self.bob = await self._runtime(B, "bob", Echo())
        await self._runtime(B, "carol", self.carol)
        await self._start_alice()

    async def _start_node(self) -> Other:
        if self.victim == NODE:
            options = ("--allow-legacy", "--http", "127.0.0.1:0", "--rest")
            there = await self._serve("node", "--domain", B, *options)
            return Other({name: str(url) for name, url in there.ready.items()}, there.process)
        config = NodeConfig(domain=B, allow_legacy=True, http=HttpConfig("127.0.0.1:0", rest=True))
        tracer = self._reported()
        node = await self.stack.enter_async_context(open_node(config, self.network, tracer))
        urls = {name: str(getattr(node, name)) for _, name, _ in FORMS.values()}
        return Other(urls, tracer=tracer)

    def _publish(self) -> None:
        stub, door, options = FORMS[self.form]
        there = self.node.urls[door]
        profile = {"stub": stub, "endpoint": self.proxy.by_proxy(there), "options": options}
        self.publishing.serves(self.publishing.draft(profile=profile))
        self.proxy.server = there

    async def _runtime(self, domain: str, name: str, hyperty: Hyperty) -> str:
        node = self.own if domain == A else self.proxies[1].by_proxy(self.node.urls["url"])
        trust = self.publishing.trust(reach=Reach.ANYWHERE)
        offset = Wall(self.publishing).offset
        config = RuntimeConfig(
            domain=domain,
            name=name,
            node=node,
            nodes={A: self.own} if domain == B else {},
            catalogues=CatalogueAccess(self.publishing.places, trust, clock_offset=offset),
        )
        opened = open_runtime(config, self.network, self._reported())
        runtime = await self.stack.enter_async_context(opened)
        return await runtime.deploy(name, lambda: hyperty)

    async def _start_alice(self) -> None:
        name = f"alice{next(self._names)}"
        if self.victim != RUNTIME:
            self.alice = Caller()
            await self._runtime(A, name, self.alice)
            return
        there = await self._serve(
            *("runtime", "--domain", A, "--name", name, "--node", self.own, "--p2p", "none"),
            *("--hyperty", f"it={Asker.__module__}:{Asker.__name__}"),
            *("--catalogue", f"{B}={self._written()}", "--trust", str(self.folder / "trust.toml")),
        )
        hyperties = there.ready["hyperties"]
        assert isinstance(hyperties, dict)
        self.asker, self.process = str(hyperties["it"]), there.process

    def _written(self) -> Path:
        """Write the catalogue, and whom to trust, for a process."""
        for path, text in self.publishing.files.items():
            file = self.folder / "catalogue" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
            (self.folder / file.name).write_bytes(text)
        (self.folder / "trust.toml").write_text(TRUST)
        return self.folder / "catalogue"

    def _reported(self) -> AwaitableTracer:
        self.tracers.append(reported := AwaitableTracer())
        return reported

    async def _serve(self, *arguments: str) -> Serving:
        return await self.stack.enter_async_context(serving(*arguments))

    # ---- acting

    async def ask(self) -> int:
        """Let Alice ask Bob; if she is a process, Carol has her do it."""
        if self.alice is not None:
            code = int((await self.alice.request(self.bob, "hello")).code)
        else:
            value = (await self.carol.request(self.asker, {"to": self.bob})).body.get("value")
            code = value if isinstance(value, int) else 408
        self.codes.append(code)
        return code

    async def insist(self) -> None:
        """Ask again, as an application does, until there is an answer."""
        await insist(self.ask)

    async def reach(self, stage: Stage, nursery: trio.Nursery) -> None:
        """Come as far as this."""
        if stage is Stage.IN_PROGRESS:
            self.proxy.pause()
            nursery.start_soon(self.ask)
            await self.proxy.held.wait()
            return
        await self.insist()
        if stage is Stage.DISCONNECTED:
            self.proxy.shut()

    def harm(self, how: Harm) -> None:
        self._process().send_signal(how.value)

    def _process(self) -> trio.Process:
        process = self.node.process or self.process
        assert process is not None
        return process

    async def settle(self) -> None:
        """Let time fly until whoever is here has given up the one who is away."""
        self.clock.rate = HASTE
        with trio.fail_after(PATIENCE):
            await self._given_up()
        self.clock.rate = 1.0

    async def _given_up(self) -> None:
        reported = self.tracers[-1] if self.victim == NODE else self.node.tracer
        assert reported is not None
        machine = "stub_connection" if self.victim == NODE else "session"

        async def is_over() -> bool:
            await trio.lowlevel.checkpoint()
            states = {
                fact.key: fact.new
                for fact in reported.facts
                if fact.k is Kind.STATE and fact.machine == machine and "alice" in str(fact.key)
            }
            # What leads to the own node stays; there is no session but the one in question.
            living = [state for state in states.values() if state in _ALIVE]
            return len(living) <= (self.victim == NODE)

        await reported.until(is_over)

    async def heal(self, how: Harm) -> None:
        """Let the stopped go on, start the killed anew; the way there is open again."""
        self.clock.rate = BRISK
        if how is Harm.STOPPED:
            self._process().send_signal(signal.SIGCONT)
        elif self.victim == RUNTIME:
            await self._start_alice()
        else:
            self.node = await self._start_node()
            for proxy, door in zip(self.proxies, (FORMS[self.form][1], "url"), strict=True):
                proxy.server = self.node.urls[door]
        self.proxy.open()

    def judged(self) -> list[Judgement]:
        """What is judged of those who were here; they have ended."""
        return [tracer.judged() for tracer in self.tracers]


_ALIVE = {"in-progress", "live", "open"}


@asynccontextmanager
async def open_stub_set_up(form: str, victim: str, clock: MockClock) -> AsyncIterator[StubSetUp]:
    """Start everybody."""
    async with open_system_network() as network, AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        set_up = StubSetUp(form, victim, clock, network, stack, folder)
        await set_up.start()
        yield set_up
        set_up.proxy.open()
