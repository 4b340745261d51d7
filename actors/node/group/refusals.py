"""What a node of a group refuses: requests, and rows of the engine that are none of ours."""

from typing import Final, final

from actors.kit.counters import Counters, Tally
from actors.kit.log import get_logger
from fsm.effects import Refused
from fsm.group.kinds import RowRefusal
from specs.limits.group import GROUP_ADDRESS
from specs.reply_code import Code

_log = get_logger("actors.node")

FENCED: Final = Refused(Code.UNAVAILABLE, "this node is no member of its group now")
DOWN: Final = Refused(Code.UNAVAILABLE, "the engine of the domain cannot be reached now")
FULL: Final = Refused(Code.UNAVAILABLE, "too much waits to be written to the engine")
LOG_FULL: Final = Refused(Code.UNAVAILABLE, "the log of the receiver's runtime is full")
NOT_KEPT: Final = Refused(Code.UNAVAILABLE, "the engine of the domain has not kept the message")
UNKNOWN: Final = Refused(
    Code.UNAVAILABLE, "it is not known whether the engine of the domain has kept the message"
)
LONG: Final = Refused(Code.TOO_LARGE, f"the address has more than {GROUP_ADDRESS} bytes")
ELSEWHERE: Final = Refused(Code.CONFLICT, "another node has the session, and cannot hand it over")

_KEY: Final = 120
"""Characters of a key in the log."""


@final
class RowRefusals:
    """Counts and logs rows that are none of ours, or too many.

    Args:
        counters: Where they are counted.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters: Final = counters

    def note(self, key: str, reason: RowRefusal) -> None:
        """Report a row.

        Args:
            key: Its key.
            reason: Why it is not taken.
        """
        self._counters.count(Tally.ROWS, reason)
        _log.warning("row of the engine refused", key=key[:_KEY], why=str(reason))
