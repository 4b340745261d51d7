"""Which other domains a node may reach, and what makes sandboxes for their stubs."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, final

import attrs

from actors.pipe.errors import RoomError
from actors.pipe.plan import Login, Spawn, nothing
from transports.link import Link

__all__ = ["NOWHERE", "Endpoint", "ForeignPlan"]


@final
@attrs.frozen
class Endpoint:
    """Where a foreign domain's node is.

    Attributes:
        url: What is dialled, such as ws://127.0.0.1:4123/link; nothing else is.
        login: Returns what is shown to open a session there; asked for at each open, as a
            login token opens one session.
    """

    url: str
    login: Login = nothing


@final
@attrs.frozen
class ForeignPlan:
    """The ways to other domains.

    Attributes:
        domains: By name; may be filled while the node runs.
        spawn: Makes a sandbox for a stub.
    """

    domains: Mapping[str, Endpoint]
    spawn: Spawn


def _no_room(_label: str) -> AbstractAsyncContextManager[Link]:
    raise RoomError("this node makes no sandboxes")


NOWHERE: Final = ForeignPlan(MappingProxyType({}), _no_room)
"""No other domain."""
