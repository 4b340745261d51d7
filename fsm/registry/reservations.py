"""What sessions have reserved at a quality broker (CON-04).

A reservation belongs to a session and a client of it, and has a name that only the node
and the broker know.
"""

from typing import final

import attrs

from specs.jsonvalue import JsonObject
from specs.limits.back_ends import MAX_RESERVATIONS

__all__ = ["Reservation", "Reservations"]


@final
@attrs.frozen
class Reservation:
    """What was granted.

    Attributes:
        name: What the broker calls it.
        wish: What was asked for.
        value: What opens it.
    """

    name: str
    wish: JsonObject
    value: JsonObject


@final
class Reservations:
    """The reservations of all sessions of one node."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Reservation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def held(self, by: str, client: str) -> Reservation | None:
        """Return what a client of a session holds."""
        return self._held.get(by, {}).get(client)

    def has_room(self, by: str) -> bool:
        """Say whether a session may hold one more."""
        return len(self._held.get(by, {})) < MAX_RESERVATIONS

    def granted(self, by: str, client: str, reservation: Reservation) -> None:
        """Note that the broker granted what a client asked for."""
        self._held.setdefault(by, {})[client] = reservation

    def give_back(self, by: str, client: str) -> str | None:
        """Take a client's reservation out; return its name, None if there is none."""
        held = self._held.get(by, {})
        reservation = held.pop(client, None)
        if not held:
            self._held.pop(by, None)
        return None if reservation is None else reservation.name

    def left(self, by: str) -> tuple[str, ...]:
        """Take out all that a session holds; return the names."""
        return tuple(one.name for one in self._held.pop(by, {}).values())
