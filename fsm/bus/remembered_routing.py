"""What a message node has decided, remembered until one of its tables changes.

Most messages of a session have the ends of earlier ones. What `NodeRouting` decides of them depends
on type, ends, session and tables alone, unless a body claims more: then it is asked again.
"""

from collections.abc import Collection
from typing import Final, TypeAlias, final

from fsm.bus.node_routing import LOOP, Admission, Admitted, NodeRouting, Route, ToRuntimes
from fsm.limits.memory import Memory
from fsm.registry.node_rights import CHILDREN
from specs.addresses.address import is_node
from specs.limits.bus import REMEMBERED, REMEMBERED_BYTES
from specs.message import DURABLE, Message, MessageType
from specs.routing import is_routing_loop

_CLAIMS: Final = frozenset({"source", DURABLE})
"""Fields of a body that count when a message is admitted."""

_Ends: TypeAlias = tuple[str, MessageType, str, str]
_Target: TypeAlias = tuple[str | None, MessageType, str]


@final
class RememberedRouting:
    """The decisions of one `NodeRouting`; whoever changes a table calls `forget`.

    Only what is common and small is remembered: messages that may pass, and routes to one session.
    A full memory begins anew.

    Args:
        routing: Decides.
        components: Addresses of the node's own parts, which may change at any time.
    """

    def __init__(self, routing: NodeRouting, components: Collection[str]) -> None:
        self._routing: Final = routing
        self._components: Final = components
        self._admitted: Final = Memory[_Ends, Admitted](REMEMBERED, REMEMBERED_BYTES)
        self._routes: Final = Memory[_Target, ToRuntimes](REMEMBERED, REMEMBERED_BYTES)

    def forget(self) -> None:
        """Forget everything: a table has changed."""
        self._admitted.clear()
        self._routes.clear()

    def admit(self, message: Message, by: str) -> Admission:
        """Return what `NodeRouting.admit` returns.

        Args:
            message: The message as it came.
            by: Address of the runtime whose session brought it.
        """
        if not _CLAIMS.isdisjoint(message.body):
            return self._routing.admit(message, by)
        ends = (by, message.type, message.from_, message.to)
        known = self._admitted.get(ends)
        if known is not None:
            return LOOP if "via" in message.body and is_routing_loop(message) else known
        admission = self._routing.admit(message, by)
        # Of a child the name counts, too, and of a node the parts of this one.
        is_by_ends = CHILDREN not in message.to and not is_node(by)
        if is_by_ends and isinstance(admission, Admitted):
            self._admitted.keep(ends, admission, (*ends, *admission.bind))
        return admission

    def route(self, message: Message, by: str | None) -> Route:
        """Return what `NodeRouting.route` returns.

        Args:
            by: Address of the runtime whose session brought it; None: the node itself made it.
        """
        target = (by, message.type, message.to)
        known = self._routes.get(target)
        if known is not None and message.to not in self._components:
            return known
        route = self._routing.route(message, by)
        if isinstance(route, ToRuntimes) and len(route.runtimes) == 1 and not route.nodes:
            self._routes.keep(target, route, (by or "", message.to, *route.runtimes))
        return route
