"""What applications do in a run, and what is written down of it."""

from collections.abc import Mapping
from itertools import count

import trio

from specs.errors import ProtoflyError
from tests.simulation.judgement.history import Answered, Asked, History
from tests.simulation.plans.plan import Act, Deed
from tests.simulation.world.objects import Objects
from tests.simulation.world.process import RuntimeProcess
from tests.simulation.world.worker import Worker


class Application:
    """Does the acts of a plan.

    Attributes:
        objects: Does the acts that are about data objects.
    """

    def __init__(self, runtimes: Mapping[str, RuntimeProcess], history: History) -> None:
        self._runtimes = runtimes
        self._history = history
        self._numbers = count(1)
        self.objects = Objects(runtimes, history)

    async def do(self, act: Act) -> None:
        """Do an act at its time, in the name of a runtime that is up; else nothing."""
        runtime = self._runtimes[act.who]
        if not runtime.is_up:
            return
        match act.deed:
            case Deed.ASK:
                runtime.tasks.start_soon(self._ask_often, runtime, act)
            case Deed.CRASH:
                runtime.tasks.start_soon(self._fell, runtime.worker, runtime.life, act.whom)
            case Deed.DEPLOY:
                runtime.tasks.start_soon(self._deploy, runtime, act)
            case _:
                runtime.tasks.start_soon(self.objects.do, runtime, act)

    # --- requests

    async def _ask_often(self, runtime: RuntimeProcess, act: Act) -> None:
        for _ in range(act.count):
            runtime.tasks.start_soon(self._ask, runtime.worker, runtime.life, act.whom)
            await trio.sleep(act.pause)

    async def _ask(self, worker: Worker, by: str, whom: str) -> None:
        if to := self._runtimes[whom].address:
            await self.ask(worker, by, to)

    async def _fell(self, worker: Worker, by: str, whom: str) -> None:
        if to := self._runtimes[whom].address:
            await self.ask(worker, by, to, crash=True)

    async def ask(self, worker: Worker, by: str, to: str, *, crash: bool = False) -> int:
        """Ask once; return the code, 0 if whoever asks is stopped meanwhile."""
        number = next(self._numbers)
        value = {"n": number, "crash": True} if crash else {"n": number}
        self._history.note(Asked(trio.current_time(), number, by, to))
        answer = await worker.request(to, value)
        reported = answer.body.get("value")
        said = reported.get("n") if isinstance(reported, dict) else None
        self._history.note(Answered(trio.current_time(), number, answer.code, said))
        return answer.code

    async def _deploy(self, runtime: RuntimeProcess, act: Act) -> None:
        guests: list[Worker] = []
        by = f"{runtime.life}/{next(self._numbers)}"
        make = lambda: Worker(by, self._history, guests.append)  # noqa: E731
        try:
            url = await runtime.runtime.deploy("guest", make)
        except ProtoflyError:
            return
        await self._ask(guests[-1], by, act.whom)
        await runtime.runtime.undeploy(url)
