"""Who keeps a sandbox with a stub in it: steps along with the stub by its table (OBS-06)."""

from abc import ABC, abstractmethod
from typing import TypeVar, final

from typing_extensions import override

from actors.pipe.errors import PipeError
from actors.pipe.keeper import KeeperTools, RoomKeeper
from actors.pipe.plan import RoomPlan
from actors.pipe.said import Said, Word
from fsm.engine import Step
from fsm.errors import UndeclaredTransitionError
from fsm.machines.stub_connection import STUB_CONNECTION, State
from fsm.session.stub_mirror import StubMirror
from specs.limits.isolation import ROOM_REASON

__all__ = ["StubKeeper"]

M = TypeVar("M")


class StubKeeper(RoomKeeper[M], ABC):
    """One sandbox with one stub."""

    def __init__(self, plan: RoomPlan, tools: KeeperTools) -> None:
        super().__init__(plan, tools)
        self._tracer = tools.tracer
        self._login = tools.login
        self._mirror = StubMirror(plan.url)
        self._is_logging_in = False

    @property
    def state(self) -> State | None:
        """How the stub's connection stands; None: it has said nothing yet."""
        return self._mirror.state

    @abstractmethod
    async def moved(self, step: Step) -> None:
        """Note a step of the stub's connection, which its table allows."""

    @abstractmethod
    async def kept(self, token: str) -> None:
        """Keep the token of the stub's session for the next one."""

    @override
    async def told(self, said: Said) -> None:
        match said.word:
            case Word.STEP:
                await self._stepped(said)
            case Word.KEEP:
                await self.kept(said.text)
            case Word.LOGIN:
                self._ask_login(said.number)
            case _:
                raise PipeError(f"{said.word} is nothing a sandbox says")

    async def _stepped(self, said: Said) -> None:
        why = said.get("why")[:ROOM_REASON]
        try:
            machine, cause, new = said.get("machine"), said.get("cause"), said.get("new")
            step = self._mirror.follow(machine, cause, new, why)
        except UndeclaredTransitionError:
            # The crash is this actor's, so that the monitor hears of it; it ends the sandbox.
            self.why = "its stub took a step that no table declares"
            raise
        self._tracer.step(f"stub:{self.plan.url}", step)
        if step.machine == STUB_CONNECTION.name:
            await self.moved(step)

    @final
    def rest(self) -> Step | None:
        """Bring the story of the stub to its end, as its room is no more.

        Returns:
            The last step of its connection, if that was not at rest.
        """
        steps = self._mirror.rest(self.why)
        for step in steps:
            self._tracer.step(f"stub:{self.plan.url}", step)
        return next((one for one in steps if one.machine == STUB_CONNECTION.name), None)

    # ---- logging in

    def _ask_login(self, number: int) -> None:
        if self._is_logging_in:
            # It did not wait for the last one, which hangs: that one may still come.
            self.say(Said(Word.LOGIN, number))
        else:
            self._is_logging_in = True
            self.spawn(self._log_in, number)

    async def _log_in(self, number: int) -> None:
        token = await self._login()
        self._is_logging_in = False
        self.say(Said(Word.LOGIN, number, token or ""))
