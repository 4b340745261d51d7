"""The ways to other domains, as parts of a node."""

from functools import partial

from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.components import LocalService
from actors.node.foreign.host import ForeignHost, ForeignParts
from actors.node.foreign.onward import Onward, OnwardDesk
from actors.node.foreign.plan import NOWHERE, ForeignPlan
from actors.node.session.exchange import Exchange

__all__ = ["path_service", "start_abroad"]


def path_service(desk: LocalService, exchange: Exchange, plan: ForeignPlan) -> LocalService:
    """Return the subscription manager: with ways to other domains it subscribes onward."""
    if plan is NOWHERE:
        return desk
    onward = Onward(exchange)
    exchange.border.subscribe_by(onward)
    return OnwardDesk(desk, onward, exchange.tables)


async def start_abroad(parts: ForeignParts, supervisor: Supervisor) -> None:
    """Open the ways, if there are any."""
    if parts.plan is not NOWHERE:
        await supervisor.start_child(ChildSpec("foreign", partial(ForeignHost, parts)))
