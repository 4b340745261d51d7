"""Stored rows of data objects, which outlive the process, and their restoration (SYN-25, SYN-28).

If its reporter wants an object stored, everything is stored that an observer could have seen or
relies on: the value and version, the observers with their sync managers, the allowed observers. A
`ReportedObject` names each row to write before it sends a message that relies on it. `Rest` is the
content of a file: the result of all changes that were written.

Each class of rows is one table of the file, and its fields are the columns; the first columns, as
many as `KEYS` says, identify the row.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

import attrs

from specs.bodies.object import DataObject
from specs.jsonvalue import JsonObject


@attrs.frozen(slots=True)
class ObjectKept:
    """Stored value and version of an object.

    Attributes:
        is_public: Whether every hyperty may observe it.
    """

    url: str
    value: DataObject
    is_public: bool = attrs.field(default=False, converter=bool)


@attrs.frozen(slots=True)
class ObserverKept:
    """Stored observer of an object, and the sync manager that subscribed it.

    Attributes:
        lease: Duration of its subscription in seconds; None: no renewal is needed.
    """

    url: str
    observer: str
    manager: str
    lease: int | None = None


@attrs.frozen(slots=True)
class GuestKept:
    """Stored decision of a reporter: an observer is allowed (`may`) or expelled."""

    url: str
    guest: str
    may: bool = attrs.field(converter=bool)


@attrs.frozen(slots=True)
class ChildrenKept:
    """Stored children of an object, in the JSON form of the store."""

    url: str
    value: JsonObject


@attrs.frozen(slots=True)
class CopyKept:
    """Stored copy of another runtime's object at an observer of this runtime."""

    url: str
    observer: str
    version: int
    value: JsonObject


@attrs.frozen(slots=True)
class HomeKept:
    """Stored address of a hyperty of this runtime, which it gets again after a restart.

    Attributes:
        descriptor: Catalogue address by which the hyperty is recognised.
    """

    url: str
    descriptor: str


@attrs.frozen(slots=True)
class SessionKept:
    """Stored token of the session with the node of a domain."""

    domain: str
    token: str = attrs.field(repr=False)


Row: TypeAlias = (
    ObjectKept | ObserverKept | GuestKept | ChildrenKept | CopyKept | HomeKept | SessionKept
)

_Key: TypeAlias = tuple[str, ...]

KEYS: Final[dict[type[Row], int]] = {
    ObjectKept: 1,
    ObserverKept: 2,
    GuestKept: 2,
    ChildrenKept: 1,
    CopyKept: 2,
    HomeKept: 1,
    SessionKept: 1,
}
"""Number of leading fields that identify a row, by class. Objects precede the rows about them."""

ABOUT_OBJECT: Final = (ObserverKept, GuestKept, ChildrenKept)
"""Classes of rows that belong to an object: stored and removed together with the object."""


@attrs.frozen(slots=True)
class Forgotten:
    """Instruction to remove a stored row; with an object, all rows about the object are removed."""

    kind: type[Row]
    key: _Key


Keep: TypeAlias = Row | Forgotten

_R = TypeVar(
    "_R", ObjectKept, ObserverKept, GuestKept, ChildrenKept, CopyKept, HomeKept, SessionKept
)


class Rest:
    """All rows that one runtime has stored, held in memory."""

    def __init__(self) -> None:
        # Rows by class, by the first field of the key, and by the whole key.
        self._rows: Final[dict[type[Row], dict[str, dict[_Key, Row]]]] = {kind: {} for kind in KEYS}

    def __iter__(self) -> Iterator[Row]:
        tables = self._rows.values()
        return (row for table in tables for rows in table.values() for row in rows.values())

    def rows(self, kind: type[_R], first: str | None = None) -> list[_R]:
        """Return the rows of a class; `first` selects those whose key begins with that value."""
        table = self._rows[kind]
        groups = table.values() if first is None else (table.get(first, {}),)
        return [row for rows in groups for row in rows.values() if isinstance(row, kind)]

    def find(self, kind: type[_R], *key: str) -> _R | None:
        """Return the row with a key, or None if it is not stored."""
        row = self._rows[kind].get(key[0], {}).get(key)
        return row if isinstance(row, kind) else None

    def follow(self, changes: Iterable[Keep]) -> None:
        """Add and remove rows; rows about an object that is not stored are ignored."""
        for change in changes:
            if isinstance(change, Forgotten):
                self._forget(change)
            elif not isinstance(change, ABOUT_OBJECT) or change.url in self._rows[ObjectKept]:
                key = attrs.astuple(change, recurse=False)[: KEYS[type(change)]]
                self._rows[type(change)].setdefault(key[0], {})[key] = change

    def _forget(self, change: Forgotten) -> None:
        first, table = change.key[0], self._rows[change.kind]
        table.get(first, {}).pop(change.key, None)
        if not table.get(first):
            table.pop(first, None)
        for kind in ABOUT_OBJECT if change.kind is ObjectKept else ():
            self._rows[kind].pop(first, None)

    @property
    def tenants(self) -> set[str]:
        """The hyperties that report a stored object or have a stored copy."""
        reporters = {each.value.reporter for each in self.rows(ObjectKept)}
        return reporters | {each.observer for each in self.rows(CopyKept)}
