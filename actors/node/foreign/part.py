"""Starts the ways to other domains, as part of a node."""

from functools import partial

from actors.kit.supervisor import ChildSpec, Supervisor
from actors.node.foreign.host import ForeignHost, ForeignParts
from actors.node.foreign.plan import NOWHERE

__all__ = ["start_abroad"]


async def start_abroad(parts: ForeignParts, supervisor: Supervisor) -> None:
    """Open the ways, if there are any."""
    if parts.plan is not NOWHERE:
        await supervisor.start_child(ChildSpec("foreign", partial(ForeignHost, parts)))
