"""Which changes of status are real, of those that a registry behind the node tells (I-G5)."""

from collections import OrderedDict
from typing import Final, final

from fsm.machines.registration import State

__all__ = ["StatusWatch"]

_TOLD: Final = frozenset({State.LIVE.value, State.DISCONNECTED.value})


@final
class StatusWatch:
    """The last status of each record that is known; of so many records the latest.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def changed(self, url: str, status: str) -> bool:
        """Note a status; say whether it is another than before, and one that others see."""
        if status not in _TOLD:
            return False
        old = self._known.pop(url, None)
        self._known[url] = status
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return old != status

    def seen(self, url: str, status: str) -> None:
        """Note the status of a record that was read, unless one is known: that may still change.

        What is known was told; what was read may be news that is still to be told.
        """
        if url not in self._known:
            self.changed(url, status)
