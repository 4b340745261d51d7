"""Who listens to what at each router of a process, while its records are read."""

from collections.abc import Sequence
from typing import Final, final

from fsm.judge.trace_line import TraceLine
from specs.trace import Kind, Op

__all__ = ["Listeners"]

_TABLE: Final = "listeners"
_ALL: Final = "*"
_NOBODY: Final[Sequence[str]] = ()


@final
class Listeners:
    """The `listeners` tables of one process, one for each router that tells of its own."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, list[str]]] = {}
        self._unclear: dict[tuple[str, str], set[str]] = {}

    def take(self, record: TraceLine) -> bool:
        """Take a record; say whether it was a change of these tables."""
        if record.k != Kind.TABLE or record.table != _TABLE:
            return False
        table = self._tables.setdefault(record.actor, {})
        row = table.setdefault(record.key or "", [])
        listener = record.val or ""
        if record.op == Op.ADD:
            row.append(listener)
        elif listener in row:
            self._remove(record, row, listener)
        return True

    def _remove(self, record: TraceLine, row: list[str], listener: str) -> None:
        """Remove one of a name: which, a record does not tell if there are others."""
        row.remove(listener)
        unclear = self._unclear.setdefault((record.actor, record.key or ""), set())
        if listener in row:
            unclear.add(listener)
        else:
            unclear.discard(listener)

    def is_in_order(self, router: str, address: str) -> bool:
        """Whether it is known in which order those came who listen to an address."""
        return not self._unclear.get((router, address))

    def knows(self, router: str) -> bool:
        """Whether a router tells of its table; one in another process does not."""
        return router in self._tables

    def of(self, router: str, address: str) -> Sequence[str]:
        """Return who listens to an address, in the order they were added."""
        return self._tables.get(router, {}).get(address, _NOBODY)

    def of_all(self, router: str) -> Sequence[str]:
        """Return who listens to everything."""
        return self.of(router, _ALL)

    def has(self, router: str, listener: str) -> bool:
        """Whether somebody listens to any one address."""
        table = self._tables.get(router, {})
        return any(listener in row for address, row in table.items() if address != _ALL)
