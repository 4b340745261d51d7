"""The claims that a running process judges of itself, while it runs.

The folds are those of the judges. A fold is used here if it is declared `is_forgetful`: its claim
is decided by the records so far, and what it does not know breaks nothing, so that it may begin
anew at any record. That bounds its memory: a fold that has taken `_MEMORY` records is replaced by
a new one, which is counted.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.claims.catalogue import FOLDS
from fsm.judge.claims.fold import Finding, Fold, Place, Process
from fsm.judge.trace_line import TraceLine
from specs.trace import Kind

__all__ = ["MONITORED", "OnlineJudge"]

_MEMORY: Final = 10_000
"""Records after which a fold forgets (ours: at most some 3 MB for each)."""

MONITORED: Final = tuple(fold for fold in FOLDS if fold.is_forgetful)
"""The folds that a monitor uses."""

_Spot: TypeAlias = tuple[str, str | None, str | None, str | None]


@final
@attrs.define
class _Watch:
    """A fold at work, and how many records it has taken."""

    fold: Fold
    taken: int = 0


@final
class OnlineJudge:
    """Judges the records of one process as they come; not thread-safe.

    Attributes:
        machines: The machines whose steps are needed.
        forgotten: How often a fold forgot what it knew.
    """

    def __init__(self, node: str, home: str | None) -> None:
        """Begin.

        Args:
            node: Name of the process.
            home: Address of the runtime; None: it is a message node.
        """
        wrong = Place.RUNTIME if home is None else Place.NODE
        folds = [fold for fold in MONITORED if fold.place is not wrong]
        routes = [route for fold in folds for _, routes in fold.methods for route in routes]
        names = [one.names for one in routes if one.kind is Kind.STATE]
        self.machines = frozenset(name for several in names for name in several)
        self.forgotten = 0
        self._process = Process("", node, home)
        self._watches = [_Watch(fold(self._process)) for fold in folds]
        self._handlers: dict[_Spot, tuple[tuple[_Watch, str], ...]] = {}

    def take(self, record: TraceLine) -> Sequence[Finding]:
        """Take the next record; return which claims it breaks."""
        spot = record.k, record.op, record.machine, record.table
        handlers = self._handlers.get(spot)
        if handlers is None:
            handlers = self._handlers[spot] = tuple(
                (watch, name)
                for watch in self._watches
                for name, routes in watch.fold.methods
                if any(route.takes(record) for route in routes)
            )
        process = self._process
        if record.k == Kind.TABLE:
            process.take(record)
        for watch, name in handlers:
            getattr(watch.fold, name)(record)
            watch.taken += 1
            if watch.taken == _MEMORY:
                watch.fold, watch.taken = type(watch.fold)(process), 0
                self.forgotten += 1
        if not process.findings:
            return ()
        found, process.findings = process.findings, []
        return found
