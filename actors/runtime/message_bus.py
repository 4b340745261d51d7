"""The Message BUS: router of one runtime, between its sandboxes and its stubs.

Those who submit wait while its mailbox is full, and that is the backpressure; it
waits for nobody itself.
"""

from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.counters import Counters
from actors.kit.tracer import Tracer
from actors.runtime.bus_messages import (
    BusMessage,
    Expelled,
    Followed,
    FollowingMessage,
    Granted,
    HandedBack,
    ListenerAdded,
    ListenerRemoved,
    Lost,
    RegistryJoined,
    Revoked,
    RoutingMessage,
    Submitted,
    Unfollowed,
)
from actors.runtime.forwarding import Forwarding
from actors.runtime.hops import Hops
from actors.runtime.policy import Policy
from fsm.cores.resolve_effects import NoRoute, Route, RoutesChanged

__all__ = ["MessageBus"]

_NAME: Final = "bus"


@final
class MessageBus(Actor[BusMessage]):
    """Hosts the cores that forward messages."""

    def __init__(
        self,
        runtime: str,
        policy: Policy,
        tracer: Tracer,
        counters: Counters,
    ) -> None:
        self._hops = Hops(tracer, _NAME, counters)
        self._forwarding = Forwarding(runtime, policy, self._hops)

    @override
    async def handle(self, message: BusMessage) -> None:
        match message:
            case Submitted():
                self._forwarding.submit(message)
            case HandedBack(messages, by):
                self._forwarding.hand_back(messages, by, trio.current_time())
            case Route():
                self._forwarding.routed(message, trio.current_time())
            case NoRoute():
                self._forwarding.no_route(message, trio.current_time())
            case RoutesChanged():
                self._forwarding.routes.forget()
            case Lost(delivery, code, why):
                self._forwarding.refuse(delivery.message, code, why, trio.current_time())
            case RegistryJoined(registry, done):
                self._forwarding.registry = registry
                done.send(None)
            case _:
                self._write(message)

    def _write(self, message: RoutingMessage) -> None:
        routing, admission = self._forwarding.routing, self._forwarding.admission
        match message:
            case Granted(owner, address, origin):
                admission.grant(owner, address, origin)
            case Revoked(owner, address):
                admission.revoke(owner, address)
            case ListenerAdded(address, listener, writer):
                self._hops.rows(routing.add(address, listener, writer))
            case ListenerRemoved(address, listener, writer):
                self._hops.rows(routing.remove(address, listener, writer))
            case _:
                self._write_following(message)
        message.done.send(None)

    def _write_following(self, message: FollowingMessage) -> None:
        routing = self._forwarding.routing
        for listener in routing.find(message.component):
            match message:
                case Followed(address, _, writer):
                    self._hops.rows(routing.add(address, listener, writer))
                case Unfollowed(address, _, writer):
                    self._hops.rows(routing.remove(address, listener, writer))
                case Expelled(_, writer):
                    self._hops.rows(routing.remove_listener(listener, writer))
                case _:
                    assert_never(message)

    @override
    def deadline(self) -> float:
        return self._forwarding.deadline()

    @override
    async def timed_out(self) -> None:
        self._forwarding.tick(trio.current_time())

    @override
    async def stop(self) -> None:
        self._forwarding.leave()
