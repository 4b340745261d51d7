"""Trace records of a node about the group of nodes of its domain.

They contain the group, its members, and the revisions of the rows of this node's lease and
sessions. So a judge can combine the traces of all nodes of a group.
"""

from typing import Final

from actors.kit.counters import Counters, Tally
from actors.kit.log import get_logger
from actors.kit.trace import Tracer
from actors.node.trace import ComponentTrace
from fsm.group.kinds import GroupRow, GroupTable, Holder, RowRefusal, SessionRow
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Fact, Kind, Op
from transports.engine.contract import Counts

_log = get_logger("actors.node")

_KEY: Final = 120
"""Maximum length of a row's key in the log."""


def report_refusal(counters: Counters, key: str, reason: RowRefusal) -> None:
    """Count and log a row of the engine that is refused.

    Args:
        counters: Counters of refused rows.
        key: Key of the row.
        reason: Why the row is refused.
    """
    counters.count(Tally.ROWS, reason)
    _log.warning("row of the engine refused", key=key[:_KEY], why=str(reason))


class GroupTrace(ComponentTrace):
    """Write the trace records about other nodes of the domain: members, sessions, messages.

    Args:
        tracer: Receives the records.
        counters: Counters of the node.
        node: Id of the node.
        group: Name of the group.
        counts: Losses of the engine.

    Attributes:
        node: Id of the node.
    """

    def __init__(
        self, tracer: Tracer, counters: Counters, node: str, group: str, counts: Counts
    ) -> None:
        super().__init__(tracer, "group", counters)
        self.node: Final = node
        self._group: Final = group
        self._counts: Final = counts
        self._lost = ""

    def record_arrival(self, holder: Holder) -> None:
        """Trace and log that another node has become a member of the group."""
        _log.info("node came", node=holder.node)
        self._member(Op.ADD, holder)

    def record_departure(self, holder: Holder, *, is_expected: bool) -> None:
        """Trace and log that another node is no longer a member of the group.

        Args:
            holder: The process of the node.
            is_expected: Whether this node itself is leaving.
        """
        (_log.info if is_expected else _log.warning)("node gone", node=holder.node)
        self._member(Op.DEL, holder)

    def record_renewal(self, revision: int, own: Holder) -> None:
        """Trace that the engine has renewed the lease of this node.

        Args:
            revision: Revision of the row that holds the lease.
            own: This process of the node.
        """
        self._member(Op.UPD, own, revision)

    def _member(self, op: Op, holder: Holder, revision: int | None = None) -> None:
        self._fact(op, GroupTable.MEMBERS, holder.node, f"{self._group}|{holder.boot}", revision)

    def record_home(self, row: GroupRow | None, revision: int, own: Holder) -> None:
        """Trace that a row was written, if it is the row of a local session.

        Args:
            row: The row; None: it was removed.
            revision: Revision of the row.
            own: This process of the node.
        """
        if isinstance(row, SessionRow) and row.holder == own:
            val = f"{own.node}|{own.boot}|{row.epoch}"
            self._fact(Op.UPD, GroupTable.HOMES, row.runtime, val, revision)

    def record_losses(self) -> None:
        """Trace the counts of possibly lost messages if they have changed since the last call."""
        counts, overflows = self._counts, self.counters.drops.get(DropReason.OVERFLOW, 0)
        lost = f"{counts.outages}|{overflows}|{counts.unsure}"
        if lost != self._lost:
            self._lost = lost
            self._fact(Op.UPD, GroupTable.ENGINE, self.node, lost, None)

    def record_carried(self, op: Op, message: Message, link: str, to: str | None) -> None:
        """Trace that a message was sent to another node, or received from one.

        Args:
            op: Whether the message was sent or received.
            message: The message.
            link: Ids of both nodes.
            to: The only receiving runtime; None: the subscribers at the node.
        """
        if to is None:
            self.hop(op, message, link=link)
        else:
            self.hop(op, message, link=link, listener=to)

    def _fact(self, op: Op, table: GroupTable, key: str, val: str, revision: int | None) -> None:
        fact = Fact(k=Kind.TABLE, op=op, table=table, key=key, val=val, version=revision)
        self.record(fact)
