"""Interface to the other nodes of a domain, as one node uses it.

`OtherNodes` is the interface, and its implementation for a domain with one node: sessions and names
are stored in a file, and no durable messages are kept. `actors.node.group.group.Group` is the
implementation for several nodes. The task of the bus makes all calls; none waits.
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
    """Interface to the other nodes of a domain; this class serves the only node of a domain.

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
        """Return why nothing may be changed at present; None: changes are permitted.

        Args:
            runtime: A runtime that requests a session here; None: any change.
        """

    def publish(self, change: Change, link: Connection | None = None) -> None:
        """Store a change, and send it to the other nodes.

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
        """Send a message to other nodes; return the runtimes that are at no other node.

        If the message cannot be sent, a request is refused, and any other message counted as
        dropped.

        Args:
            entry: The message.
            by: Runtime whose session brought it; None: this node itself made it.
            runtimes: The receiving runtimes.
            nodes: The nodes whose subscribers get the message.
        """
        del entry, by, nodes
        return runtimes

    def look_up(self, message: Message, by: str | None) -> bool:
        """Hold a message while the engine looks up its receiver, and route it after that.

        If the message cannot be held, a request is refused, and any other message counted as
        dropped.

        Args:
            message: The message.
            by: Runtime whose session brought it; None: this node itself made it.

        Returns:
            Whether the message waits; False: no other node can know the receiver.
        """
        del message, by
        return False

    def keep(self, message: Message, by: str | None) -> bool:
        """Write a message to the durable log, or let it wait, if that is needed before its routing.

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
        """Return the runtime in whose log a durable message is kept; None: not kept here.

        Messages to another domain are kept by that domain.
        """
        # Not the log of a subscriber: a returning runtime subscribes to its own addresses.
        owner = self.exchange.tables.routing.owner_of(message.to)
        return None if owner is None or is_node(owner) else owner

    def follow(self, session: Session) -> None:
        """React to a link that a session has got or lost: its log is sent only over a link."""

    def take_up(self, runtime: str) -> Session | None:
        """Load the session that a runtime has at another node, without a link.

        The session belongs to the other node until it is published here.

        Args:
            runtime: Address of the runtime.

        Returns:
            The session; None: no other node has a session that can move.
        """

    def end(self, left: RuntimeLeft, *, is_resumable: bool) -> None:
        """Release the addresses and subscriptions of a session that is over here.

        Args:
            left: The runtime.
            is_resumable: Whether another node may resume the session, with all that it owns.
        """
        del is_resumable
        self.exchange.tables.release(left.runtime, left.why)
        self.exchange.notify_left(left)

    # ---- calls of the bus after each batch of messages, and at its end

    @property
    def is_member(self) -> bool:
        """True if this node may serve runtimes now."""
        return True

    @property
    def is_settled(self) -> bool:
        """True if no change still has to be stored by the engine."""
        return True

    def catch_up(self) -> None:
        """Apply the changes that other nodes have sent, before the bus handles the next message."""

    def settle(self) -> None:
        """Send the changes that were published since the last call."""

    def deadline(self) -> float:
        """Return when to call `tick`; infinity if there is nothing to do."""
        return math.inf

    def tick(self) -> None:
        """Do what has to be done at a certain time, such as timeouts."""

    def leave(self) -> bool:
        """Begin to leave the group of nodes; return whether another node can take the sessions."""
        return False

    def close(self) -> None:
        """Remove the sessions and addresses of other nodes from the tables; idempotent."""
