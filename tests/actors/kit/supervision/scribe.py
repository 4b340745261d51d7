"""An actor that does what its messages say and writes down what happened to it."""

import math
from collections.abc import Callable

import attrs
import trio

from actors.kit.supervision.actor import Actor, ActorRef, Reply


@attrs.frozen
class Note:
    text: str


@attrs.frozen
class Crash:
    error: Exception = attrs.field(factory=lambda: ValueError("told to"))


@attrs.frozen
class Count:
    """Asks how many notes this incarnation has taken."""

    reply: Reply[int]


@attrs.frozen
class Keep:
    """An ask that is answered later, from `kept`, or never."""

    reply: Reply[int]


@attrs.frozen
class Wait:
    gate: trio.Event


@attrs.frozen
class Pass:
    """An ask that is answered by what another actor answers to `Count`."""

    other: "ActorRef[Order]"
    reply: Reply[int]


@attrs.frozen
class Do:
    """Runs a function with the actor, in the actor's task."""

    work: Callable[["Scribe"], None]


Order = Note | Crash | Count | Keep | Wait | Pass | Do


class Scribe(Actor[Order]):
    def __init__(self, diary: list[str], fails_to_start: Exception | None = None):
        self.diary = diary
        self.fails_to_start = fails_to_start
        self.notes = 0
        self.kept: list[Reply[int]] = []
        self.due = math.inf

    def write(self, what: str) -> None:
        self.diary.append(f"{self.name} {what}")

    async def start(self):
        await trio.lowlevel.checkpoint()
        if self.fails_to_start is not None:
            raise self.fails_to_start
        self.write("starts")

    async def handle(self, message: Order):
        match message:
            case Note(text):
                self.notes += 1
                self.write(text)
            case Crash(error):
                raise error
            case Count(reply):
                reply.send(self.notes)
            case Keep(reply):
                self.kept.append(reply)
            case Wait(gate):
                await gate.wait()
            case Pass(other, reply):
                reply.send(await other.ask(Count))
            case Do(work):
                work(self)

    async def drained(self):
        self.write("drained")

    def deadline(self):
        return self.due

    async def timed_out(self):
        self.due = math.inf
        self.write("timed out")

    async def closing(self):
        self.write("takes leave")

    async def stop(self):
        await trio.lowlevel.checkpoint()
        self.write("stops")


def deeds(diary: list[str], *skipped: str) -> list[str]:
    """The diary without the entries that a test is not about."""
    unwanted = {"drained", "takes leave", *skipped}
    return [entry for entry in diary if entry.split(" ", 1)[1] not in unwanted]
