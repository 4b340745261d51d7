"""The subscription manager at `MN(d)/sm`: receivers of messages (M-01..M-04, M-29, M-35..M-44)."""

from typing import final

from typing_extensions import override

from actors.node.components import LocalService
from actors.node.tables import Tables
from fsm.effects import Refused
from fsm.registry.allocation import Claim
from fsm.registry.node_rights import Hearing
from fsm.sync.subscriptions import Subscribe, Unsubscribe, Withdrawn, entity_of
from specs.bodies.link import Path
from specs.bodies.object import CutPath, PathRequest, path_class
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_SUBSCRIPTIONS
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["PathService"]


@final
class PathService(LocalService):
    """Sets and removes paths for the runtime whose session asks.

    That `source` belongs to the session was checked when the message came in. A path on
    another session's object waits for its owner; what is not made to be observed is refused.
    An owner reports expelled observers: nothing is delivered for that observer any more.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @override
    def receive(self, message: Message, by: str) -> Message:
        refused = self._changed(message, by)
        if refused is not None:
            return refuse(message, refused.code, refused.why)
        return reply_to(message, Code.OK)

    def _changed(self, message: Message, by: str) -> Refused | None:
        body: PathRequest = read_body(message, path_class(message))
        match message.type, body:
            case _, CutPath():
                return self._cut(body, by)
            case MessageType.SUBSCRIBE, Path():
                return self._subscribe(body.resources, by)
            case MessageType.UNSUBSCRIBE, Path():
                return self._tables.follow(Unsubscribe(by, body.resources))
            case other, _:
                raise BadMessageError(f"paths are subscribed and unsubscribed, not {other}")

    def _cut(self, cut: CutPath, by: str) -> Refused | None:
        """Take an owner's consent to an observer back (SYN-21)."""
        rights = self._tables.rights
        entities = tuple(dict.fromkeys(entity_of(one) for one in cut.resources))
        if any(rights.owner_of(one) != by for one in entities):
            return Refused(Code.FORBIDDEN, "only the owner of an object shuts an observer out")
        runtime = cut.runtime or rights.owner_of(cut.observer)
        if runtime is not None:
            for entity in entities:
                if cut.expired:
                    self._tables.lapse(entity, runtime, cut.observer)
                else:
                    self._tables.follow(Withdrawn(entity, runtime, cut.observer))
        return None

    def _subscribe(self, resources: tuple[str, ...], by: str) -> Refused | None:
        rights = self._tables.rights
        claims = tuple(one for one in resources if rights.may_claim(one, by))
        asking = []
        for resource in resources:
            is_own = entity_of(resource) in claims
            hearing = Hearing.AT_ONCE if is_own else rights.hearing(resource, by)
            if hearing is Hearing.NEVER:
                return Refused(Code.FORBIDDEN, f"{resource} is not for this session to hear")
            if hearing is Hearing.BY_CONSENT:
                asking.append(resource)
        if not self._tables.subscriptions.has_room(by, resources):
            return Refused(Code.TOO_LARGE, f"a session has at most {MAX_SUBSCRIPTIONS} paths")
        outcome = self._tables.own(Claim(by, claims))
        if isinstance(outcome, Refused):
            return outcome
        return self._tables.follow(Subscribe(by, resources, frozenset(asking)))
