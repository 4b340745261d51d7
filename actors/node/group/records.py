"""Storage of domain registry records and of used login tokens as rows of the engine.

Each node keeps all records in memory.

The node that has a runtime's session writes the runtime's records. Two nodes write the same record
only while a runtime moves, or while a record expires. So a write that meets another version is
repeated, since that version is of the same runtime; a removal is not repeated.

The row of a used token stays until the token expires.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final, TypeAlias

import attrs
import orjson
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.node.errors import RegistryFileError
from actors.node.group.trace import report_refusal
from actors.node.login.provider import UsedTokens, UsedTokensError
from actors.node.registry.record_file import RecordFile
from actors.node.registry.registry import RecordNews, Take
from fsm.group.kinds import RowRefusal, brief
from fsm.machines.registration import State
from fsm.registry.records import Change, Row
from fsm.session.assertion import SpentTokens, Use
from specs.limits.engine import LEASE_SHORTEST
from specs.limits.group import GROUP_BATCH
from specs.limits.node import CLOCK_SKEW, MAX_DOMAIN_RECORDS
from transports.engine import contract
from transports.engine.contract import ConflictError, Current, Engine, EngineDownError, Put

_PREFIX: Final = "record/"
_TOKENS: Final = "token/"
_WHERE: Final = Path("engine")
_MARK_BYTES: Final = 16
_ATTEMPTS: Final = 3
"""Attempts to write a record if other nodes write the same record."""


@attrs.frozen(slots=True)
class _Known:
    """Newest version of a record that this node knows.

    Attributes:
        row: The record; None: this node has removed it, which the watch has not reported yet.
    """

    url: str
    revision: int
    row: Row | None


_Wanted: TypeAlias = tuple[Change, int]
"""A change of a record, and the revision that its row must have before the write."""


class EngineRecords(RecordFile, RecordNews):
    """Records of the domain registry, stored as rows of the engine.

    Args:
        engine: The engine.
        tidies: Returns whether this node is the one that removes the records of no node.
        counters: Counters of rows that are invalid, or too many.

    Attributes:
        most: How many records of other nodes it takes.
    """

    most: ClassVar[int] = MAX_DOMAIN_RECORDS

    def __init__(self, engine: Engine, tidies: Callable[[str], bool], counters: Counters) -> None:
        self._engine: Final = engine
        self._counters: Final = counters
        self._tidies: Final = tidies
        self._known: Final = dict[str, _Known]()
        self._writing: Final = trio.Lock()
        self._newest = 0

    @override
    def is_ours(self, url: str) -> bool:
        return self._tidies(_PREFIX + url)

    @override
    def load(self) -> list[Row]:
        return [each.row for each in self._known.values() if each.row is not None]

    @override
    async def commit(self, changes: Sequence[Change]) -> None:
        """Write changes in batches; each change may succeed or fail on its own.

        If cancelled, each may or may not have been written.

        Raises:
            RegistryFileError: The engine does not answer.
        """
        last = {brief(change[0]): change for change in changes}
        async with self._writing:
            remaining = [(change, self._revision(about)) for about, change in last.items()]
            made: dict[str, _Known] = {}
            for _ in range(_ATTEMPTS):
                remaining = [
                    each
                    for first in range(0, len(remaining), GROUP_BATCH)
                    for each in await self._write(remaining[first : first + GROUP_BATCH], made)
                ]
                if not remaining:
                    # After a failure, the watch reports the writes that were made.
                    self._known.update(made)
                    return
        raise RegistryFileError(_WHERE, "other nodes change the same records")

    async def _write(self, wanted: Sequence[_Wanted], made: dict[str, _Known]) -> list[_Wanted]:
        """Write changes; collect the successful ones in `made`, and return those to be repeated."""
        puts = [_put(*each) for each in wanted]
        again: list[_Wanted] = []
        for (change, _), written in zip(wanted, await self._engine.put_all(puts), strict=True):
            url, kept = change
            match written:
                case EngineDownError(reason=reason):
                    raise RegistryFileError(_WHERE, reason)
                case ConflictError(row=row) if kept is not None:
                    again.append((change, 0 if row is None else row.revision))
                case ConflictError():
                    pass
                case int(revision):
                    made[brief(url)] = _Known(url, revision, kept)
        return again

    def _revision(self, about: str) -> int:
        known = self._known.get(about)
        return 0 if known is None or known.row is None else known.revision

    @override
    async def recover(self) -> None:
        """Check that the engine answers again.

        If cancelled, nothing has changed.

        Raises:
            RegistryFileError: The engine still does not answer.
        """
        await trio.lowlevel.checkpoint()
        if not self._engine.health.is_up:
            raise RegistryFileError(_WHERE, self._engine.health.problem)

    @override
    def close(self) -> None:
        """Do nothing: the engine is closed by its opener."""

    @override
    async def follow(self, take: Take) -> None:
        async with self._engine.watch(_PREFIX) as batches:
            async with self._writing:
                # A new follower knows no record, not even those of this node.
                self._known.clear()
            async for batch in batches:
                is_current = any(isinstance(each, Current) for each in batch)
                rows = [each for each in batch if isinstance(each, contract.Row)]
                async with self._writing:
                    # Wait for the answers to own writes, so that they are not taken for news.
                    news = tuple(self._news(rows))
                    self._newest = max(self._newest, *(row.revision for row in rows), 0)
                await take(news, is_current)

    @override
    async def look_up(self, url: str) -> Sequence[Change] | None:
        try:
            row = await self._engine.get(_PREFIX + brief(url))
        except EngineDownError:
            return None
        async with self._writing:
            # If the watch has passed this version, the record was removed since then. Later
            # reports of the watch wait for this lock, and reach the registry afterwards.
            is_late = row is not None and row.revision > self._newest
            return tuple(self._news([row])) if row is not None and is_late else ()

    def _news(self, rows: Sequence[contract.Row]) -> Iterator[Change]:
        for each in rows:
            about = each.key.removeprefix(_PREFIX)
            known = self._known.get(about)
            if known is not None and each.revision <= known.revision:
                if known.row is None and each.revision == known.revision:
                    del self._known[about]
            elif each.value is None:
                if known is not None:
                    del self._known[about]
                    yield known.url, None
            elif (row := self._read_row(about, each.value)) is not None:
                self._known[about] = _Known(row.url, each.revision, row)
                yield row.url, row

    def _read_row(self, about: str, value: bytes) -> Row | None:
        """Decode the record of a row; None: the row is invalid, or there are too many records."""
        row = _read(about, value)
        is_known = about in self._known
        if row is not None and (is_known or len(self._known) < self.most):
            return row
        reason = RowRefusal.MALFORMED if row is None else RowRefusal.TOO_MANY
        report_refusal(self._counters, _PREFIX + about, reason)
        return None


def _put(change: Change, expected: int) -> Put:
    url, row = change
    return Put(_PREFIX + brief(url), None if row is None else _encode_row(row), expected)


def _encode_row(row: Row) -> bytes:
    return orjson.dumps(
        {
            "url": row.url,
            "runtime": row.runtime,
            "status": row.status,
            "touched": row.touched,
            "value": orjson.Fragment(row.text),
            "number": row.number,
        }
    )


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


class EngineTokens(UsedTokens):
    """Used login tokens of a domain, stored in the engine: each opens one session at one node.

    Args:
        engine: The engine.
        wall: Returns the seconds since the epoch by which logins expire.
    """

    def __init__(self, engine: Engine, wall: Callable[[], float]) -> None:
        self._engine: Final = engine
        self._wall: Final = wall
        self._mark: Final = orjson.dumps({"by": secrets.token_hex(_MARK_BYTES)})

    @override
    def load(self) -> SpentTokens:
        return SpentTokens()

    @override
    async def keep(self, use: Use, floor: float) -> bool:
        # The clock of another node may be behind, so that the token expires later there.
        lasts = max(use.end - self._wall() + 2 * CLOCK_SKEW, LEASE_SHORTEST)
        key = f"{_TOKENS}{use.digest.hex()}"
        try:
            try:
                await self._engine.put(key, self._mark, 0, lasts)
            except ConflictError:
                # An earlier write of this node may have succeeded without an answer.
                row = await self._engine.get(key)
                return row is not None and row.value == self._mark
        except EngineDownError as exc:
            raise UsedTokensError(_WHERE, exc.reason) from exc
        return True

    @override
    def close(self) -> None:
        """Do nothing: the engine is closed by its opener."""
