"""The addresses of the parts of a node: one live table, written by the bus (MN-09).

A part of the node that answers on the spot, inside the bus's task.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from functools import partial
from typing import Final, final

from typing_extensions import override

from actors.kit.supervision.actor import ActorRef
from actors.node.errors import AddressTakenError
from actors.node.messages import Attached, BusMessage, Component, Detached
from actors.node.trace import ComponentTrace
from fsm.effects import RowChanged
from specs.message import Message
from specs.trace import Op

__all__ = ["Components", "LocalService", "attach", "detach"]


class LocalService(ABC):
    """Answers requests at one address of the node, without waiting for anything."""

    @abstractmethod
    def receive(self, message: Message, by: str) -> Message | None:
        """Answer a request that came over the session of `by`; None: it is answered later.

        Args:
            message: The message.
            by: Address of the session's runtime.

        Raises:
            BadMessageError: Its body is not what the catalogue says.
        """


_TABLE: Final = "components"
_WRITER: Final = "bus"


@final
class Components(Collection[str]):
    """The addresses of a node's parts; owned by the bus's task.

    An address is a part's from when the node is made, also while that part is being
    started again: a request to it then fails, and its address counts as owned.

    Args:
        declared: Addresses of the parts that the node is to have.
    """

    def __init__(self, declared: Collection[str], trace: ComponentTrace) -> None:
        self._declared = frozenset(declared)
        self._trace = trace
        self._services: dict[str, str] = {}
        self._attached: dict[str, Component] = {}

    @override
    def __contains__(self, address: object) -> bool:
        return address in self._declared or address in self._attached

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._declared | self._attached.keys())

    @override
    def __len__(self) -> int:
        return len(self._declared | self._attached.keys())

    def get(self, address: str) -> Component | None:
        """Return the actor that answers at an address now; None: no actor, or the bus itself."""
        return self._attached.get(address)

    def values(self) -> tuple[Component, ...]:
        """Return every actor that answers at an address."""
        return tuple(self._attached.values())

    def serve(self, address: str, name: str) -> None:
        """Note that the bus's task itself answers at an address.

        Args:
            address: The address.
            name: The name.
        """
        self._services[address] = name
        self._row(Op.ADD, address, name)

    def attach(self, address: str, component: Component) -> None:
        """Let an actor answer at an address; nothing if it does.

        Args:
            address: The address.
            component: The actor.

        Raises:
            AddressTakenError: Another part answers there.
        """
        held = self._attached.get(address)
        if held is component:
            return
        if held is not None or address in self._services:
            holder = self._services[address] if held is None else held.name
            raise AddressTakenError(address, component.name, holder)
        self._attached[address] = component
        self._row(Op.ADD, address, component.name)

    def detach(self, address: str, component: Component) -> None:
        """Let an actor answer there no longer; nothing if it does not.

        Args:
            address: The address.
            component: The actor.
        """
        if self._attached.get(address) is component:
            del self._attached[address]
            self._row(Op.DEL, address, component.name)

    def close(self) -> None:
        """Leave no row behind: the bus ends, and its successor begins anew."""
        for address, component in tuple(self._attached.items()):
            self.detach(address, component)
        for address, name in self._services.items():
            self._row(Op.DEL, address, name)
        self._services.clear()

    def _row(self, op: Op, address: str, name: str) -> None:
        self._trace.row(RowChanged(op, _TABLE, address, name, _WRITER))


async def attach(bus: ActorRef[BusMessage], address: str, component: Component) -> None:
    """Have an actor answer at an address from now on.

    Args:
        bus: Message bus of the node.
        address: The address.
        component: The actor.

    Raises:
        AddressTakenError: Another part answers there.
        ActorStoppedError: The bus is gone.
    """
    error = await bus.ask(partial(Attached, address, component))
    if error is not None:
        raise error


def detach(bus: ActorRef[BusMessage], address: str, component: Component) -> None:
    """Have an actor answer there no longer; a bus that is gone needs no notice.

    Args:
        bus: Message bus of the node.
        address: The address.
        component: The actor.
    """
    bus.try_tell(Detached(address, component))
