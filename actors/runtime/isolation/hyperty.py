"""Hyperties in sandbox processes of their own: what goes on in one goes no further (BUS-15, R11).

In the runtime's own sandbox there is only its keeper. A hyperty that crashes, does not let
its process answer, or says more than it may, ends with its process: its keeper crashes, and
is started again with another process, until that was too often.
"""

import re
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counting.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.delivery import Delivery
from actors.kit.trace import NULL_TRACER
from actors.pipe.errors import PipeError, RoomEndedError, RoomError
from actors.pipe.keeper import KeeperTools, RoomKeeper
from actors.pipe.plan import ProgramRoom, RoomPlan
from actors.pipe.said import Said, Word
from actors.pipe.spawn import Spawn
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.hyperty.lifecycle import Lifecycle
from actors.runtime.isolation.mail import RoomMail
from actors.runtime.stubs.guarded_network import NO_NETWORK
from actors.runtime.stubs.sandbox import ComponentMaker
from specs.addresses.address import domain_of
from specs.errors import ProtoflyError
from specs.limits.isolation import GUEST_BURST, GUEST_RATE, ROOM_FAULT, ROOM_REASON
from specs.limits.protocol import DEPLOY_TIMEOUT
from specs.message import Message

__all__ = ["HypertyCode", "Landlord", "NoCodeError", "room_hyperty"]

_FORM: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@final
class NoCodeError(ProtoflyError):
    """A hyperty cannot be found by another process.

    Attributes:
        where: What was to be its place.
    """

    def __init__(self, where: str) -> None:
        super().__init__(
            f"another process cannot import {where}: put the class into a module, at its top level"
        )
        self.where = where


@final
@attrs.frozen
class HypertyCode:
    """Where another process finds a hyperty: `module:Class`, to be imported there.

    Raises:
        NoCodeError: It is not of that form.
    """

    where: str = attrs.field()

    @where.validator
    def _check(self, _: object, where: str) -> None:
        module, _colon, _name = where.partition(":")
        if _FORM.fullmatch(where) is None or module == "__main__":
            raise NoCodeError(where)

    @classmethod
    def of(cls, made: type[Hyperty]) -> "HypertyCode":
        """Return where a class is.

        Raises:
            NoCodeError: It is in the script that runs, or inside a function or class.
        """
        return cls(f"{made.__module__}:{made.__qualname__}")


@final
@attrs.frozen
class Landlord:
    """What a runtime gives to hyperties in sandboxes of their own.

    Attributes:
        runtime: Its address.
        ids: Message ids of its hyperties begin where this one's are.
        counters: Counts what was dropped on the way in or out.
        life: Of the one hyperty it is for: takes what its handlers raise.
    """

    runtime: str
    ids: IdSource
    counters: Counters
    life: Lifecycle = attrs.field(factory=Lifecycle)


def room_hyperty(code: HypertyCode, spawn: Spawn, landlord: Landlord) -> ComponentMaker:
    """Return what keeps a hyperty in a sandbox process, for `Runtime.host`.

    The class is made without arguments, in the other process: what it needs must come by
    messages. It has `request`, `report` and `observe` as always, and nothing else: no
    network, no files but those that can be imported, no environment. When its process ends,
    whoever waits for an answer of it is told 503 at once, and another process takes its
    place; after more than `Intensity` allows, the runtime undeploys it.

    Args:
        code: Where its class is; importable from the folders the sandbox can read.
        spawn: Makes the sandbox: `process_rooms(folders)`.
        landlord: What its runtime has for it; `Runtime.deploy_apart` knows.
    """
    lives = _Lives(code, spawn, landlord)
    return lives.begin


@final
class _Lives:
    """One hyperty through all its processes: its message ids go on from one to the next."""

    def __init__(self, code: HypertyCode, spawn: Spawn, landlord: Landlord) -> None:
        self._code = code
        self._spawn = spawn
        self._landlord = landlord
        self.last_id = 0

    def raised(self, said: Said) -> None:
        """Put on record what a handler has raised; nothing of what is said is believed."""
        trace = said.rest[-ROOM_FAULT:].decode(errors="replace")
        lines = ("".join(map(_shown, line)) for line in trace.split("\n"))
        correlation, handler = (
            "".join(map(_shown, text[:ROOM_REASON])) for text in (said.text, said.get("handler"))
        )
        self._landlord.life.noted(correlation, handler, exception="\n".join(lines))

    def begin(self, port: MiniBusPort) -> "RoomHyperty":
        """Make the keeper of one life."""
        landlord = self._landlord
        self.last_id = max(self.last_id, landlord.ids.next(port.url))
        plan = RoomPlan(
            url=port.url,
            runtime=landlord.runtime,
            domain=domain_of(port.url),
            contents=ProgramRoom(self._code.where),
            ids=self.last_id,
        )
        tools = KeeperTools(
            spawn=self._spawn,
            network=NO_NETWORK,
            tracer=NULL_TRACER,
            counters=landlord.counters,
            rate=GUEST_RATE,
            burst=GUEST_BURST,
        )
        return RoomHyperty(plan, tools, port, self)


@final
class RoomHyperty(RoomKeeper[Delivery]):
    """The hyperty, as the rest of the runtime knows it."""

    def __init__(
        self, plan: RoomPlan, tools: KeeperTools, port: MiniBusPort, lives: _Lives
    ) -> None:
        super().__init__(plan, tools)
        self._port = port
        self._lives = lives
        self._mail = RoomMail(port, tools.counters, self)
        self._is_ready = trio.Event()

    @override
    async def start(self) -> None:
        await super().start()
        with trio.move_on_after(DEPLOY_TIMEOUT):
            await self._is_ready.wait()
            return
        raise RoomError("it was not ready in time")

    @override
    async def handle(self, message: Delivery) -> None:
        await self._mail.deliver(message.message)

    @override
    async def ready(self) -> None:
        self._is_ready.set()

    @override
    async def posted(self, message: Message) -> None:
        self._note(message)
        self._mail.answered(message)
        await self._port.post(message)

    @override
    async def asked(self, message: Message) -> None:
        self._note(message)
        await self._mail.ask(message)

    def _note(self, message: Message) -> None:
        if message.from_ == self.plan.url and not message.is_response:
            self._lives.last_id = max(self._lives.last_id, message.id)

    @override
    async def lost(self, message: Message) -> None:
        await self._mail.lost(message)

    @override
    async def told(self, said: Said) -> None:
        if said.word is Word.FAULT:
            self._lives.raised(said)
            return
        raise PipeError(f"{said.word} is nothing a hyperty says")

    @override
    def ended(self, why: str) -> None:
        raise RoomEndedError(why) if self._is_ready.is_set() else RoomError(why)

    @override
    async def stop(self) -> None:
        await self._mail.give_up(f"the hyperty is gone: {self.why}")


def _shown(character: str) -> str:
    """Return a character of a sandbox as it may stand in a log: none commands a terminal."""
    return character if character.isprintable() else "?"
