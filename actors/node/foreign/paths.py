"""The routes to other domains as parts of a node, and paths to objects there (C-49).

A runtime in the trapezoid sets its path at its own node. The first path to a resource of
another domain is set at that domain's node too, on behalf of this node; later ones only
here. When the last path here is removed, it is removed there. The answer to the runtime waits
for the other node's answer. When a node has lost the session, all paths are set again.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.node.components import LocalService
from actors.node.config import NOWHERE, ForeignPlan
from actors.node.foreign.host import ForeignHost, ForeignParts
from actors.node.session.exchange import Exchange
from actors.node.session.foreign_routes import Paths
from actors.node.tables import Tables
from fsm.effects import Refused
from fsm.sync.subscriptions import Unsubscribe
from specs.addresses.address import domain_of, is_node, subscription_manager
from specs.bodies.link import Path
from specs.limits.protocol import MAX_LIST, REPLY_TIMEOUT, STUB_QUEUE
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = ["path_service", "start_foreign"]

_AWAY: Final = "too many paths to other domains are being set up"
_SILENT: Final = Refused(Code.BACKEND_TIMEOUT, "the object's node did not answer in time")


@final
@attrs.frozen
class _Asked:
    """A path that another node was asked for.

    Attributes:
        request: Of the requester that set it here; None: this node set it again.
        give_up: Takes the path away here, if it is refused there.
        until: When the other node has had time enough to answer.
    """

    manager: str
    resources: tuple[str, ...]
    request: Message | None = None
    by: str = ""
    give_up: Callable[[], object] | None = None
    until: float = attrs.field(factory=lambda: trio.current_time() + REPLY_TIMEOUT)


@final
class Onward(Paths):
    """Subscriptions of this node at others; part of the bus's task."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._node = exchange.tables.addresses
        self._held: dict[str, set[str]] = {}
        self._asked: dict[int, _Asked] = {}

    def wanted(self, resources: Iterable[str], by: str) -> dict[str, tuple[str, ...]]:
        """Return what has to be asked for, by node: not what is known to be set there.

        What is asked for is asked once more, so that no requester is notified of a path that is
        refused in the end.

        Args:
            resources: The paths.
            by: Address of the subscribing runtime.
        """
        wanted: dict[str, tuple[str, ...]] = {}
        pending = {one for asked in self._asked.values() for one in asked.resources}
        for resource in resources:
            owner = self._exchange.tables.routing.owner_of(resource)
            if owner is None or owner == by or not is_node(owner):
                continue
            if resource in pending or resource not in self._held.get(owner, ()):
                wanted[owner] = (*wanted.get(owner, ()), resource)
        return wanted

    def subscribe(
        self, request: Message, by: str, resources: tuple[str, ...], give_up: Callable[[], object]
    ) -> Message | None:
        """Set at other nodes what they have to fan out.

        Args:
            request: The subscription of a local runtime.
            by: Address of the subscribing runtime.
            resources: The paths.
            give_up: Is called if the attempt ends.

        Returns:
            The answer; None: it follows when the other node has answered.
        """
        self._give_up_late()
        wanted = self.wanted(resources, by)
        if not wanted:
            return reply_to(request, Code.OK)
        if len(wanted) > 1 or len(self._asked) >= STUB_QUEUE:
            give_up()
            why = _AWAY if len(wanted) == 1 else "one request names objects of one domain"
            return refuse(request, Code.UNAVAILABLE, why)
        ((peer, missing),) = wanted.items()
        self._ask(peer, _Asked(_manager(peer), missing, request, by, give_up))
        return None

    @override
    def answered(self, answer: Message) -> bool:
        asked = self._asked.get(answer.id)
        if asked is None or not answer.is_final or answer.from_ != asked.manager:
            return False
        del self._asked[answer.id]
        refused = None if answer.code <= LAST_SUCCESS else _refusal(answer)
        if refused is not None:
            self._forget(asked.resources)
        self._decided(asked, refused)
        return True

    def _decided(self, asked: _Asked, refused: Refused | None) -> None:
        """Keep a path or remove it, and answer the requester that set it."""
        if refused is not None and asked.give_up is not None:
            asked.give_up()
        if asked.request is not None:
            self._exchange.send(asked.by, _reply(asked.request, refused))

    def _give_up_late(self) -> None:
        """Await nothing of a node that does not answer: it would fill the place of others.

        It may have set the path all the same; `settle` takes it back.
        """
        now = trio.current_time()
        late = [number for number, asked in self._asked.items() if asked.until <= now]
        for number in late:
            self._decided(self._asked.pop(number), _SILENT)

    def _forget(self, resources: Iterable[str]) -> None:
        for held in self._held.values():
            held.difference_update(resources)

    @override
    def settle(self) -> None:
        if not self._exchange.tables.has_lost_paths():
            return
        subscriptions = self._exchange.tables.subscriptions
        for peer, held in self._held.items():
            left = sorted(
                one
                for one in held
                if not subscriptions.subscribers(one) and not subscriptions.held(one)
            )
            if left:
                held.difference_update(left)
                number = self._exchange.next_id(self._node.paths)
                self._say(peer, MessageType.UNSUBSCRIBE, tuple(left), number)

    @override
    def renew(self, peer: str) -> None:
        held = sorted(self._held.get(peer, ()))
        for start in range(0, len(held), MAX_LIST):
            self._ask(peer, _Asked(_manager(peer), tuple(held[start : start + MAX_LIST])))

    def _ask(self, peer: str, asked: _Asked) -> None:
        self._held.setdefault(peer, set()).update(asked.resources)
        number = self._exchange.next_id(self._node.paths)
        self._asked[number] = asked
        self._say(peer, MessageType.SUBSCRIBE, asked.resources, number)

    def _say(self, peer: str, kind: MessageType, resources: tuple[str, ...], number: int) -> None:
        sender = self._node.paths
        body = write_body(Path(resources, sender))
        self._exchange.send(peer, Message(number, kind, sender, _manager(peer), body))


