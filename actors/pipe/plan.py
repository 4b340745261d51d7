"""What a room is opened for, as both ends of its pipe know it."""

from typing import final

import attrs

from actors.pipe.errors import PipeError
from specs.jsonvalue import JsonObject

__all__ = ["RoomPlan", "read_plan", "write_plan"]


@final
@attrs.frozen
class RoomPlan:
    """One stub in a room.

    Attributes:
        stub: The stub's address.
        runtime: Whose session it opens: a runtime, or a node.
        domain: The domain its link leads to.
        endpoint: Where it dials; the only place it may.
        session: Token of a session that an earlier stub had, to come back to.
        ids: Its message ids begin above this.
        hops: Whether anybody wants to know what happens to messages.
    """

    stub: str
    runtime: str
    domain: str
    endpoint: str
    session: str | None = attrs.field(default=None, repr=False)
    ids: int = 0
    hops: bool = False


def write_plan(plan: RoomPlan) -> JsonObject:
    """Write a plan as what is told over the pipe."""
    return {
        "stub": plan.stub,
        "runtime": plan.runtime,
        "domain": plan.domain,
        "endpoint": plan.endpoint,
        "session": plan.session,
        "ids": plan.ids,
        "hops": plan.hops,
    }


def read_plan(told: JsonObject) -> RoomPlan:
    """Read what was told over the pipe.

    Raises:
        PipeError: It is no plan.
    """
    ids, hops = told.get("ids"), told.get("hops")
    if not isinstance(ids, int) or not isinstance(hops, bool):
        raise PipeError("a plan without ids or hops")
    return RoomPlan(
        stub=_text(told, "stub"),
        runtime=_text(told, "runtime"),
        domain=_text(told, "domain"),
        endpoint=_text(told, "endpoint"),
        session=_secret(told, "session"),
        ids=ids,
        hops=hops,
    )


def _text(told: JsonObject, name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str):
        raise PipeError(f"a plan without {name}")
    return value


def _secret(told: JsonObject, name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) else None
