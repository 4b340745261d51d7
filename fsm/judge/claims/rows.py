"""Rows of a table, while the records of a process are read."""

from collections.abc import Iterator
from typing import final

from fsm.judge.trace_line import TraceLine
from specs.trace import Kind, Op

__all__ = ["Rows"]


@final
class Rows:
    """What a table with one row for each key holds."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._rows: dict[str, str] = {}

    def take(self, record: TraceLine) -> bool:
        """Take a record; say whether it was a change of this table."""
        if record.k != Kind.TABLE or record.table != self._table:
            return False
        if record.op == Op.DEL:
            self._rows.pop(record.key or "", None)
        else:
            self._rows[record.key or ""] = record.val or ""
        return True

    def words(self, key: str) -> list[str]:
        """Return what a row holds, word by word."""
        return self._rows.get(key, "").split()

    def all(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each row, word by word."""
        return ((key, value.split()) for key, value in self._rows.items())
