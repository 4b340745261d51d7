"""The records of the domain registry in the engine: each node has all of them, and its index.

A record is written by the node that has the session of its runtime; two nodes write the same one
only while a runtime goes from one to the other, or while a record expires. So a write that
conflicts is made again on top of the other, which is of the same runtime; a removal is given up.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, final

import attrs
import orjson
import trio
from typing_extensions import override

from actors.node.errors import RegistryFileError
from actors.node.group.refusals import RowRefusals
from actors.node.registry.record_file import Change, RecordFile
from actors.node.registry.registry import RecordNews, Take
from fsm.group.kinds import RowRefusal, brief
from fsm.machines.registration import State
from fsm.registry.records import Forget, Keep, Row
from fsm.registry.registration import Mirror
from specs.limits.group import GROUP_BATCH
from transports.engine import contract
from transports.engine.contract import ConflictError, Current, Engine, EngineDownError, Put

__all__ = ["EngineRecords"]

_PREFIX: Final = "record/"
_WHERE: Final = Path("engine")
_ATTEMPTS: Final = 3
"""Attempts to write on top of what another node writes at the same time."""


@final
class EngineRecords(RecordFile, RecordNews):
    """Keeps rows in the engine.

    Args:
        engine: The engine.
        tidies: Returns whether this node, and no other, removes what belongs to no node.
        refusals: Are told of rows that are no records.
    """

    def __init__(
        self, engine: Engine, tidies: Callable[[str], bool], refusals: RowRefusals
    ) -> None:
        self._engine: Final = engine
        self._refusals: Final = refusals
        self._tidies: Final = tidies
        self._rows: Final = dict[str, Row]()
        self._revisions: Final = dict[str, int]()

    @override
    def is_ours(self, url: str) -> bool:
        return self._tidies(_PREFIX + url)

    @override
    def load(self) -> list[Row]:
        return list(self._rows.values())

    @override
    async def commit(self, changes: Sequence[Change]) -> None:
        """Write changes, in batches; each for itself.

        If cancelled, each may or may not have been written.

        Raises:
            RegistryFileError: The engine does not answer.
        """
        last = {_url(change): change for change in changes}
        left = list(last.values())
        for _ in range(_ATTEMPTS):
            left = [
                one
                for first in range(0, len(left), GROUP_BATCH)
                for one in await self._write(left[first : first + GROUP_BATCH])
            ]
            if not left:
                return
        raise RegistryFileError(_WHERE, "other nodes change the same records")

    async def _write(self, changes: Sequence[Change]) -> list[Change]:
        """Write changes; return those that conflict and are to be made again."""
        puts = [self._put(change) for change in changes]
        again: list[Change] = []
        for change, written in zip(changes, await self._engine.put_all(puts), strict=True):
            match written:
                case EngineDownError(reason=reason):
                    raise RegistryFileError(_WHERE, reason)
                case ConflictError(row=row):
                    is_kept = isinstance(change, Keep)
                    # What is there instead of a removal is not known until a watch brings it.
                    self._know(_about(change), row.revision if is_kept and row else None)
                    again += [change] if is_kept else []
                case int(revision):
                    self._note(_about(change), change, revision)
        return again

    def _put(self, change: Change) -> Put:
        about = _about(change)
        value = _written(change.row) if isinstance(change, Keep) else None
        return Put(_PREFIX + about, value, self._revisions.get(about, 0))

    def _note(self, about: str, change: Change, revision: int) -> None:
        if isinstance(change, Keep):
            self._rows[about] = change.row
            self._know(about, revision)
        else:
            self._rows.pop(about, None)
            self._know(about, None)

    def _know(self, about: str, revision: int | None) -> None:
        if revision is None:
            self._revisions.pop(about, None)
        else:
            self._revisions[about] = revision

    @override
    async def recover(self) -> None:
        """Try the engine.

        If cancelled, nothing has changed.

        Raises:
            RegistryFileError: It still does not answer.
        """
        await trio.lowlevel.checkpoint()
        if not self._engine.health.is_up:
            raise RegistryFileError(_WHERE, self._engine.health.problem)

    @override
    def close(self) -> None:
        """The engine is closed by whoever has opened it."""

    @override
    async def follow(self, take: Take) -> None:
        async with self._engine.watch(_PREFIX) as seen:
            async for batch in seen:
                is_current = any(isinstance(one, Current) for one in batch)
                await take(tuple(self._news(batch)), is_current)

    def _news(self, batch: Sequence[contract.Seen]) -> Iterator[Mirror]:
        for one in batch:
            if not isinstance(one, contract.Row):
                continue
            about = one.key.removeprefix(_PREFIX)
            if one.revision <= self._revisions.get(about, 0):
                continue
            if one.value is None:
                known = self._rows.get(about)
                self._note(about, Forget(about), one.revision)
                yield Mirror(about if known is None else known.url, None)
            elif (row := _read(about, one.value)) is not None:
                self._note(about, Keep(row), one.revision)
                yield Mirror(row.url, row)
            else:
                self._refusals.note(one.key, RowRefusal.MALFORMED)


def _url(change: Change) -> str:
    match change:
        case Keep(row):
            return row.url
        case Forget(url):
            return url


def _about(change: Change) -> str:
    return brief(_url(change))


def _written(row: Row) -> bytes:
    return orjson.dumps(attrs.asdict(row))


def _read(about: str, value: bytes) -> Row | None:
    try:
        fields = orjson.loads(value)
        match fields:
            case {
                "runtime": str(runtime),
                "status": str(status),
                "touched": float() | int() as touched,
                "value": dict(record),
                "number": int(number),
                "url": str(url),
            } if brief(url) == about:
                return Row(url, runtime, State(status), float(touched), record, number)
            case _:
                pass
    except ValueError:
        pass
    return None
