"""The subscription manager at `MN(d)/sm`: who is delivered what (M-01..M-04, M-29, M-35..M-44)."""

from typing import final

from typing_extensions import override

from actors.node.desk import Desk
from actors.node.tables import Tables
from fsm.cores.allocation import Claim
from fsm.cores.refused import Refused
from fsm.cores.subscriptions import Subscribe, Unsubscribe
from specs.body import Path
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["PathDesk"]


@final
class PathDesk(Desk):
    """Sets and removes paths for the runtime whose session asks.

    That `source` belongs to the session was checked when the message came in.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @override
    def receive(self, message: Message, by: str) -> Message:
        path = read_body(message, Path)
        match message.type:
            case MessageType.SUBSCRIBE:
                refused = self._subscribe(path.resources, by)
            case MessageType.UNSUBSCRIBE:
                refused = self._tables.follow(Unsubscribe(by, path.resources))
            case other:
                raise BadMessageError(f"paths are subscribed and unsubscribed, not {other}")
        if refused is not None:
            return refuse(message, refused.code, refused.why)
        return reply_to(message, Code.OK)

    def _subscribe(self, resources: tuple[str, ...], by: str) -> Refused | None:
        routing = self._tables.routing
        claims = tuple(one for one in resources if routing.may_claim(one))
        for resource in resources:
            if resource not in claims and not routing.may_subscribe(resource, by):
                return Refused(Code.FORBIDDEN, f"{resource} is not for this session to hear")
        for claim in claims:
            outcome = self._tables.own(Claim(by, claim))
            if isinstance(outcome, Refused):
                return outcome
        return self._tables.follow(Subscribe(by, resources))
