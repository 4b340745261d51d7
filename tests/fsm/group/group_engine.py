"""An engine for tests of group cores: rows with revisions, requests that take their time."""

import attrs

from fsm.group.rows import Put, RowsCore
from tests.support.link_calls import Call, Calls

tell = Calls(RowsCore)


@attrs.define
class GroupEngine:
    """Rows by compare-and-set, and what a watch tells of them.

    Attributes:
        rows: Value and revision of each row.
        log: Every version there ever was, in order.
    """

    rows: dict[str, tuple[bytes, int]] = attrs.field(factory=dict)
    log: list[Call] = attrs.field(factory=list)

    def revision(self, key: str) -> int:
        """The revision of a row; 0: there is none."""
        return self.rows.get(key, (b"", 0))[1]

    def write(self, key: str, value: bytes | None) -> int:
        """Write or delete a row; return the revision."""
        revision = len(self.log) + 1
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value, revision
        self.log.append(tell.take_row(key, value, revision))
        return revision

    def make(self, put: Put) -> Call:
        """Make a write, or refuse it."""
        if self.revision(put.key) == put.expected:
            return tell.take_written(put.number, self.write(put.key, put.value))
        return tell.take_conflict(put.number, *self.rows.get(put.key, (None, put.expected)))

    def snapshot(self, prefix: str = "") -> list[Call]:
        """What a watch tells that begins now, in the order of revisions."""
        rows = [
            tell.take_row(key, *row) for key, row in self.rows.items() if key.startswith(prefix)
        ]
        return sorted(rows, key=lambda row: row.revision)
