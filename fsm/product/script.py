"""A run as a scenario file (protocol page 09), so that it can be played with real actors.

A message stands where it arrives, in normal form, with the id of its request if it is an
answer. What is lost and what the surroundings do is a fault; a deadline is time that passes;
what no form can say (a notice within a process) is left out.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, final

from fsm.product.composition import Composition, Message, Wire
from fsm.product.run import Moved, Run, Taken
from fsm.product.steps import Kind
from specs.jsonvalue import Json, JsonObject
from specs.trace import ABSENT

__all__ = ["scenario_of"]

_MACHINES: Final[Mapping[str, str]] = {"p2p_connection": "p2p", "stub_connection": "stub"}
"""What scenarios call machines, where it is not the table's name."""


def scenario_of(composition: Composition, run: Run, name: str) -> str:
    """Write a run as the scenario `name`; the last step is what is wrong, if it is a step."""
    writer = _Writer(composition, name)
    taken = [*run.steps] if run.refused is None else [*run.steps, run.refused]
    lines = [line for step in taken for line in writer.lines(step)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


@final
class _Writer:
    """Numbers the steps, and the messages of each sender."""

    def __init__(self, composition: Composition, name: str) -> None:
        self._name = name
        self._messages = {one.name: one for one in composition.messages}
        self._wishes = {one.name: one for one in composition.wishes}
        self._count = 0
        self._ids: Counter[str] = Counter()
        self._asked: dict[str, int] = {}
        self._begun: Counter[str] = Counter()

    def lines(self, taken: Taken) -> Iterator[JsonObject]:
        """The lines of one step."""
        message = self._messages.get(taken.what) if taken.channel else None
        # It was sent, whether it arrives or not: its answer must find its id.
        wire = None if message is None else self._wire(message)
        match taken.kind:
            case Kind.LOST:
                yield self._line("fault", what=f"lost: {taken.what}")
            case Kind.DEADLINE:
                yield self._line("time", dt=_seconds(taken), why=taken.what)
            case Kind.WISH:
                yield self._wish(taken)
            case _ if wire is not None:
                yield wire
            case _:
                pass
        for moved in taken.moved:
            if moved.new:
                yield self._state(moved)

    def _wish(self, taken: Taken) -> JsonObject:
        wish = self._wishes[taken.what.removeprefix("wish: ")]
        if wish.is_fault:
            return self._line("fault", what=wish.name)
        # What the player cannot do by itself is a remark: it goes on to what comes of it.
        return self._line("call", what=wish.call or f"wish: {wish.name}")

    def _wire(self, message: Message) -> JsonObject | None:
        wire = message.wire
        if wire is None:
            return None
        told = {"id": self._id(message.name, wire), **wire.message}
        event = {"event": True} if wire.is_event else {}
        return self._line("msg", hop=wire.hop, msg=told, **event)

    def _id(self, name: str, wire: Wire) -> int:
        if wire.answers:
            return self._asked.get(wire.answers, 1)
        sender = str(wire.message["from"])
        self._ids[sender] += 1
        self._asked[name] = self._ids[sender]
        return self._ids[sender]

    def _state(self, moved: Moved) -> JsonObject:
        part = moved.part
        if moved.old == ABSENT:
            self._begun[part.name] += 1
        key: list[Json] = [*part.key.replace("{n}", str(self._begun[part.name])).split("|")]
        machine = _MACHINES.get(part.table.name, part.table.name)
        is_p2p = machine == "p2p"
        return self._line(
            "state",
            machine=machine,
            key=key[:3] if is_p2p else key,
            old=None if moved.old == ABSENT else moved.old,
            new=moved.new,
            cause=moved.trigger,
        )

    def _line(self, kind: str, **fields: Json) -> JsonObject:
        self._count += 1
        return {"sc": self._name, "n": self._count, "k": kind, **fields}


def _seconds(taken: Taken) -> float:
    """How long the deadline is, of the part that moves first; 1 s where no table says it."""
    for moved in taken.moved:
        deadline = moved.part.table.deadline(moved.old)
        if deadline is not None and deadline.seconds is not None:
            return deadline.seconds
    return 1.0
