"""Defects of the product, put in on purpose: each must be found, or the checker checks nothing.

Each takes the place of one method of one class while a run goes on.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

import attrs
import trio

from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.mini_bus import MiniBus
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.bus.outbound import Outbound
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.objects.children import Child, Children
from actors.runtime.objects.observation import ObservedObject
from actors.runtime.objects.participant import ObjectError
from actors.runtime.sync.children import ReportedChildren
from actors.runtime.sync.observer import ObservedObjects
from fsm.bus.receiving_order import PairOrderCore
from fsm.bus.transactions import TransactionsCore
from fsm.session.stub_client import StubClientCore
from fsm.sync.copy import ObserverCore
from specs.child import child_name
from specs.limits.sync import BUSY_PAUSE, CHILD_TRIES
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS, Code
from tests.simulation.judgement.evidence import ProcessTracer
from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.stored import stored_plan_of
from tests.support.shape import assert_same_shape

Defect = tuple[type, str, Callable]
"""Whose method is replaced, its name, and what makes the other from the one."""


def _no_dedup(_refuse_repetition):
    return lambda self, message, now: None


def _by_domain(_send_by_route):
    """An answer whose link has ended goes by the node of its receiver's domain."""
    return Outbound.send_via


def _no_holding(_arrives):
    """What a link brings is taken at once, and nobody knows what came before."""

    def arrives(self, message, path, what):
        self._pairs.clear()
        return [what]

    return arrives


def _leave_in_words_only(_leave):
    def leave(self, request, _body):
        self.out.answer(request, Code.OK)

    return leave


def _yes_to_everything(said):
    """Every fifth request is agreed to, and forgotten."""

    async def answer(self, request):
        value = request.body.get("value")
        if isinstance(value, dict) and value.get("n", 1) % 5 == 0:
            return value
        return await said(self, request)

    return answer


def _last_value(said):
    """A hyperty that is asked twice in a row answers the second as the first."""
    last = {}

    async def answer(self, request):
        value = await said(self, request)
        return last.setdefault((self, request.from_), value) if value else value

    return answer


def _no_patience_ever_ends(_deadline):
    return lambda self: math.inf


def _never_again(pause):
    """A stub that has lost its link waits for better days."""

    def wait(self, why, now):
        pause(self, why, now)
        self._until = self._give_up = math.inf

    return wait


def _shown_twice(show):
    def twice(self, *reported):
        show(self, *reported)
        show(self, *reported)

    return twice


def _one_behind(show):
    """A copy shows the change before the last."""
    kept = {}

    def late(self, *reported):
        show(self, *kept.get(self, reported))
        kept[self] = reported

    return late


def _never_asks(_hear):
    """A copy that hears nothing for long thinks nothing of it."""
    return lambda self, now: None


def _all_but_removals(apply):
    """A copy that is ordered to take something out of an array keeps it."""

    def keep(self, change, *rest):
        kept = attrs.evolve(change, value=[]) if change.operation == "remove" else change
        return apply(self, kept, *rest)

    return keep


def _two_in_one(try_tell):
    """Every other message to a hyperty waits for the next one, and comes behind it."""
    kept = {}

    def later(self, delivery):
        message = delivery.message
        if message.type is not MessageType.CREATE or "n" not in (message.body.get("value") or {}):
            return try_tell(self, delivery)
        if self in kept:
            return try_tell(self, delivery) and try_tell(self, kept.pop(self))
        kept[self] = delivery
        return True

    return later


def _unreported(record):
    """That a session is detached is reported to nobody."""

    def tell(self, actor, fact):
        if fact.new != "detached":
            record(self, actor, fact)

    return tell


def _decided_by_stubs(_is_decided_here):
    """What a stub says of a copy refuses a child that the reporter's end has."""
    return lambda self, address: False


