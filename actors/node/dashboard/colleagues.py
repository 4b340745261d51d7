"""What pages of one node ask the other nodes of its domain: what did they refuse and drop?

Questions and answers go through inboxes of their own, so that they delay no message. Both are
sent at most once; a node that does not answer in time is named.
"""

import itertools
from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Final

import attrs
import orjson
import trio

from actors.kit.counters import Counters
from actors.node.dashboard.overview import Wanted
from fsm.group.kinds import is_node_id
from specs.jsonvalue import Json, JsonObject
from specs.limits.dashboard import COLLEAGUE_PATIENCE, COLLEAGUE_ROWS
from specs.reply_code import DropReason
from transports.engine.contract import Engine, EngineDownError


class _Form(StrEnum):
    """What one node sends to another."""

    QUESTION = "question"
    ANSWER = "answer"


def _inbox(node: str) -> str:
    # No id of a node has a slash.
    return f"{node}/questions"


@attrs.define
class _Asked:
    """A question that is open, with the answers that have come."""

    answers: dict[str, JsonObject | None]
    is_answered: trio.Event = attrs.field(factory=trio.Event)

    def take(self, node: str, answer: JsonObject) -> bool:
        """Take the answer of a node; return False if that was not asked."""
        if node not in self.answers:
            return False
        self.answers[node] = answer
        if None not in self.answers.values():
            self.is_answered.set()
        return True


class Colleagues:
    """Asks other nodes, and answers what they ask.

    Args:
        engine: The engine that all nodes share.
        node: Id of this node.
        counters: Counters of this node, from which it answers.
    """

    def __init__(self, engine: Engine, node: str, counters: Counters) -> None:
        self._engine: Final = engine
        self.node: Final = node
        self._counters: Final = counters
        self._open: Final = dict[int, _Asked]()
        self._numbers: Final = itertools.count(1)

    async def ask(self, nodes: Collection[str], wanted: Wanted) -> Mapping[str, JsonObject | None]:
        """Ask nodes what they refused and dropped, and return their answers; None: there is none.

        If cancelled, answers that come are not awaited any more.

        Args:
            nodes: The nodes.
            wanted: What is looked for.
        """
        if not nodes:
            return {}
        number = next(self._numbers)
        asked = self._open[number] = _Asked(dict.fromkeys(nodes))
        question = orjson.dumps([_Form.QUESTION, self.node, number, wanted.id, wanted.text])
        try:
            with trio.move_on_after(COLLEAGUE_PATIENCE), suppress(EngineDownError):
                for node in nodes:
                    await self._engine.publish(_inbox(node), (question,))
                await asked.is_answered.wait()
        finally:
            del self._open[number]
        return asked.answers

    async def _take(self, payload: bytes) -> None:
        """Answer a question, or take an answer."""
        match _read(payload):
            case [_Form.QUESTION, str(node), int(number), str(id_), str(text)] if is_node_id(node):
                await self._answer(node, number, Wanted(id_, text))
            case [_Form.ANSWER, str(node), int(number), dict(found)] if _has_rows(found):
                if (asked := self._open.get(number)) is None:
                    self._counters.drop(DropReason.LATE_RESPONSE)
                elif not asked.take(node, found):
                    self._counters.drop(DropReason.UNMATCHED)
            case _:
                self._counters.drop(DropReason.MALFORMED)

    async def receive(self) -> None:
        """Receive what other nodes ask and answer, until the engine's handle is closed.

        If cancelled, what comes is lost.
        """
        async with self._engine.inbox(_inbox(self.node), self._lose) as came:
            async for batch in came:
                for payload in batch:
                    await self._take(payload)

    def _lose(self, _: bytes) -> None:
        self._counters.drop(DropReason.OVERFLOW)

    async def _answer(self, node: str, number: int, wanted: Wanted) -> None:
        found = wanted.among(self._counters, COLLEAGUE_ROWS)
        answer = orjson.dumps([_Form.ANSWER, self.node, number, found])
        with suppress(EngineDownError):
            await self._engine.publish(_inbox(node), (answer,))


def _has_rows(found: JsonObject) -> bool:
    lists = [item for item in found.values() if isinstance(item, list)]
    rows = [row for each in lists for row in each]
    return len(lists) == len(found) and all(isinstance(row, dict) for row in rows)


def _read(payload: bytes) -> Json:
    try:
        read: Json = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return read
