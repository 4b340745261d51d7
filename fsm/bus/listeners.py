"""The routing table that MiniBUS, Message BUS and message node share (BUS-01..04, BUS-17).

The core is a table of listeners and nothing else. It never parses an address, changes a
message or decides on permissions. The look-up is by the literal address (I-B1) and finds
all listeners of an address in the order of their registration (I-B2, I-B3). The listener
`*` gets the messages that have no listener of their own. Only a MiniBUS has one: on a
Message BUS it would send messages back to where they came from (I-B5).
"""

from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from fsm.effects import RowChanged
from specs.errors import SpecError
from specs.trace import Op

ANY: Final = "*"
"""The address of the listener for everything that has no other."""

TABLE: Final = "listeners"
"""The name of this table in traces."""


class Named(Protocol):
    """A listener: anything that has a name, which stands in traces."""

    @property
    def name(self) -> str:
        """The listener's name."""


L = TypeVar("L", bound=Named)


class Router(Enum):
    """The kind of router: it decides whether `*` may be in its table."""

    MINI_BUS = "minibus"
    MESSAGE_BUS = "bus"


class RoutingCore(Generic[L]):
    """The listeners of each address."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._rows: dict[str, tuple[L, ...]] = {}

    def __len__(self) -> int:
        return sum(len(listeners) for listeners in self._rows.values())

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, address: str, listener: L, writer: str) -> list[RowChanged]:
        """Add a row; a row that is there already keeps its place. Idempotent.

        Args:
            address: The address to listen to, or `*`.
            listener: The component that gets its messages.
            writer: Name of the component that changes the table, for the trace.

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
        """Remove rows of an address. Idempotent.

        Args:
            address: The address of the rows.
            listener: The listener whose row goes; None: all rows of the address.
            writer: Name of the component that changes the table, for the trace.
        """
        there = self._rows.get(address, ())
        gone = tuple(row for row in there if listener is None or row == listener)
        stays = tuple(row for row in there if row not in gone)
        if stays:
            self._rows[address] = stays
        else:
            self._rows.pop(address, None)
        return [RowChanged(Op.DEL, TABLE, address, row.name, writer) for row in gone]

    def remove_listener(self, listener: L, writer: str) -> list[RowChanged]:
        """Remove every row of a listener. Idempotent.

        Args:
            listener: The listener, which is gone.
            writer: Name of the component that changes the table, for the trace.
        """
        addresses = [address for address, rows in self._rows.items() if listener in rows]
        return [
            change for address in addresses for change in self.remove(address, listener, writer)
        ]

    def find(self, address: str) -> tuple[L, ...]:
        """Return the listeners of exactly this address, in registration order."""
        return self._rows.get(address, ())

    def find_routed(self, route: str, to: str) -> tuple[L, ...]:
        """Return the listeners of the route; if none, those of `to`; if none, those of `*`.

        Args:
            route: Address that the message was routed to.
            to: Receiver of the message.
        """
        rows = self._rows
        return rows.get(route) or rows.get(to) or rows.get(ANY, ())
