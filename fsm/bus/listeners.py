"""The routing core that MiniBUS, Message BUS and message node share (BUS-01..04, BUS-17).

A table of listeners and nothing else: it never parses an address, changes a message
or decides who may write. Look-up is by the literal address (I-B1); all listeners of
an address are found, in the order they came (I-B2, I-B3). The listener `*` catches
what has none of its own, on a MiniBUS only: on a Message BUS it would send messages
back to where they came from (I-B5).
"""

from enum import Enum
from typing import Final, Generic, Protocol, TypeVar, final

from fsm.effects import RowChanged
from specs.errors import SpecError
from specs.trace import Op

__all__ = ["ANY", "Named", "Router", "RoutingCore"]

ANY: Final = "*"
"""The address of the listener for everything that has no other."""

TABLE: Final = "listeners"
"""What traces call this table."""


class Named(Protocol):
    """Whatever has a name can listen; the name stands in traces."""

    @property
    def name(self) -> str:
        """The listener's name."""


L = TypeVar("L", bound=Named)


class Router(Enum):
    """Whose table it is: it decides whether `*` may be in it."""

    MINI_BUS = "minibus"
    MESSAGE_BUS = "bus"


@final
class RoutingCore(Generic[L]):
    """Who listens to which address."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._rows: dict[str, tuple[L, ...]] = {}

    def __len__(self) -> int:
        return sum(len(listeners) for listeners in self._rows.values())

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, address: str, listener: L, writer: str) -> list[RowChanged]:
        """Add a row; one that is there already stays where it is.

        Raises:
            SpecError: `*` on a Message BUS: a bug of the caller.
        """
        if address == ANY and self._router is Router.MESSAGE_BUS:
            raise SpecError("a Message BUS has no listener for everything")
        there = self._rows.get(address, ())
        if listener in there:
            return []
        self._rows[address] = (*there, listener)
        return [RowChanged(Op.ADD, TABLE, address, listener.name, writer)]

    def remove(self, address: str, listener: L | None, writer: str) -> list[RowChanged]:
        """Remove a row, or all of an address; what is not there is no error."""
        there = self._rows.get(address, ())
        gone = tuple(row for row in there if listener is None or row == listener)
        stays = tuple(row for row in there if row not in gone)
        if stays:
            self._rows[address] = stays
        else:
            self._rows.pop(address, None)
        return [RowChanged(Op.DEL, TABLE, address, row.name, writer) for row in gone]

    def remove_listener(self, listener: L, writer: str) -> list[RowChanged]:
        """Remove every row of a listener that is gone."""
        addresses = [address for address, rows in self._rows.items() if listener in rows]
        return [
            change for address in addresses for change in self.remove(address, listener, writer)
        ]

    def find(self, address: str) -> tuple[L, ...]:
        """Return the listeners of exactly this address, in registration order."""
        return self._rows.get(address, ())

    def find_routed(self, route: str, to: str) -> tuple[L, ...]:
        """Return who gets a message that was routed here: by route, by `to`, or `*`."""
        rows = self._rows
        return rows.get(route) or rows.get(to) or rows.get(ANY, ())
