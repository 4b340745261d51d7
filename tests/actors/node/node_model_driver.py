"""Random acts of several runtimes at a node in memory, each held against the model."""

from random import Random

import trio
from trio.testing import wait_all_tasks_blocked

from fsm.registry.node_rights import Observation
from specs.limits.protocol import SESSION_IDLE
from tests.actors.node.node_model import Model
from tests.actors.node.node_model_runtime import Runtime
from tests.support.node.node_peer import ALLOCATION, SESSION, SM, World, open_world
from transports.link import Link

NAMES = ("r1", "r2", "r3", "r4")
PARTS = ("changes", "changes", "children/x")
_ENOUGH = 2
"""Objects at a time: more would seldom be observed by several."""


class Driver:
    """One run: the node, the model, and who lives at both."""

    def __init__(self, seed: int, world: World, nursery: trio.Nursery) -> None:
        self.dice = Random(seed)  # noqa: S311 - chance, no secret
        self.world = world
        self.nursery = nursery
        self.model = Model()
        self.runtimes = {name: Runtime(name) for name in NAMES}
        self.objects: list[str] = []
        self.history: list[str] = []
        self.count = 0

    async def step(self) -> None:
        """Do something, and compare who hears what with what the model says."""
        act = self.dice.choice(_ACTS) if len(self.history) > len(NAMES) else Driver.open
        await act(self)
        await wait_all_tasks_blocked()
        reported = self.model.reported()
        for name, runtime in self.runtimes.items():
            heard, expected = runtime.taken(), reported.get(name, [])
            assert heard == expected, "\n".join(
                [*self.history, f"{name} heard    {heard}", f"{name} expected {expected}"]
            )

    def _note(self, *words: object) -> None:
        self.history.append(" ".join(map(str, words)))

    # ---- who and what

    def _any_runtime(self) -> Runtime:
        return self.runtimes[self.dice.choice(NAMES)]

    def _present(self) -> Runtime | None:
        there = [name for name, one in self.model.sessions.items() if one.is_attached]
        return self.runtimes[self.dice.choice(sorted(there))] if there else None

    def _address(self) -> str:
        """Return an address: allocated, freed, or of a runtime."""
        own = [f"{one.url}/ua" for one in self.runtimes.values()]
        return self.dice.choice([*own, *self.objects[-12:]])

    async def _say(self, runtime: Runtime, type_: str, from_: str, to: str, **body: object) -> None:
        self.model.knows(runtime.name)
        await runtime.say(runtime.link, type_, from_, to, **body)

    # ---- sessions

    async def _dialled(self, runtime: Runtime) -> Link:
        link = await self.world.link()
        self.nursery.start_soon(runtime.listen, link)
        return link

    async def _control(self, runtime: Runtime, method: str, **params: str) -> Link:
        link = await self._dialled(runtime)
        await runtime.say(
            link, "execute", f"{runtime.url}/protostub/1", SESSION,
            method=method, params={"runtimeURL": runtime.url, **params},
        )  # fmt: skip
        return link

    async def _settled(self, runtime: Runtime, link: Link, code: int) -> None:
        if code == 200:
            runtime.link = link
        else:
            await link.aclose()

    async def open(self) -> None:
        runtime = self._any_runtime()
        code = self.model.open(runtime.name)
        self._note(runtime.name, "opens:", code)
        self.model.heard[runtime.name].append(("answer", code))
        link = await self._control(runtime, "open")
        await wait_all_tasks_blocked()
        await self._settled(runtime, link, code)

    async def reopen(self) -> None:
        runtime = self._any_runtime()
        which = self.dice.choice(("right", "right", "wrong"))
        code = self.model.reopen(runtime.name, which)
        self._note(runtime.name, "re-opens by the", which, "token:", code)
        self.model.heard[runtime.name].append(("answer", code))
        if code == 200:
            self.model.back(runtime.name)
        token = runtime.token if which == "right" and runtime.token else "0" * 64
        link = await self._control(runtime, "re-open", token=token)
        await wait_all_tasks_blocked()
        await self._settled(runtime, link, code)

    async def lose(self) -> None:
        runtime = self._present()
        if runtime is not None:
            self._note(runtime.name, "loses its link")
            self.model.lose(runtime.name)
            await runtime.link.aclose()

    async def close(self) -> None:
        runtime = self._present()
        if runtime is not None:
            self._note(runtime.name, "closes")
            self.model.heard[runtime.name].append(("answer", 200))
            self.model.end(runtime.name)
            await runtime.say(
                runtime.link, "execute", f"{runtime.url}/protostub/1", SESSION,
                method="close", params={"runtimeURL": runtime.url},
            )  # fmt: skip

    async def wait(self) -> None:
        self._note("time goes by")
        self.model.expire()
        await trio.sleep(SESSION_IDLE + 1)

    # ---- addresses and paths

    async def allocate(self) -> None:
        runtime = self._present()
        if runtime is None or len(self.model.owners) >= _ENOUGH:
            return
        await self._say(
            runtime, "create", f"{runtime.url}/ua", ALLOCATION,
            scheme="comm", value={"number": 1},
        )  # fmt: skip
        await wait_all_tasks_blocked()
        (address,) = runtime.heard[-1][2]["allocated"]
        self._note(runtime.name, "allocates", address)
        self.model.allocated(runtime.name, address)
        self.model.heard[runtime.name].append(("answer", 200))
        self.objects.append(address)

    async def free(self) -> None:
        runtime = self._present()
        if runtime is None or not self.objects:
            return
        address = self.dice.choice(self.objects)
        code = self.model.free(runtime.name, address)
        self._note(runtime.name, "frees", address, code)
        self.model.heard[runtime.name].append(("answer", code))
        await self._say(
            runtime, "delete", f"{runtime.url}/ua", ALLOCATION, childrenResources=[address]
        )

    async def subscribe(self) -> None:
        await self._path("subscribe")

    async def unsubscribe(self) -> None:
        await self._path("unsubscribe")

    async def _path(self, type_: str) -> None:
        runtime = self._present()
        alive = [one for one in self.objects if one in self.model.owners]
        if runtime is None or not alive:
            return
        object_ = self.dice.choice(alive)
        resource = f"{object_}/{self.dice.choice(PARTS)}"
        if type_ == "subscribe":
            code = self.model.subscribe(runtime.name, object_, resource)
        else:
            code = self.model.unsubscribe(runtime.name, resource)
        self._note(runtime.name, type_, resource, code)
        self.model.heard[runtime.name].append(("answer", code))
        await self._say(runtime, type_, f"{runtime.url}/sm", SM, resources=[resource])

    async def observe(self) -> None:
        """Set a path on an object that is there, and ask its owner."""
        await self._path("subscribe")
        await wait_all_tasks_blocked()
        await self.ask()

    async def ask(self) -> None:
        """Ask the owner of an object, if both are there and it has not said yes before."""
        runtime = self._present()
        alive = [
            one for one, owner in self.model.owners.items() if self._may_say(runtime, owner, one)
        ]
        if runtime is None or not alive:
            return
        object_, code = self.dice.choice(alive), self.dice.choice((200, 200, 403))
        self._note(runtime.name, "asks for", object_, code)
        for other in self.runtimes.values():
            other.tells = code
        self.model.ask(runtime.name, object_, code)
        await self._say(
            runtime, "subscribe", f"{runtime.url}/sm", f"{object_}/subscription",
            source=runtime.url,
        )  # fmt: skip
        await wait_all_tasks_blocked()
        for other in self.runtimes.values():
            other.tells = 200

    def _may_say(self, runtime: Runtime | None, owner: str, object_: str) -> bool:
        if runtime is None or not self.model.sessions[owner].is_attached:
            return False
        return not self.model._consents(runtime.name, object_)

    # ---- messages

    async def publish(self) -> None:
        runtime = self._present()
        if runtime is None or not self.objects:
            return
        own = [one for one in self.objects if self.model.owners.get(one) == runtime.name]
        object_ = self.dice.choice(own if own and self.dice.random() < 0.9 else self.objects)
        resource = f"{object_}/{self.dice.choice(PARTS)}"
        self.count += 1
        self._note(runtime.name, "publishes", resource, self.count)
        self.model.publish(runtime.name, object_, resource, self.count)
        await self._say(runtime, "update", object_, resource, value=self.count)

    async def request(self) -> None:
        runtime = self._present()
        if runtime is None:
            return
        from_ = f"{runtime.url}/ua" if self.dice.random() < 0.5 else self._address()
        to = self._address()
        self.count += 1
        self._note(runtime.name, "asks", from_, to, self.count)
        self.model.request(runtime.name, from_, to, self.count)
        await self._say(runtime, "create", from_, to, value=self.count)


_ACTS = (
    *(Driver.open,) * 4, *(Driver.reopen,) * 5, *(Driver.lose,) * 2, Driver.close, Driver.wait,
    *(Driver.allocate,) * 6, Driver.free, *(Driver.subscribe,) * 3, Driver.unsubscribe,
    *(Driver.ask,) * 2, *(Driver.observe,) * 12, *(Driver.publish,) * 12, *(Driver.request,) * 7,
)  # fmt: skip


async def run(seed: int, steps: int) -> Driver:
    """Do so many random acts; every one is compared with the model."""
    async with trio.open_nursery() as nursery:
        async with open_world(observation=Observation.OWNER) as world:
            driver = Driver(seed, world, nursery)
            for _ in range(steps):
                await driver.step()
        nursery.cancel_scope.cancel()
    return driver
