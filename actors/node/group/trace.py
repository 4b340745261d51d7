"""Trace records of a node about the other nodes of its domain.

They name the group and its members, and say at which revision of the engine's rows this node had
its lease and its sessions. So judges can join the traces of the nodes of one group.
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
"""Characters of a key in the log."""


def report_refusal(counters: Counters, key: str, reason: RowRefusal) -> None:
    """Count and log a row that is none of ours, or one too many.

    Args:
        counters: Where it is counted.
        key: Its key.
        reason: Why it is not taken.
    """
    counters.count(Tally.ROWS, reason)
    _log.warning("row of the engine refused", key=key[:_KEY], why=str(reason))


class GroupTrace(ComponentTrace):
    """The trace records of a node about the other nodes of its domain.

    Args:
        tracer: Takes the records.
        counters: Counters of the node.
        node: Id of the node.
        group: Name of the group.
        counts: What the engine has lost.

    Attributes:
        node: As above.
    """

    def __init__(
        self, tracer: Tracer, counters: Counters, node: str, group: str, counts: Counts
    ) -> None:
        super().__init__(tracer, "group", counters)
        self.node: Final = node
        self._group: Final = group
        self._counts: Final = counts
        self._lost = ""

    def came(self, holder: Holder) -> None:
        """Another node is a member: a record, and a line of the log."""
        _log.info("node came", node=holder.node)
        self._member(Op.ADD, holder)

    def gone(self, holder: Holder, *, is_expected: bool) -> None:
        """Another node is no member any more: a record, and a line of the log.

        Args:
            holder: The process of the node.
            is_expected: Whether this node itself is leaving.
        """
        (_log.info if is_expected else _log.warning)("node gone", node=holder.node)
        self._member(Op.DEL, holder)

    def renewed(self, revision: int, own: Holder) -> None:
        """The engine has renewed this node's lease.

        Args:
            revision: Revision of its row.
            own: This process of the node.
        """
        self._member(Op.UPD, own, revision)

    def _member(self, op: Op, holder: Holder, revision: int | None = None) -> None:
        self._fact(op, GroupTable.MEMBERS, holder.node, f"{self._group}|{holder.boot}", revision)

    def home(self, row: GroupRow | None, revision: int, own: Holder) -> None:
        """The engine has a row that this node has written; recorded if it is of a session here.

        Args:
            row: The row; None: it was removed.
            revision: Its revision.
            own: This process of the node.
        """
        if isinstance(row, SessionRow) and row.holder == own:
            val = f"{own.node}|{own.boot}|{row.epoch}"
            self._fact(Op.UPD, GroupTable.HOMES, row.runtime, val, revision)

    def losses(self) -> None:
        """Messages may have been lost since this was said last; else nothing happens."""
        counts, overflows = self._counts, self.counters.drops.get(DropReason.OVERFLOW, 0)
        lost = f"{counts.outages}|{overflows}|{counts.unsure}"
        if lost != self._lost:
            self._lost = lost
            self._fact(Op.UPD, GroupTable.ENGINE, self.node, lost, None)

    def carried(self, op: Op, message: Message, link: str, to: str | None) -> None:
        """A message goes to another node, or came from one.

        Args:
            op: What happened to the message.
            message: The message.
            link: Ids of both nodes.
            to: The only runtime that is to get it; None: the subscribers at the node.
        """
        if to is None:
            self.hop(op, message, link=link)
        else:
            self.hop(op, message, link=link, listener=to)

    def _fact(self, op: Op, table: GroupTable, key: str, val: str, revision: int | None) -> None:
        fact = Fact(k=Kind.TABLE, op=op, table=table, key=key, val=val, version=revision)
        self.record(fact)
