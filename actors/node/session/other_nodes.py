"""The other nodes of the domain, and what they share, as the bus knows them.

Most nodes are the only one of their domain.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from actors.node.links.port import Port
from actors.node.messages import GroupEvent, LogEvent
from actors.node.session.session import Session
from actors.node.tables import TableWatcher
from fsm.effects import Refused
from fsm.session.node_session_io import OutboundMessage
from specs.message import Message


class MessageCarrier(ABC):
    """Takes messages to other nodes; part of the bus's task."""

    @abstractmethod
    def carried(
        self,
        entry: OutboundMessage,
        by: str | None,
        runtimes: Sequence[str],
        nodes: Collection[str],
    ) -> Sequence[str]:
        """Give a message to other nodes; return those of its receivers that are not elsewhere.

        Args:
            entry: The message.
            by: Runtime whose session brought it; None: this node itself made it.
            runtimes: The runtimes that are to get it.
            nodes: The nodes whose subscribers are to get it.
        """


class EnginePart(ABC):
    """What works with the engine of the domain; part of the bus's task, nothing here waits."""

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """True if nothing waits for the engine."""

    @abstractmethod
    def settle(self) -> None:
        """Send what the turn of the bus has brought about."""

    @abstractmethod
    def deadline(self) -> float:
        """Return when `tick` is due."""

    @abstractmethod
    def tick(self) -> None:
        """Do what is due."""


class OtherNodes(EnginePart, TableWatcher):
    """The other nodes of the domain."""

    @abstractmethod
    def heed(self, event: GroupEvent) -> None:
        """Take news of the engine, or of another node."""

    # ---- messages

    @property
    @abstractmethod
    def carrier(self) -> MessageCarrier:
        """What takes messages there."""

    @abstractmethod
    def carry(self, runtime: str, entry: OutboundMessage) -> bool:
        """Give a message to the node of a runtime without a session here.

        A message that cannot be carried is answered, or counted.

        Args:
            runtime: Address of the runtime.
            entry: The message.

        Returns:
            False: the runtime has no session elsewhere either.
        """

    # ---- sessions

    @abstractmethod
    def objection(self, runtime: str | None = None) -> Refused | None:
        """Return why nothing may be changed now; None: it may.

        Args:
            runtime: A runtime that asks for a session here; None: any change.
        """

    @abstractmethod
    def take_up(self, runtime: str) -> Session | None:
        """Make the session that a runtime has at another node one of this node, detached.

        It is the other node's until it is kept; until then it can be given back.

        Args:
            runtime: Address of the runtime.

        Returns:
            The session; None: there is none that another node can take up.
        """

    @abstractmethod
    def keep(self, session: Session, port: Port | None) -> None:
        """Have other nodes know a session of this node.

        Args:
            session: The session.
            port: A link that is answered only when it is known; None: none.
        """

    @abstractmethod
    def ended(self, runtime: str, *, is_resumable: bool) -> AbstractContextManager[None]:
        """Note that a session of this node is over; what it owned is released in this context.

        Args:
            runtime: Address of the runtime.
            is_resumable: Whether another node may resume it, with all that it owns.
        """

    # ---- the membership

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether this node may serve runtimes now."""

    @abstractmethod
    def read_out(self) -> None:
        """Take the answers to renewals of the lease; give up sessions that other nodes have.

        Only those whose links are read no longer.
        """

    @abstractmethod
    def leave(self) -> bool:
        """Begin to leave the group; return whether another node can have the sessions."""

    @abstractmethod
    def close(self) -> None:
        """Forget the sessions of other nodes, and all that they own. Idempotent."""


def objection_of(others: OtherNodes | None, runtime: str | None = None) -> Refused | None:
    """Return why nothing may be changed now; None: it may.

    Args:
        others: The other nodes; None: this is the only node of its domain.
        runtime: As of `OtherNodes.objection`.
    """
    return None if others is None else others.objection(runtime)


class DurableMessages(EnginePart):
    """The logs that keep durable messages."""

    @abstractmethod
    def heed(self, event: LogEvent) -> None:
        """Take news of the logs."""

    @abstractmethod
    def keep(self, message: Message, runtime: str, by: str) -> None:
        """Have a request kept; its sender is answered when it is, or why it is not.

        Args:
            message: The request.
            runtime: Runtime of the receiver.
            by: Runtime whose session brought it.
        """

    @abstractmethod
    def ends(self, message: Message, by: str) -> bool:
        """Return whether a message answers one that a log has kept; such an answer goes no further.

        Args:
            message: Any message.
            by: Runtime whose session brought it.
        """

    @abstractmethod
    def attached(self, session: Session) -> None:
        """Note that a session has a link, to which what is kept for it may be given."""

    @abstractmethod
    def detached(self, runtime: str) -> None:
        """Note that the session of a runtime has no link any more. Idempotent."""
