"""Who keeps a sandbox: speaks with it over its pipe, and believes nothing it says (T16).

The keeper hands messages in and takes messages out, dials for the sandbox, asks it for
signs of life, and steps along with its stub by the table. A sandbox that is silent, or says
what nobody says, is ended; its owner hears of that once, whatever it was.
"""

import math
from contextlib import suppress
from typing import Final, TypeAlias, final

import attrs
import structlog
import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.trace import Tracer
from actors.pipe.errors import PipeError, RoomError
from actors.pipe.evidence import keep_hop
from actors.pipe.login import Login, nothing
from actors.pipe.outlet import Outlet
from actors.pipe.plan import RoomPlan, write_plan
from actors.pipe.relay import Relays
from actors.pipe.said import Said, Word, read_said, write_said
from actors.pipe.spawn import Spawn
from fsm.cores.foreign_terms import (
    OfRoom,
    RoomFull,
    RoomGone,
    RoomKept,
    RoomLost,
    RoomMoved,
    RoomReady,
    RoomSpoke,
)
from fsm.cores.node_session_terms import Parcel
from fsm.cores.pace import Pace
from fsm.cores.stub_mirror import StubMirror
from fsm.errors import UndeclaredTransitionError
from fsm.machines.stub_connection import State
from specs.limits import GOODBYE_TIMEOUT, ROOM_BEAT, ROOM_BURST, ROOM_RATE, ROOM_SILENCE
from specs.message import Message
from specs.reply_code import DropReason
from transports.codec import BadLine, decode_line
from transports.errors import LinkError
from transports.link import Link
from transports.network import Network

__all__ = ["Keeper", "KeeperTools", "RoomNews"]

_log = structlog.get_logger("actors.pipe")

RoomNews: TypeAlias = OfRoom
"""What the owner of a room is told."""

_HOPS: Final = 4
"""Lines of evidence for one message, at most."""

_WHY: Final = 200
"""Characters of a reason that are believed to be one."""

_MANY: Final = 1_000_000
"""More drops than this between two signs of life are no count."""


@final
@attrs.frozen
class KeeperTools:
    """What a keeper works with.

    Attributes:
        spawn: Makes the sandbox.
        network: Dials for it.
        owner: Is told what comes of it.
        login: Returns what its stub opens a session with, asked for at each open.
    """

    spawn: Spawn
    network: Network
    tracer: Tracer
    counters: Counters
    owner: ActorRef[RoomNews]
    login: Login = nothing


