"""The paths of a node: which runtime has one on which address, and in which state.

A node may hold millions, so a pair of an address and a runtime is no object: its state and
whom the owner consented to stand where dictionaries have room for a value anyway.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar, final

from fsm.machines.node_subscription import State
from fsm.sync.subscriptions.consented import Observers
from fsm.sync.subscriptions.io import entity_of

__all__ = ["PathTable"]

V = TypeVar("V")


@final
class PathTable:
    """All paths of one node, by address, by runtime and by what the address is a part of."""

    def __init__(self) -> None:
        self._active: dict[str, dict[str, Observers]] = {}
        self._held: dict[str, dict[str, None]] = {}
        self._states: dict[str, dict[str, State]] = {}
        self._parts: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._states.values()))

    def active(self, resource: str) -> Mapping[str, Observers]:
        """Return the runtimes with an active path on an address, and for whose sake."""
        return self._active.get(resource, {})

    def held(self, resource: str) -> Collection[str]:
        """Return the runtimes whose path on an address waits for its owner."""
        return self._held.get(resource, ())

    def of(self, runtime: str) -> Mapping[str, State]:
        """Return the paths of a runtime, oldest first."""
        return self._states.get(runtime, {})

    def parts(self, entity: str) -> Collection[str]:
        """Return the addresses of an entity and its parts that somebody has a path on."""
        return self._parts.get(entity, ())

    def on(self, runtime: str, entity: str) -> list[tuple[str, State]]:
        """Return the paths of a runtime on an entity; the smaller table is gone through."""
        parts, mine = self._parts.get(entity), self._states.get(runtime)
        if parts is None or mine is None:
            return []
        if len(parts) <= len(mine):
            return [(one, mine[one]) for one in parts if one in mine]
        return [(one, state) for one, state in mine.items() if one in parts]

    def state(self, resource: str, runtime: str) -> State:
        """Return the state of a path that there is."""
        return self._states[runtime][resource]

    def put(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        """Enter a path that there is not yet."""
        self._place(resource, runtime, state, observers)
        self._parts.setdefault(entity_of(resource), {})[resource] = None

    def turn(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        """Let a path that there is have another state."""
        self._lift(resource, runtime)
        self._place(resource, runtime, state, observers)

    def agree(self, resource: str, runtime: str, observers: Observers) -> None:
        """Let an active path be for these observers' sake."""
        self._active[resource][runtime] = observers

    def take_out(self, resource: str, runtime: str) -> None:
        """Remove a path that there is; nothing of it is left (I-X2)."""
        self._lift(resource, runtime)
        _take_out(self._states, runtime, resource)
        if resource not in self._active and resource not in self._held:
            _take_out(self._parts, entity_of(resource), resource)

    def _place(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        if state is State.HELD:
            self._held.setdefault(resource, {})[runtime] = None
        else:
            self._active.setdefault(resource, {})[runtime] = observers
        self._states.setdefault(runtime, {})[resource] = state

    def _lift(self, resource: str, runtime: str) -> None:
        """Take a path out of the table of its state."""
        if self._states[runtime][resource] is State.HELD:
            _take_out(self._held, resource, runtime)
        else:
            _take_out(self._active, resource, runtime)


def _take_out(table: dict[str, dict[str, V]], row: str, value: str) -> None:
    """Remove a value from a row, and the row when it was the last."""
    del table[row][value]
    if not table[row]:
        del table[row]