def _manager(peer: str) -> str:
    return subscription_manager(domain_of(peer))


def _reply(request: Message, refused: Refused | None) -> Message:
    if refused is None:
        return reply_to(request, Code.OK)
    return refuse(request, refused.code, refused.why)


def _refusal(answer: Message) -> Refused:
    why = answer.body.get("description")
    text = why if isinstance(why, str) else "the object's node gave no reason"
    code = Code(answer.code) if answer.code in set(Code) else Code.BAD_BACKEND
    return Refused(code, text)


@final
class OnwardPathService(LocalService):
    """The subscription manager of a node that has routes to other domains."""

    def __init__(self, service: LocalService, onward: Onward, tables: Tables) -> None:
        self._service = service
        self._onward = onward
        self._tables = tables

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        known = self._tables.subscriptions.resources_of(by)
        answer = self._service.receive(message, by)
        is_set = answer is not None and answer.code <= LAST_SUCCESS
        if message.type is not MessageType.SUBSCRIBE or not is_set or is_node(by):
            return answer
        resources = read_body(message, Path).resources
        fresh = tuple(one for one in resources if one not in known)
        give_up = partial(self._tables.follow, Unsubscribe(by, fresh))
        return self._onward.subscribe(message, by, resources, give_up)


def path_service(service: LocalService, exchange: Exchange, plan: ForeignPlan) -> LocalService:
    """Return the subscription manager: with routes to other domains it subscribes onward.

    Args:
        service: Subscription manager of the node.
        exchange: Exchange of the node.
        plan: The plan.
    """
    if plan is NOWHERE:
        return service
    onward = Onward(exchange)
    exchange.foreign.subscribe_by(onward)
    return OnwardPathService(service, onward, exchange.tables)


async def start_foreign(parts: ForeignParts, supervisor: Supervisor) -> None:
    """Open the routes, if there are any.

    Args:
        parts: The parts.
        supervisor: Supervisor of the started actors.
    """
    if parts.plan is not NOWHERE:
        await supervisor.start_child(ChildSpec("foreign", partial(ForeignHost, parts)))
