"""Ownership of runtime names by users at one node (S6, MN-21).

A runtime's name is its address. It belongs to the user whose login opened the first session with
the name. No other user, and no runtime without a login, can open a session with that name until the
user releases the name, or until `NAME_LIFE` seconds have passed since its last session. A release
takes effect at the end of the current session. Without a login, a name belongs to nobody and is
not stored.

Memory is limited: each user has at most `USER_NAMES` names, and all users together `NODE_NAMES`. If
the table is full, the user with the most names loses the longest unused name; so an attacker with
many names takes no names from other users.

Times are seconds since the epoch, because names outlive the process. The host stores each `Change`
durably.
"""

import math
from collections.abc import Container, Iterable
from typing import TypeAlias

import attrs

from fsm.effects import Refused
from specs.limits.node import NAME_LIFE, NODE_NAMES, USER_NAME_BYTES, USER_NAMES
from specs.reply_code import Code


@attrs.frozen(slots=True)
class Owner:
    """A user who owns runtime names, identified by issuer and user name together."""

    issuer: str
    user: str


@attrs.frozen(slots=True)
class NameKept:
    """A runtime name with the user who owns it.

    Attributes:
        runtime: The name: address of the runtime.
        owner: The user.
        left: Time at which the last session with the name ended; infinity: a session is open.
        is_released: Whether the name becomes free when its session ends.
    """

    runtime: str
    owner: Owner
    left: float = math.inf
    is_released: bool = False

    def is_over(self, now: float) -> bool:
        """Return whether the name no longer belongs to its user."""
        return now >= self.left + NAME_LIFE


@attrs.frozen(slots=True)
class NameForgotten:
    """The removal of a runtime name from the table: no user owns it any more."""

    runtime: str


Change: TypeAlias = NameKept | NameForgotten


