"""What went wrong, counted: the drop ledger and the violations (OBS-06)."""

from collections import Counter
from types import MappingProxyType
from typing import final

from specs.reply_code import DropReason

__all__ = ["Counters"]


@final
class Counters:
    """Counts of one process, for tests and metrics; whoever drops counts here, once.

    Attributes:
        drops: Messages not delivered, by the one reason each has.
        violations: Steps no table declares, by machine.
        dead_letters: Messages left to actors that were gone, by actor.
    """

    def __init__(self) -> None:
        self._drops: Counter[DropReason] = Counter()
        self._violations: Counter[str] = Counter()
        self._dead_letters: Counter[str] = Counter()
        self.drops = MappingProxyType(self._drops)
        self.violations = MappingProxyType(self._violations)
        self.dead_letters = MappingProxyType(self._dead_letters)

    @property
    def monitor_violations(self) -> int:
        """How many steps no table declares were tried; more than 0 is a bug."""
        return self._violations.total()

    def drop(self, reason: DropReason) -> None:
        """Count a message that was not delivered."""
        self._drops[reason] += 1

    def violation(self, machine: str) -> None:
        """Count a step that was refused."""
        self._violations[machine] += 1

    def dead_letter(self, actor: str) -> None:
        """Count a message that nobody will handle."""
        self._dead_letters[actor] += 1
