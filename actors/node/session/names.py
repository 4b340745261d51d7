"""The names of runtimes that belong to users, and their storage; part of the bus's task."""

from collections.abc import Callable, Container, Iterable
from typing import Final, TypeAlias

from actors.node.links.connection import Connection
from fsm.effects import Refused
from fsm.session.runtime_names import Change, NameForgotten, NameKept, Owner, RuntimeNames
from specs.addresses.address import is_node
from specs.identity import Identity
from specs.reply_code import Code

KeepName: TypeAlias = Callable[[Change, Connection | None], None]
"""Stores a change; the link, if there is one, is answered when it is stored."""


class UserNames:
    """Host of the core of names.

    The name of another domain's node belongs to nobody: the identity provider binds tokens to it.

    Args:
        keep: Stores what changes.
        wall: Seconds since the epoch, as ends of logins are counted.
    """

    def __init__(self, keep: KeepName, wall: Callable[[], float]) -> None:
        self.wall: Final = wall
        self._keep: Final = keep
        self._core = RuntimeNames()

    def __len__(self) -> int:
        return len(self._core)

    def restore(self, kept: Iterable[NameKept], in_use: Container[str]) -> None:
        """Take over the names of an earlier process.

        Args:
            kept: The stored names.
            in_use: Runtimes whose sessions come back, too.
        """
        self._store(self._core.restore(kept, in_use, self.wall()))

    def mirror(self, change: Change) -> None:
        """Take over what another node of the domain has decided."""
        self._core.mirror(change)

    def refusal(self, runtime: str, identity: Identity | None) -> Refused | None:
        """Return why a user may open no session of a name; None: it may.

        Args:
            runtime: The name.
            identity: Identity of the user; None: no login.
        """
        if is_node(runtime):
            return None
        owner = None if identity is None else _owner(identity)
        return self._core.refusal(runtime, owner, self.wall())

    def opened(self, runtime: str, identity: Identity, port: Connection) -> None:
        """Note that a user has opened a session of a name; the link is answered when it is stored.

        Args:
            runtime: The name.
            identity: Identity of the user.
            port: Write end of the link.
        """
        if not is_node(runtime):
            self._store(self._core.opened(runtime, _owner(identity), self.wall()), port)

    def user_of(self, runtime: str) -> str:
        """Return the user that a name belongs to; itself, if it belongs to none."""
        owner = self._core.owner_of(runtime)
        return runtime if owner is None else f"{owner.issuer} {owner.user}"

    def ended(self, runtime: str) -> bool:
        """Note that a name has no session any more; return whether its user has released it."""
        changes = self._core.ended(runtime, self.wall())
        self._store(changes)
        return NameForgotten(runtime) in changes

    def release(self, runtime: str, identity: Identity, port: Connection) -> Code:
        """Give a name of a user back; return how that ended, as the core does.

        Args:
            runtime: The name.
            identity: Identity of the user.
            port: The link that asks; it is answered when that is stored.
        """
        code, changes = self._core.release(runtime, _owner(identity))
        self._store(changes, port)
        return code

    def _store(self, changes: Iterable[Change], port: Connection | None = None) -> None:
        for change in changes:
            self._keep(change, port)


def _owner(identity: Identity) -> Owner:
    return Owner(identity.issuer, identity.user)
