"""Helpers of the claims: properties of trace records, and tables rebuilt from records."""

from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from itertools import islice
from typing import ClassVar, Final, TypeAlias, TypeVar

from fsm.judge.trace_line import TraceLine
from specs.addresses.address import last_segment
from specs.child import CHILDREN, parent_of
from specs.jsonvalue import Json
from specs.message import Message, MessageType
from specs.message_catalogue import match_form
from specs.reply_code import FIRST_FINAL
from specs.trace import Kind, Op

RECENT: Final = 20_000
"""Number of messages that a claim remembers; older ones are treated as unknown (our choice)."""

_ALL: Final = "*"
_NOBODY: Final[Sequence[str]] = ()


class Listeners:
    """Listeners by address of each router of a process, rebuilt from records of table changes."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, list[str]]] = {}
        self._unclear: dict[tuple[str, str], set[str]] = {}

    def take(self, record: TraceLine) -> None:
        """Apply a recorded change of a listeners table."""
        table = self._tables.setdefault(record.actor, {})
        listener = record.val or ""
        if record.op == Op.ADD:
            table.setdefault(record.key or "", []).append(listener)
        elif listener in (row := table.get(record.key or "", [])):
            self._remove(record, row, listener)

    def _remove(self, record: TraceLine, row: list[str], listener: str) -> None:
        """Remove one listener of an address; several equal ones make the order unclear."""
        row.remove(listener)
        key = record.actor, record.key or ""
        if listener in row:
            self._unclear.setdefault(key, set()).add(listener)
        elif row:
            self._unclear.get(key, set()).discard(listener)
        else:
            del self._tables[record.actor][key[1]]
            self._unclear.pop(key, None)

    def is_in_order(self, router: str, address: str) -> bool:
        """Return whether the order of the listeners of an address is known.

        Args:
            router: The bus.
            address: The address.
        """
        return not self._unclear.get((router, address))

    def knows(self, router: str) -> bool:
        """Return whether a router's listeners are recorded in this trace."""
        return router in self._tables

    def of(self, router: str, address: str) -> Sequence[str]:
        """Return the listeners of an address, in the order in which they were added.

        Args:
            router: The bus.
            address: The address.
        """
        return self._tables.get(router, {}).get(address, _NOBODY)

    def of_all(self, router: str) -> Sequence[str]:
        """Return the listeners to all addresses at a router."""
        return self.of(router, _ALL)

    def has(self, router: str, listener: str) -> bool:
        """Return whether a listener is registered for any address at a router.

        Args:
            router: The bus.
            listener: The listener.
        """
        table = self._tables.get(router, {})
        return any(listener in row for address, row in table.items() if address != _ALL)


_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Recent(dict[_K, _V]):
    """Facts about recent messages, by key; `forget` keeps the keys that were added last.

    A judge calls `forget` now and then, so its memory does not grow with the trace.
    """

    limit: ClassVar[int] = RECENT

    def add(self, key: _K, value: _V) -> bool:
        """Add a key with a value; return False if the key is known already."""
        if key in self:
            return False
        self[key] = value
        return True

    def forget(self) -> None:
        """Remove the oldest keys if the table has twice its intended size."""
        if len(self) >= 2 * self.limit:
            for key in list(islice(self, len(self) - self.limit)):
                del self[key]


class Lasting(Recent[_K, _V]):
    """Like `Recent`, but larger, for claims that would report a forgotten message as violation."""

    limit = 10 * RECENT


class Rows(dict[str, Sequence[str]]):
    """Table of a process, rebuilt from records of its changes; each row is split into words.

    Attributes:
        before: The former words of the row that was changed last.
    """

    before: Sequence[str] = _NOBODY

    def take(self, record: TraceLine) -> None:
        """Apply a recorded change of this table."""
        key = record.key or ""
        self.before = self.words(key)
        if record.op == Op.DEL:
            self.pop(key, None)
        else:
            self[key] = (record.val or "").split()

    def words(self, key: str) -> Sequence[str]:
        """Return the words of the row with a key; empty: no such row."""
        return self.get(key, _NOBODY)


_SHARED: Final = frozenset({"changes", "subscription"})
"""Last segments of addresses that several components may listen to."""

BUS: Final = "bus"
"""Component name of the router: a runtime's Message BUS, or the bus of a node."""

MANAGER: Final = "sm"

