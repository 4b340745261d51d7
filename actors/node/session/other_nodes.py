"""The other nodes of a domain, as one node uses them.

`OtherNodes` is what a node asks of them, and what a node does that is the only one of its domain:
it stores its sessions and names in its own file, and has no logs. `actors.node.group.group.Group`
is that of a node with others. All is called in the task of the bus, and no call waits.
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
"""What other nodes have to know.

A change of a table, a session that is to be kept, a name, policies or a file of the whole domain.
"""

_NO_LOGS: Final = "the node keeps no messages: it has no engine"


class OtherNodes:
    """The other nodes of a domain; this class is that of a node that has none.

    Args:
        exchange: The sessions of this node.

    Attributes:
        is_alone: Whether only sessions that outlive their node have to be kept.
    """

    is_alone = True

    def __init__(self, exchange: "Exchange") -> None:
        self.exchange: Final = exchange

    # ---- what a node asks of the others

    def objection(self, runtime: str | None = None) -> Refused | None:
        """Return why nothing may be changed now; None: it may.

        Args:
            runtime: A runtime that asks for a session here; None: any change.
        """

    def publish(self, change: Change, link: Connection | None = None) -> None:
        """Have a change known wherever it must be.

        Args:
            change: The change.
            link: A link that is answered only when it is known; None: none.
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
        """Send a message to other nodes; return those of its receivers that are not elsewhere.

        A message that cannot be sent is answered, or counted.

        Args:
            entry: The message.
            by: Runtime whose session brought it; None: this node itself made it.
            runtimes: The runtimes that are to get it.
            nodes: The nodes whose subscribers are to get it.
        """
        del entry, by, nodes
        return runtimes

    def look_up(self, message: Message, by: str | None) -> bool:
        """Have a message wait until its receiver is looked up; then it is routed again.

        A message that cannot wait is answered, or counted.

        Args:
            message: The message.
            by: Runtime whose session brought it; None: this node itself made it.

        Returns:
            False: no node has a row of the receiver that this node does not know.
        """
        del message, by
        return False

    def keep(self, message: Message, by: str | None) -> bool:
        """Keep an admitted message that is for a log, or came from one, or has to wait.

        Args:
            message: The message.
            by: Runtime whose session brought it; None: this node itself made it.

        Returns:
            False: it is to be routed.
        """
        is_for_log = is_durable(message) and self.log_of(message) not in {None, by}
        if is_for_log:
            self.exchange.undeliverable(message, Code.FORBIDDEN, _NO_LOGS, DropReason.DENIED)
        return is_for_log

    def log_of(self, message: Message) -> str | None:
        """Return the runtime whose log has to keep a durable message.

        Another domain has its own logs.
        """
        # Not that of a subscriber: a runtime that has come back subscribes to its own addresses.
        owner = self.exchange.tables.routing.owner_of(message.to)
        return None if owner is None or is_node(owner) else owner

    def follow(self, session: Session) -> None:
        """Note that a session has got a link, or has lost it: only with one it gets its log."""

    def take_up(self, runtime: str) -> Session | None:
        """Make the session that a runtime has at another node one of this node, detached.

        It is the other node's until it is published; until then it can be given back.

        Args:
            runtime: Address of the runtime.

        Returns:
            The session; None: there is none that another node can take up.
        """

    def end(self, left: RuntimeLeft, *, is_resumable: bool) -> None:
        """Release what a session owned that is over here.

        Args:
            left: The runtime.
            is_resumable: Whether another node may resume it, with all that it owns.
        """
        del is_resumable
        self.exchange.tables.release(left.runtime, left.why)
        self.exchange.left(left)

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
        """Take what has come without a call: what the turn of the bus does depends on it."""

    def settle(self) -> None:
        """Send what the turn of the bus has brought about."""

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return math.inf

    def tick(self) -> None:
        """Do what is due."""

    def leave(self) -> bool:
        """Begin to leave the domain; return whether another node can have the sessions."""
        return False

    def close(self) -> None:
        """Forget the sessions of other nodes, and all that they own. Idempotent."""