def _another_child(_create):
    """Each attempt to create a child creates one of its own."""

    async def create(self, value):
        async with self._turn:
            for _ in range(CHILD_TRIES):
                number = self._participant.ids.next(self._participant.url)
                name = child_name(self._participant.url, number)
                op = self._op(MessageType.CREATE, name, number, value)
                answer = await self._insist(op)
                if answer.code != Code.UNAVAILABLE:
                    break
                await trio.sleep(BUSY_PAUSE)
            if answer.code > LAST_SUCCESS:
                raise ObjectError(self._url, answer.code, "it was not created")
            self._tell(partial(self._core.take, op))
            return Child(op.name, self)

    return create


def _numbered_twice(sound):
    """A report that waits for the disk has one id for the reporter and another for all others."""

    def report(self, op, *, is_by_node):
        if is_by_node:
            sound(self, op, is_by_node=is_by_node)
            return
        report = self._report_of(op, self._children.find(op.name))
        self._out.post(report)
        if op.creator != self.reporter:
            self._pass_on(report)

    return report


@attrs.frozen
class Trial:
    """A defect and how it is found.

    Attributes:
        rule: What it breaks.
        seed: A run that shows it.
        also: Another one, without which it does no harm.
        made: How the seed makes a plan.
    """

    rule: str
    seed: int
    defect: Defect
    also: tuple[Defect, ...] = ()
    made: Callable[[int], Plan] = plan_of

    @property
    def plan(self) -> Plan:
        """The run that shows it."""
        return self.made(self.seed)


DEFECTS: Final[Mapping[str, Trial]] = {
    "repeats are let in": Trial("crashed", 58, (OpenRequests, "refuse_repetition", _no_dedup)),
    "paths are not waited for": Trial("order", 30401, (PairOrderCore, "arrives", _no_holding)),
    "answers take two nodes": Trial("claim I-B7", 30218, (Outbound, "send_by_route", _by_domain)),
    "messages overtake": Trial("order", 100, (MiniBus, "try_tell", _two_in_one)),
    "leaves in words only": Trial(
        "after_leaving", 8, (ObservedObjects, "leave", _leave_in_words_only)
    ),
    "agreed and forgotten": Trial(
        "acknowledged", 1, (HypertyHost, "_call_handler", _yes_to_everything)
    ),
    "answers are mixed up": Trial("addressee", 1, (HypertyHost, "_call_handler", _last_value)),
    "no patience ever ends": Trial(
        "answered", 2, (TransactionsCore, "deadline", _no_patience_ever_ends)
    ),
    "never dials again": Trial("converged", 2, (StubClientCore, "_pause", _never_again)),
    "changes are shown twice": Trial("versions", 1, (ObservedObject, "show", _shown_twice)),
    "copies are late": Trial("agreed", 1, (ObservedObject, "show", _one_behind)),
    "copies never ask": Trial("agreed", 30, (ObserverCore, "_hear", _never_asks)),
    "nothing is taken out": Trial("claim I-D4", 1, (ObserverCore, "_apply", _all_but_removals)),
    "a child has many names": Trial(
        "agreed",
        9500010,
        (Children, "create", _another_child),
        ((MessageBus, "_is_decided_here", _decided_by_stubs),),
        stored_plan_of,
    ),
    "reports are numbered twice": Trial(
        "claim I-B8", 9500006, (ReportedChildren, "_report", _numbered_twice), made=stored_plan_of
    ),
    "a step is not reported": Trial(
        "machine no_gap_between_steps", 2, (ProcessTracer, "record", _unreported)
    ),
}
"""By name; each replaces one method, or makes another of it."""


@contextmanager
def defective(*defects: Defect) -> Iterator[None]:
    """Have defects in the product."""
    sound = [owner.__dict__[name] for owner, name, _ in defects]
    for (owner, name, make), was in zip(defects, sound, strict=True):
        broken = make(was)
        assert_same_shape(was, broken)
        setattr(owner, name, broken)
    try:
        yield
    finally:
        for (owner, name, _), was in zip(defects, sound, strict=True):
            setattr(owner, name, was)