@final
class Keeper(Actor[Parcel]):
    """One sandbox with one stub; its mailbox takes what is for the stub."""

    def __init__(self, plan: RoomPlan, tools: KeeperTools) -> None:
        self._plan = plan
        self._tools = tools
        self._mirror = StubMirror(plan.stub)
        self._posts = Pace(ROOM_RATE, ROOM_BURST)
        self._hops = Pace(_HOPS * ROOM_RATE, round(_HOPS * ROOM_BURST))
        self._outlet: Outlet | None = None
        self._why = "it was ended"
        self._due = math.inf
        self._is_owed = False
        self._is_logging_in = False
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._live)

    @override
    async def handle(self, message: Parcel) -> None:
        if self._outlet is None or self._outlet.is_closed:
            await self._tell(RoomLost(self._plan.stub, message.message))
        elif not self._outlet.offer(Said(Word.HAND, rest=message.line)):
            await self._tell(RoomFull(self._plan.stub, message.message))

    # ---- signs of life

    @override
    def deadline(self) -> float:
        return self._due

    @override
    async def timed_out(self) -> None:
        if self._is_owed:
            self._leave(f"it gave no sign of life for {ROOM_SILENCE:g} s")
        elif self._outlet is not None:
            self._outlet.put(Said(Word.PING))
            self._is_owed = True
            self._due = trio.current_time() + ROOM_SILENCE

    def _alive(self) -> None:
        self._is_owed = False
        self._due = trio.current_time() + ROOM_BEAT
        self.wake()

    def _leave(self, why: str) -> None:
        self._why = why
        self._has_left.set()
        self.finish()

    # ---- the end

    @override
    async def farewell(self) -> None:
        if self._outlet is not None and not self._has_left.is_set():
            self._outlet.put(Said(Word.LEAVE))
            with trio.move_on_after(2 * GOODBYE_TIMEOUT):
                await self._has_left.wait()

    @override
    async def stop(self) -> None:
        rest = self._mirror.rest(self._why)
        if rest is not None:
            self._tools.tracer.step(f"stub:{self._plan.stub}", rest)
        await self._tell(RoomGone(self._plan.stub, self._why))

    async def _tell(self, news: RoomNews) -> None:
        # An owner that is gone wants no news.
        with suppress(ActorStoppedError):
            await self._tools.owner.tell(news)

    # ---- the pipe

    async def _live(self) -> None:
        try:
            async with self._tools.spawn(self._plan.domain) as link:
                self._outlet = Outlet(link)
                self.spawn(self._outlet.run)
                await link.send(write_said(Said(Word.PLAN, told=write_plan(self._plan))))
                await self._read(
                    link, Relays(self._tools.network, self._plan.endpoint, self._outlet)
                )
        except (RoomError, PipeError) as exc:
            _log.warning("sandbox ended", domain=self._plan.domain, why=exc.reason)
            self._leave(exc.reason)
        except LinkError:
            self._leave("its process ended")

    async def _read(self, link: Link, relays: Relays) -> None:
        while not self._has_left.is_set():
            said = read_said(await link.receive())
            match said.word:
                case Word.DATA | Word.TOOK | Word.HANG:
                    relays.heard(said)
                case Word.DIAL:
                    work = relays.dial(said)
                    if work is not None:
                        self.spawn(work)
                case Word.HOP:
                    await self._hop(said)
                case _:
                    await self._paced(self._posts)
                    await self._heard(said)

    @staticmethod
    async def _paced(pace: Pace) -> None:
        pause = pace.spend(trio.current_time())
        if pause:
            await trio.sleep(pause)

    async def _heard(self, said: Said) -> None:
        stub = self._plan.stub
        match said.word:
            case Word.READY:
                self._alive()
                await self._tell(RoomReady(stub))
            case Word.POST | Word.LOST:
                news = RoomSpoke if said.word is Word.POST else RoomFull
                await self._tell(news(stub, _message(said)))
            case Word.STEP:
                await self._stepped(said)
            case Word.KEEP:
                await self._tell(RoomKept(stub, said.text))
            case Word.LOGIN:
                self._ask_login(said.number)
            case Word.PONG:
                self._alive()
                self._count(said)
            case Word.LEFT:
                self._has_left.set()
                self.finish()
            case _:
                raise PipeError(f"{said.word} is nothing a sandbox says")

    async def _log_in(self, number: int) -> None:
        token = await self._tools.login()
        self._is_logging_in = False
        self._show(number, token)

    def _ask_login(self, number: int) -> None:
        if self._is_logging_in:
            # It did not wait for the last one, which hangs: that one may still come.
            self._show(number, None)
        else:
            self._is_logging_in = True
            self.spawn(self._log_in, number)

    def _show(self, number: int, token: str | None) -> None:
        if self._outlet is not None:
            self._outlet.put(Said(Word.LOGIN, number, token or ""))

    async def _stepped(self, said: Said) -> None:
        try:
            step = self._mirror.follow(said.get("cause"), said.get("new"), said.get("why")[:_WHY])
        except UndeclaredTransitionError:
            # The crash is this actor's, so that the monitor hears of it; it ends the sandbox.
            self._why = "its stub took a step that no table declares"
            raise
        self._tools.tracer.step(f"stub:{self._plan.stub}", step)
        await self._tell(RoomMoved(self._plan.stub, State(step.new), step.why))

    async def _hop(self, said: Said) -> None:
        await self._paced(self._hops)
        if self._plan.hops:
            keep_hop(self._tools.tracer, self._plan.stub, said)

    def _count(self, said: Said) -> None:
        for reason, count in said.told.items():
            if reason not in set(DropReason) or not isinstance(count, int) or count > _MANY:
                raise PipeError("a count of what nobody counts")
            for _ in range(count):
                self._tools.counters.drop(DropReason(reason))


def _message(said: Said) -> Message:
    message = decode_line(said.rest)
    if isinstance(message, BadLine):
        raise PipeError(f"a message that is none: {message.error.reason}")
    return message
