"""The order of messages of one pair, of which one moves from node to node (I-B7).

Each message names the home of its sender: the revision of the row by which the node that took it
had the session. The engine gives rows rising revisions, so of two homes the one with the higher
revision is the later one. A node that was slow to pass a message on may be overtaken by the
sender's next message, which another node took.

If the receiver moves, a message may reach the node that it has left, which passes it on. The
sender's next one may come first, from the same home by a shorter way. It has the higher id, as
those of one sender rise (MSG-03). A response has the id of its request, so it has no order here.

A node does not deliver a late message. Its host answers a request with 503, and counts the rest.
"""

from typing import Final

from fsm.group.kinds import session_key
from fsm.group.moves import MovesCore
from fsm.group.rows import RowsCore
from specs.limits.group import GROUP_PAIRS
from specs.message import Message, MessageType

_NONE: Final = (0, 0)


class SenderOrder:
    """The latest home and id of each sender and receiver whose messages one node has delivered.

    Only the last `GROUP_PAIRS` pairs are known: a message is late by seconds, or its node has lost
    its lease.

    Args:
        rows: The rows of sessions.
        moves: The sessions of this node.
    """

    def __init__(self, rows: RowsCore, moves: MovesCore) -> None:
        self._rows: Final = rows
        self._moves: Final = moves
        self._latest: dict[tuple[str, str, str], tuple[int, int]] = {}

    def home(self, runtime: str) -> int:
        """Return the home of a runtime whose message this node takes.

        Args:
            runtime: Its address; it has its session here, or its link is still read.

        Returns:
            0 for one whose session has no row.
        """
        revision = self._rows.revision(session_key(runtime))
        return revision if runtime in self._moves.own else max(revision - 1, 0)

    def is_late(
        self, runtime: str, message: Message, home: int, *, is_passed_on: bool = False
    ) -> bool:
        """Return whether a message is late; if not, note its home and id.

        Args:
            runtime: The runtime that sent it.
            message: The message.
            home: The home that its runtime had.
            is_passed_on: Whether it went to a node that its receiver had left.
        """
        pair = (runtime, message.from_, message.to)
        latest, number = self._latest.get(pair, _NONE)
        if home < latest:
            return True
        if home > latest:
            number = 0
        if message.type is not MessageType.RESPONSE:
            if is_passed_on and message.id < number:
                return True
            number = max(number, message.id)
        self._latest[pair] = home, number
        if len(self._latest) > GROUP_PAIRS:
            del self._latest[next(iter(self._latest))]
        return False

    def forget(self) -> None:
        """Forget all homes: an engine that comes back empty gives low revisions again."""
        self._latest.clear()
