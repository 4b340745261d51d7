"""The other nodes of a domain, as one node uses them.

`OtherNodes` is the interface, and its implementation for the only node of a domain, which stores
its sessions and names in its own file and has no logs. `actors.node.group.group.Group` implements
it for a node with others. The task of the bus makes all calls, and no call waits.
"""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from actors.node.links.connection import Connection
from actors.node.messages import RuntimeLeft
from actors.node.session.session import Session
from actors.node.state.file import SessionRow
from actors.node.tables import TableChange
from fsm.effects import Refused
from fsm.session.node_session_io import OutboundMessage
from fsm.session.runtime_names import Change as NameChange
from fsm.session.runtime_names import NameForgotten, NameKept
from specs.addresses.address import is_node
from specs.message import Message, is_durable
from specs.reply_code import Code, DropReason

if TYPE_CHECKING:
    from actors.node.session.exchange import Exchange
    from fsm.group.catalogue import CatalogueRow
    from fsm.group.policies import PolicyRow

Change: TypeAlias = "TableChange | Session | NameChange | PolicyRow | CatalogueRow"
"""A change that other nodes have to know.

A change of a table, a session to be stored, a name, policies, or a catalogue file of the domain.
"""

_NO_LOGS: Final = "the node keeps no messages: it has no engine"


class OtherNodes:
    """The other nodes of a domain; this class serves a node that has none.

    Args:
        exchange: The sessions of this node.

    Attributes:
        is_alone: Whether the domain has one node, which stores only its lasting sessions.
    """

    is_alone = True

    def __init__(self, exchange: "Exchange") -> None:
        self.exchange: Final = exchange

    # ---- calls to the other nodes

    def objection(self, runtime: str | None = None) -> Refused | None:
        """Return why nothing may be changed now; None: changes are permitted.

        Args:
            runtime: A runtime that requests a session here; None: any change.
        """

    def publish(self, change: Change, link: Connection | None = None) -> None:
        """Store a change, or send it to the other nodes.

        Args:
            change: The change.
            link: A link whose answer waits until the change is stored; None: no link.
        """
        match change:
            case Session():
                if (kept := change.core.kept) is not None:
                    self.exchange.note(SessionRow(change.stub, kept, change.identity), link)
            case NameKept() | NameForgotten():
                self.exchange.note(change, link)
            case _:
                pass

    def send(
        self,
        entry: OutboundMessage,
        by: str | None,
        runtimes: Sequence[str],
        nodes: Collection[str] = (),
    ) -> Sequence[str]:
        """Send a message to other nodes; return the receivers that are not at other nodes.

        A message that cannot be sent is answered, or counted.

        Args:
            entry: The message.
            by: Runtime whose session brought it; None: this node itself made it.
            runtimes: The receiving runtimes.
            nodes: The nodes whose subscribers get the message.
        """
        del entry, by, nodes
        return runtimes

    def look_up(self, message: Message, by: str | None) -> bool:
        """Hold a message until its receiver is looked up, then route it again.

        A message that cannot wait is answered, or counted.

        Args:
            message: The message.
            by: Runtime whose session brought it; None: this node itself made it.

        Returns:
            Whether the message waits; False: no other node can know the receiver.
        """
        del message, by
        return False

    def keep(self, message: Message, by: str | None) -> bool:
        """Take over an admitted message that is durable, was kept as such, or has to wait.

        Args:
            message: The message.
            by: Runtime whose session brought it; None: this node itself made it.

        Returns:
            False: the caller has to route the message.
        """
        is_for_log = is_durable(message) and self.log_of(message) not in {None, by}
        if is_for_log:
            self.exchange.undeliverable(message, Code.FORBIDDEN, _NO_LOGS, DropReason.DENIED)
        return is_for_log

    def log_of(self, message: Message) -> str | None:
        """Return the runtime whose log has to keep a durable message.

        Another domain has its own logs.
        """
        # Not the log of a subscriber: a returning runtime subscribes to its own addresses.
        owner = self.exchange.tables.routing.owner_of(message.to)
        return None if owner is None or is_node(owner) else owner

    def follow(self, session: Session) -> None:
        """Note that a session has got or lost a link; its log is sent over a link only."""

    def take_up(self, runtime: str) -> Session | None:
        """Load the session that a runtime has at another node into this node, as detached.

        The session stays the other node's until it is published here; before that it can be
        returned.

        Args:
            runtime: Address of the runtime.

        Returns:
            The session; None: no other node has a session that can move.
        """

    def end(self, left: RuntimeLeft, *, is_resumable: bool) -> None:
        """Release the possessions of a session that is over here.

        Args:
            left: The runtime.
            is_resumable: Whether another node may resume the session, with all that it owns.
        """
        del is_resumable
        self.exchange.tables.release(left.runtime, left.why)
        self.exchange.notify_left(left)

    # ---- turns of the bus, and its end

    @property
    def is_member(self) -> bool:
        """Whether this node may serve runtimes now."""
        return True

    @property
    def is_settled(self) -> bool:
        """True if nothing waits for the engine."""
        return True

    def catch_up(self) -> None:
        """Process changes that arrived without a call, before the turn of the bus goes on."""

    def settle(self) -> None:
        """Send the changes of this turn of the bus."""

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return math.inf

    def tick(self) -> None:
        """Do the work that is due."""

    def leave(self) -> bool:
        """Begin to leave the domain; return whether another node can take the sessions."""
        return False

    def close(self) -> None:
        """Forget the sessions of other nodes, and their addresses. Idempotent."""
