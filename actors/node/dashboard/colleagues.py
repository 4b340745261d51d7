"""Ask the other nodes of a domain which messages they refused and dropped, for the dashboard.

Questions and answers have inboxes of their own, so that they delay no message. Both are sent at
most once; a node that does not answer in time is listed without an answer.
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
    """The kinds of payloads between nodes."""

    QUESTION = "question"
    ANSWER = "answer"


def _inbox(node: str) -> str:
    # The id of a node never has a slash.
    return f"{node}/questions"


@attrs.define
class _Question:
    """An open question, with the answers so far."""

    answers: dict[str, JsonObject | None]
    is_answered: trio.Event = attrs.field(factory=trio.Event)

    def take(self, node: str, answer: JsonObject) -> bool:
        """Store the answer of a node; return False if that node was not asked."""
        if node not in self.answers:
            return False
        self.answers[node] = answer
        if None not in self.answers.values():
            self.is_answered.set()
        return True


class Colleagues:
    """Ask other nodes, and answer their questions.

    Args:
        engine: The engine that all nodes share.
        node: Id of this node.
        counters: Counters of this node, from which it answers.
    """

    def __init__(self, engine: Engine, node: str, counters: Counters) -> None:
        self._engine: Final = engine
        self.node: Final = node
        self._counters: Final = counters
        self._open: Final = dict[int, _Question]()
        self._numbers: Final = itertools.count(1)

    async def ask(self, nodes: Collection[str], wanted: Wanted) -> Mapping[str, JsonObject | None]:
        """Ask nodes which messages they refused and dropped; return each answer, None without one.

        If cancelled, later answers are dropped.

        Args:
            nodes: The nodes.
            wanted: The search.
        """
        if not nodes:
            return {}
        number = next(self._numbers)
        asked = self._open[number] = _Question(dict.fromkeys(nodes))
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
        """Answer a question, or store an answer."""
        match _read(payload):
            case [_Form.QUESTION, str(node), int(number), str(id_), str(text)] if is_node_id(node):
                await self._answer(node, number, Wanted(id_, text))
            case [_Form.ANSWER, str(node), int(number), dict(rows)] if _has_rows(rows):
                if (question := self._open.get(number)) is None:
                    self._counters.drop(DropReason.LATE_RESPONSE)
                elif not question.take(node, rows):
                    self._counters.drop(DropReason.UNMATCHED)
            case _:
                self._counters.drop(DropReason.MALFORMED)

    async def receive(self) -> None:
        """Receive questions and answers of other nodes, until the engine is closed.

        If cancelled, later ones are lost.
        """
        async with self._engine.inbox(_inbox(self.node), self._lose) as batches:
            async for batch in batches:
                for payload in batch:
                    await self._take(payload)

    def _lose(self, _: bytes) -> None:
        self._counters.drop(DropReason.OVERFLOW)

    async def _answer(self, node: str, number: int, wanted: Wanted) -> None:
        rows = wanted.among(self._counters, COLLEAGUE_ROWS)
        answer = orjson.dumps([_Form.ANSWER, self.node, number, rows])
        with suppress(EngineDownError):
            await self._engine.publish(_inbox(node), (answer,))


def _has_rows(answer: JsonObject) -> bool:
    lists = [item for item in answer.values() if isinstance(item, list)]
    rows = [row for each in lists for row in each]
    return len(lists) == len(answer) and all(isinstance(row, dict) for row in rows)


def _read(payload: bytes) -> Json:
    try:
        value: Json = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return value