SYNC_MANAGERS: Final = frozenset({"sync-manager", "sm"})
"""Names under which the sync manager listens: in Python programs, and in web pages."""

MINI_BUS: Final = "minibus:"
"""Prefix of the listener name of a MiniBUS, which connects a sandbox to the bus."""

LISTENERS: Final = "listeners"
SESSION: Final = "session"

LASTING: Final = frozenset({"open", "detached"})
"""States of a session that has not ended."""

LINK_MACHINE: Final = "p2p_connection"
LIVE: Final = "live"
RESPONSE: Final = MessageType.RESPONSE.value

SLACK: Final = 5.0
"""Tolerated delay in seconds for a loaded machine (our choice)."""

_TOLERANCE: Final = 0.001
"""Tolerated error in seconds when a clock is read (our choice)."""

_DRIFT: Final = 0.0002
"""Largest relative error of a clock that is adjusted (our choice; four times that of a quartz)."""

Key: TypeAlias = tuple[str, str, int]
"""Identity of a request: sender, receiver and id."""


def has_waited(seconds: float, wait: float) -> bool:
    """Return whether a duration is as long as a required wait, within the accuracy of clocks.

    Args:
        seconds: The time that has passed.
        wait: The time to wait, in seconds.
    """
    return seconds >= wait * (1 - _DRIFT) - _TOLERANCE


def split(key: str | None) -> list[str]:
    """Return the parts of a record's key or value, which are joined by `|`."""
    return (key or "").split("|")


def runtime_of_session(step: TraceLine) -> str:
    """Return the runtime of the session that made a recorded transition."""
    _, runtime, *_ = [*split(step.key), ""]
    return runtime


def is_answer(record: TraceLine) -> bool:
    """Return whether a recorded message is an answer."""
    return record.type == RESPONSE


def is_final(record: TraceLine) -> bool:
    """Return whether a recorded message is an answer that ends its request."""
    return record.type == RESPONSE and (record.code or 0) >= FIRST_FINAL


@lru_cache(maxsize=4096)
def is_shared(to: str) -> bool:
    """Return whether components of several runtimes may listen to one address (C-81)."""
    return last_segment(to) in _SHARED or "/children/" in to


@lru_cache(maxsize=4096)
def is_p2p_end(address: str) -> bool:
    """Return whether an address belongs to a P2P stub, or to a handler's side of one link."""
    return match_form("PX", address) is not None


def of_creator(record: TraceLine) -> bool:
    """Return whether a recorded message about a child object was sent by the child's creator."""
    to = record.to or ""
    return CHILDREN in to and not is_answer(record) and record.from_ != parent_of(to)


def heard_by(record: TraceLine, listeners: Collection[str]) -> set[str]:
    """Return the listeners of a message's target that should get the message.

    A message of a creator about its child that came over a link is for the sync manager only; no
    link brings it to others, since the object's reporter distributes it.

    Args:
        record: The admission of the message.
        listeners: All listeners of its target.
    """
    if not of_creator(record):
        return set(listeners)
    if is_p2p_end(record.by or ""):
        return set(SYNC_MANAGERS.intersection(listeners))
    return {name for name in listeners if not is_p2p_end(name.removeprefix(MINI_BUS))}


@lru_cache(maxsize=4096)
def is_connection(address: str) -> bool:
    """Return whether an address belongs to a handler's side of one link."""
    return match_form("PC", address) is not None


def is_p2p_link(record: TraceLine) -> bool:
    """Return whether a record says that a direct link was opened or closed."""
    return record.k == Kind.LINK and record.kind == "p2p"


def key_of(record: TraceLine) -> Key:
    """Return sender, receiver and id of the request that a message is, or that it answers."""
    from_, to = record.from_ or "", record.to or ""
    ends = (to, from_) if record.type == RESPONSE else (from_, to)
    return *ends, record.id or 0


def expects_answer(record: TraceLine) -> bool:
    """Return whether a recorded message is a request that needs exactly one final answer."""
    return _expects_answer(record.type or "", record.to or "")


@lru_cache(maxsize=4096)
def _expects_answer(kind: str, to: str) -> bool:
    is_verb = kind in set(MessageType)
    return is_verb and Message(1, MessageType(kind), "", to).is_request


def addresses_in(value: Json) -> list[str]:
    """Return the addresses in a list of a message body; empty if the value is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
