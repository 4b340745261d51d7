"""The names of runtimes that belong to users, in the engine: each node knows all of them."""

from collections.abc import Iterator, Sequence
from typing import Final, final

import orjson
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.node.group.refusals import RowRefusals
from actors.node.state.writer import HeldLink, Store
from fsm.group.kinds import RowRefusal
from fsm.session.runtime_names import Change, NameForgotten, NameKept, Owner
from specs.limits.group import GROUP_BATCH
from transports.engine.contract import (
    ConflictError,
    Current,
    Engine,
    EngineDownError,
    Put,
    Row,
    Seen,
)

__all__ = ["EngineNames", "NameWriter"]

_log = get_logger("actors.node")

_PREFIX: Final = "name/"


@final
class EngineNames:
    """What a node knows of the rows of names.

    Args:
        engine: The engine.
        refusals: Are told of rows that are no names.
    """

    prefix: Final = _PREFIX

    def __init__(self, engine: Engine, refusals: RowRefusals) -> None:
        self._engine: Final = engine
        self._refusals: Final = refusals
        self._revisions: Final = dict[str, int]()

    def news(self, batch: Sequence[Seen]) -> Iterator[Change]:
        """Yield what other nodes have changed.

        Args:
            batch: A batch of a watch.
        """
        for one in batch:
            if isinstance(one, Current):
                continue
            runtime = one.key.removeprefix(_PREFIX)
            if one.revision <= self._revisions.get(runtime, 0):
                continue
            self._know(runtime, one)
            change = _read(runtime, one)
            if change is None:
                self._refusals.note(one.key, RowRefusal.MALFORMED)
            else:
                yield change

    async def write(self, changes: Sequence[Change]) -> None:
        """Write changes, each for itself; one that conflicts is another node's to decide.

        If cancelled, each may or may not have been written.

        Raises:
            EngineDownError: The engine does not answer.
        """
        puts = [
            Put(f"{_PREFIX}{one.runtime}", _written(one), self._revisions.get(one.runtime, 0))
            for one in changes
        ]
        written = await self._engine.put_all(puts)
        for change, put, answer in zip(changes, puts, written, strict=True):
            match answer:
                case EngineDownError():
                    raise answer
                case ConflictError():
                    # The watch brings what is there; that it was removed it may have said before.
                    if answer.row is None:
                        self._revisions.pop(change.runtime, None)
                case int(revision):
                    self._know(change.runtime, Row(put.key, put.value, revision))

    def _know(self, runtime: str, row: Row | None) -> None:
        if row is None or row.value is None:
            self._revisions.pop(runtime, None)
        else:
            self._revisions[runtime] = row.revision


@final
class NameWriter(Actor[Store]):
    """Writes the names that the bus has changed, and lets the answers go.

    If the engine cannot be reached, a name is written with its next change only: meanwhile it is
    known at this node.

    Args:
        names: The rows.
    """

    def __init__(self, names: EngineNames) -> None:
        self._names: Final = names
        self._changes: dict[str, Change] = {}
        self._links: list[HeldLink] = []

    @override
    async def handle(self, message: Store) -> None:
        for change in message.changes:
            if isinstance(change, NameKept | NameForgotten):
                self._changes[change.runtime] = change
        self._links += message.links

    @override
    async def drained(self) -> None:
        changes, self._changes = list(self._changes.values()), {}
        links, self._links = self._links, []
        try:
            for first in range(0, len(changes), GROUP_BATCH):
                await self._names.write(changes[first : first + GROUP_BATCH])
        except EngineDownError as exc:
            _log.error("names cannot be written", why=exc.reason)
        finally:
            for link in links:
                link.release()


def _written(change: Change) -> bytes | None:
    if isinstance(change, NameForgotten):
        return None
    left = None if change.left == float("inf") else change.left
    return orjson.dumps({
        "issuer": change.owner.issuer, "user": change.owner.user, "left": left,
        "released": change.is_released,
    })  # fmt: skip


def _read(runtime: str, row: Row) -> Change | None:
    if row.value is None:
        return NameForgotten(runtime)
    try:
        fields = orjson.loads(row.value)
    except orjson.JSONDecodeError:
        return None
    match fields:
        case {
            "issuer": str(issuer),
            "user": str(user),
            "left": float() | int() | None as left,
            "released": bool(is_released),
        }:
            end = float("inf") if left is None else float(left)
            return NameKept(runtime, Owner(issuer, user), end, is_released)
        case _:
            return None