class RuntimeNames:
    """The owned runtime names of one node: at most `each` per user, and `together` of all users."""

    def __init__(self, each: int = USER_NAMES, together: int = NODE_NAMES) -> None:
        self._each, self._together = each, together
        self._names: dict[str, NameKept] = {}
        self._idle: dict[str, None] = {}
        self._of: dict[Owner, dict[str, None]] = {}
        self._with: dict[int, dict[Owner, None]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def owner_of(self, runtime: str) -> Owner | None:
        """Return the user who owns a name, or None."""
        name = self._names.get(runtime)
        return None if name is None else name.owner

    def restore(self, kept: Iterable[NameKept], in_use: Container[str], now: float) -> list[Change]:
        """Load the stored names of an earlier process; return the changes to be stored now.

        Args:
            kept: The stored names.
            in_use: Names of runtimes whose sessions were stored, too.
            now: Seconds since the epoch.
        """
        changes: list[Change] = []
        for name in sorted(kept, key=lambda name: name.left):
            self._put(name)
            if name.left == math.inf and name.runtime not in in_use:
                changes += self.end_session(name.runtime, now)
        return [*changes, *self._sweep(now)]

    def refusal(self, runtime: str, owner: Owner | None, now: float) -> Refused | None:
        """Return the refusal of a session with a name that a user may not use, or None.

        Args:
            runtime: The name.
            owner: The user; None: no login.
            now: Seconds since the epoch.
        """
        name = self._names.get(runtime)
        if name is not None and not name.is_over(now):
            if name.owner == owner:
                return None
            days = round(NAME_LIFE / 86_400)
            why = f"{runtime} belongs to another user, until that one releases the name or has "
            return Refused(Code.CONFLICT, f"{why}not used it for {days} days")
        if owner is None:
            return None
        full = self._user_is_full(runtime, owner, now)
        if full is not None:
            return Refused(Code.CONFLICT, full)
        if not self._has_room(now):
            return Refused(Code.UNAVAILABLE, "the node keeps no more names of runtimes")
        return None

    def _user_is_full(self, runtime: str, owner: Owner, now: float) -> str | None:
        """Return the reason why a user may own no further name, or None."""
        names = [each for each in self._of_user(owner) if not each.is_over(now)]
        size = sum(len(each.runtime) for each in names)
        if len(names) < self._each and size + len(runtime) <= USER_NAME_BYTES:
            return None
        oldest = min(names, key=lambda name: name.left)
        advice = "" if oldest.left == math.inf else f", such as {oldest.runtime}"
        return f"this user has {len(names)} names of runtimes here; release one{advice}"

    def open_session(self, runtime: str, owner: Owner, now: float) -> list[Change]:
        """Make a user the owner of a name whose session was opened; return the changes to store.

        Args:
            runtime: The name.
            owner: The user.
            now: Seconds since the epoch.
        """
        changes = self._sweep(now)
        held, name = self._names.get(runtime), NameKept(runtime, owner)
        if held == name:
            return changes
        if held is None and len(self._names) >= self._together:
            spare = self._spare()
            changes += [] if spare is None else self._forget(spare)
        self._put(name)
        return [*changes, name]

    def end_session(self, runtime: str, now: float) -> list[Change]:
        """Note that the session with a name has ended; return the changes to store.

        Args:
            runtime: The name.
            now: Seconds since the epoch.
        """
        held = self._names.get(runtime)
        if held is None or held.left != math.inf:
            return []
        if held.is_released:
            return self._forget(runtime)
        name = attrs.evolve(held, left=now)
        self._put(name)
        return [*self._sweep(now), name]

    def release(self, runtime: str, owner: Owner) -> tuple[Code, list[Change]]:
        """Release a name of a user; return a result code, and the changes to store.

        OK: the name is free. ACCEPTED: the name becomes free when its session ends. NOT_FOUND: the
        user does not own the name. Idempotent while the name has a session.

        Args:
            runtime: The name.
            owner: The user.
        """
        held = self._names.get(runtime)
        if held is None or held.owner != owner:
            return Code.NOT_FOUND, []
        if held.left != math.inf:
            return Code.OK, self._forget(runtime)
        if held.is_released:
            return Code.ACCEPTED, []
        name = attrs.evolve(held, is_released=True)
        self._put(name)
        return Code.ACCEPTED, [name]

    def mirror(self, change: Change) -> None:
        """Apply a change that another node of the domain has decided on."""
        if isinstance(change, NameKept):
            self._put(change)
        else:
            self._take_out(change.runtime)

    # ---- the tables

    def _put(self, name: NameKept) -> None:
        self._take_out(name.runtime)
        self._names[name.runtime] = name
        names = self._of.setdefault(name.owner, {})
        names[name.runtime] = None
        self._recount(name.owner, len(names) - 1, len(names))
        if name.left != math.inf:
            self._idle[name.runtime] = None

    def _take_out(self, runtime: str) -> None:
        held = self._names.pop(runtime, None)
        if held is None:
            return
        self._idle.pop(runtime, None)
        names = self._of[held.owner]
        del names[runtime]
        self._recount(held.owner, len(names) + 1, len(names))
        if not names:
            del self._of[held.owner]

    def _recount(self, owner: Owner, before: int, count: int) -> None:
        """Update the grouping of users by their number of names."""
        if before:
            del self._with[before][owner]
            if not self._with[before]:
                del self._with[before]
        if count:
            self._with.setdefault(count, {})[owner] = None

    def _forget(self, runtime: str) -> list[Change]:
        self._take_out(runtime)
        return [NameForgotten(runtime)]

    def _sweep(self, now: float) -> list[Change]:
        """Forget the names that have not been used for `NAME_LIFE` seconds."""
        changes: list[Change] = []
        while self._idle:
            first = next(iter(self._idle))
            if not self._names[first].is_over(now):
                break
            changes += self._forget(first)
        return changes

    def _of_user(self, owner: Owner) -> list[NameKept]:
        return [self._names[each] for each in self._of.get(owner, ())]

    def _has_room(self, now: float) -> bool:
        if len(self._names) < self._together:
            return True
        first = next(iter(self._idle), None)
        is_over = first is not None and self._names[first].is_over(now)
        return is_over or self._spare() is not None

    def _spare(self) -> str | None:
        """Return the name to remove if the table is full; None: all candidates are in use.

        It is the longest unused name of the user with the most names.
        """
        user = next(iter(self._with[max(self._with)]))
        oldest = min(self._of_user(user), key=lambda name: name.left)
        return None if oldest.left == math.inf else oldest.runtime
