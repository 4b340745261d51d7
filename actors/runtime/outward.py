"""The ways out of a Message BUS: what has no listener here goes by a stub (BUS-06, BUS-17)."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, final

from actors.runtime.handing import Handing
from actors.runtime.hops import Hops
from actors.runtime.link_listener import LinkListener, Listener
from actors.runtime.route_cache import Asking, RouteCache
from fsm.cores.branch import BranchCore
from fsm.cores.intent import Intent
from fsm.cores.pair_path import Forward, PairPathCore
from fsm.cores.resolve_effects import NoRoute
from fsm.cores.resolve_inputs import Asked
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op

if TYPE_CHECKING:
    from actors.kit.actor import ActorRef
    from actors.runtime.bus_messages import BusQuestion

__all__ = ["Outward", "Refuse"]

Refuse: TypeAlias = Callable[[Message, Code, str, float], None]
"""Ends a message that goes nowhere."""


@final
class Outward:
    """Routes of one runtime, and the order of what goes by them; part of the bus's task.

    Attributes:
        routes: The ways out that the registry told.
        registry: Knows the ways out; None before it has joined.
    """

    def __init__(self, handing: Handing, hops: Hops, refuse: Refuse) -> None:
        self.routes = RouteCache()
        self.registry: ActorRef[BusQuestion] | None = None
        self._handing = handing
        self._hops = hops
        self._refuse = refuse
        self._paths = PairPathCore()
        self._waiting: dict[LinkListener, None] = {}

    def go(self, message: Message, intent: Intent, now: float) -> None:
        """Send a message by the route to its target; it waits until the registry knows one."""
        route = self.routes.find(message.to, intent, now)
        if route is not None:
            self.go_by(message, route, now)
            return
        match self.routes.wait(message, intent):
            case Asking.ASK:
                self.ask(message.to, intent, now)
            case Asking.FULL:
                self._refuse(message, Code.TOO_LARGE, "too many wait for a route", now)
            case Asking.WAIT:
                pass

    def ask(self, to: str, intent: Intent, now: float) -> None:
        """Ask the registry for the way to a target."""
        asked = Asked(to, intent)
        if self.registry is None or not self.registry.try_tell(asked):
            self.no_route(NoRoute(to, intent, Code.UNAVAILABLE, "the registry is busy"), now)

    def no_route(self, refused: NoRoute, now: float) -> None:
        """Take the registry's refusal: those who waited are refused, each once."""
        messages, following = self.routes.refused(refused.to, refused.intent)
        for message in messages:
            self._refuse(message, refused.code, refused.why, now)
        if following is not None:
            self.ask(refused.to, following, now)

    def go_by(self, message: Message, route: str, now: float) -> None:
        """Send a message by this route, behind what the pair has under way."""
        if message.is_response:
            self.send(Forward(message, route), now)
            return
        forwards = self._paths.send(message, route, now)
        if not any(forward.message is message for forward in forwards):
            self._hops.say(Op.QUEUE, message)
        self._flush(forwards, now, message)

    def settled(self, request: Message, now: float) -> None:
        """Note that a request has its final answer, or needs none: what it held up goes."""
        if not request.is_response:
            forwards = self._paths.settled(request.from_, request.to, request.id, now)
            if forwards:
                self._flush(forwards, now)

    def send(self, forward: Forward, now: float) -> None:
        """Give a message to the stub of a route."""
        if self._handing.give(forward.message, forward.route):
            return
        if self._handing.is_there(forward.route):
            self._refuse(forward.message, Code.TOO_LARGE, "the stub's mailbox is full", now)
        else:
            self._refuse(forward.message, Code.UNAVAILABLE, "the stub is gone", now)

    def returned(self, messages: tuple[Message, ...], by: str) -> None:
        """Note that a stub gave these back: they are routed again, before what is younger."""
        self.routes.forget_stub(by)
        self._paths.returned(messages)

    def branch(self, address: str, stub: Listener, link: str, now: float) -> LinkListener:
        """Make a link a listener of what is told at an address, behind what went by the node."""
        until = self._paths.arrived_at(_teller(address), address, now)
        return LinkListener(stub, link, BranchCore(until), self._wait)

    def _wait(self, branch: LinkListener) -> None:
        self._waiting[branch] = None

    def branch_ended(self, address: str, branch: LinkListener) -> None:
        """Let what is told from now on wait for what this link was given (I-B7)."""
        self._flush_branch(branch, math.inf)
        if branch.branch.last is not None:
            self._paths.went_otherwise(_teller(address), address, *branch.branch.last)

    def deadline(self) -> float:
        """Return when something that is held may go."""
        waiting = [one.branch.deadline() for one in self._waiting]
        return min([self._paths.deadline(), *waiting])

    def tick(self, now: float) -> None:
        """Let go what was held for long enough."""
        for branch in tuple(self._waiting):
            self._flush_branch(branch, now)
        self._flush(self._paths.tick(now), now)

    def _flush_branch(self, branch: LinkListener, now: float) -> None:
        for delivery in branch.flush(now):
            self._hops.dropped(delivery.message, DropReason.OVERFLOW)
        if branch.branch.deadline() == math.inf:
            self._waiting.pop(branch, None)

    def _flush(self, forwards: list[Forward], now: float, direct: Message | None = None) -> None:
        for forward in forwards:
            if forward.message is not direct:
                self._hops.say(Op.FLUSH, forward.message)
            self.send(forward, now)


def _teller(address: str) -> str:
    """Return who tells what is heard at an address: `O` at `O/changes`."""
    return address.rpartition("/")[0]
