"""The errors of machines and of their drawings."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import final

from specs.errors import ProtoflyError
from specs.trace import ABSENT


@final
class UndeclaredTransitionError(ProtoflyError):
    """No row of the table allows this step: a bug here or in the peer.

    The state did not move. The host traces it as a refused step; whether the
    actor goes on is its supervisor's decision.

    Attributes:
        machine: Name of the table.
        key: Which entity.
        state: The state it is in and stays in; None: it does not exist yet.
        trigger: What was asked of it.
    """

    def __init__(self, machine: str, key: str, state: str | None, trigger: str) -> None:
        super().__init__(f"{machine} {key}: no row for '{trigger}' in state '{state or ABSENT}'")
        self.machine = machine
        self.key = key
        self.state = state
        self.trigger = trigger


@final
class UnknownMachineError(ProtoflyError, public=True):
    """No machine has this name: use the nearest name, which the error has.

    Attributes:
        name: What was asked for.
        nearest: The declared name that is most like it.
    """

    def __init__(self, name: str, known: Collection[str]) -> None:
        (self.nearest,) = get_close_matches(name, known, n=1, cutoff=0.0)
        super().__init__(
            f"no machine is named {name!r}; the nearest is {self.nearest!r}, "
            f"all are {', '.join(known)}"
        )
        self.name = name


@final
class CensusError(ProtoflyError):
    """A file of taken steps cannot be read: write it anew by a run of all tests.

    Attributes:
        line: Which line is wrong, from 1.
        reason: What is wrong with it, as half a sentence.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line} has no step: {reason}")
        self.line = line
        self.reason = reason


@final
class LayoutError(ProtoflyError):
    """A drawing cannot be laid out: install Graphviz, or mend the graph."""
