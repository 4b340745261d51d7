"""The links that are answered only when rows are written; part of the bus's task."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, final

from actors.node.links.port import Port

__all__ = ["HeldLinks"]


@final
class HeldLinks:
    """Counts for how many writes each link waits.

    Args:
        ports: The links, by number.
    """

    def __init__(self, ports: Mapping[int, Port]) -> None:
        self._ports: Final = ports
        self._waits: Counter[int] = Counter()

    def hold(self, port: Port | None) -> int | None:
        """Have a link wait for one write more; return its number, None if there is no link."""
        if port is None:
            return None
        port.hold()
        self._waits[port.number] += 1
        return port.number

    def release(self, number: int | None) -> None:
        """Note that a link waits for one write less."""
        if number is None:
            return
        self._waits[number] -= 1
        if self._waits[number] <= 0:
            del self._waits[number]
            port = self._ports.get(number)
            if port is not None:
                port.release()

    def release_all(self, numbers: Iterable[int]) -> None:
        """Note that links wait for one write less, each time that one is named."""
        for number in numbers:
            self.release(number)

    def forget(self, number: int) -> None:
        """Note that a link is to be left. Idempotent."""
        self._waits.pop(number, None)

    def clear(self) -> None:
        """Wait for nothing any more: all links are left."""
        self._waits.clear()
