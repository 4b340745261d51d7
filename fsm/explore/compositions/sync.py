"""Composition of a reporter and an observer of its object: in the end, the copy equals the object.

Participants: `fsm.sync.reporter` and the repeats of `fsm.sync.leases` in the reporter's runtime,
`fsm.sync.copy` in the observer's. Faults and events: any message is lost or comes twice, and
changes overtake each other, since they come by several routes; the observer is invited, observes
and leaves; the object changes, and is deleted; the reporter agrees or refuses.

Left out, and why the result is still valid:

* Renewals of leases: a lease may end at any time, with renewals or without.
* Values that consist of more than one number: other tests check how changes are applied.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final

import attrs
from typing_extensions import override

from fsm.engine import Step
from fsm.explore import composition as plan
from fsm.explore.composition import Call, Condition, Event, UnsafeError
from fsm.machines.sync.invitation import INVITATION as INVITED
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION
from fsm.machines.sync.object_subscription import State as Subscription
from fsm.machines.sync.observer_copy import State
from fsm.sync.copy import ObserverCore
from fsm.sync.leases import RepeatsCore
from fsm.sync.reporter import ReportedObject
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.jsonvalue import JsonObject
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code

REPORTER: Final = "reporter"
OBSERVER: Final = "observer"
_ROUTES: Final = " by several routes"
CHANGES: Final = f"{OBSERVER}{_ROUTES}"

_URL: Final = "comm://a.ex/o"
_ALICE: Final = "hyperty://a.ex/ha"
_BOB: Final = "hyperty://b.ex/hb"
_MANAGER: Final = "hyperty-runtime://b.ex/rb/sm"
_RUNTIME: Final = "hyperty-runtime://a.ex/ra"
_SUBSCRIPTION: Final = Message(1, MessageType.SUBSCRIBE, _MANAGER, _URL)
_INVITATION: Final = Message(1, MessageType.CREATE, _ALICE, f"{_RUNTIME}/sm")
_VERSIONS: Final = 3
"""Number of versions of the object in one run."""


def _object(version: int) -> DataObject:
    return DataObject(_ALICE, _RUNTIME, {"n": version}, _URL, version=version)


class Reporter(plan.Host):
    """Reporter's side: the object, its reporter, and the bus, which answers for lost requests."""

    silent = frozenset({"relay", "row", "keep", "written", "cut_off", "vacate"})

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core = ReportedObject(_object(1), self)
        self._repeats = RepeatsCore()
        self._question: int | None = None
        self._notified_until = math.inf
        self._is_inviting = False

    @property
    def is_asked(self) -> bool:
        """True if the reporter has to decide about an observer."""
        return bool(self.core.asking)

    @property
    def is_observed(self) -> bool:
        """True if the reporter's side knows the observer as subscribed."""
        return _BOB in self.core.observers

    @property
    def waits_without_end(self) -> bool:
        """True if the object is deleted, and no deadline ends its subscription."""
        return self.core.is_deleted and self.is_observed and self._notified_until == math.inf

    @property
    def is_at_work(self) -> bool:
        """True if an answer of the reporter or the observer is still missing."""
        return self._is_inviting or self.is_asked

    @override
    def deadline(self) -> float:
        return min(super().deadline(), self._notified_until, self._repeats.deadline())

    @override
    def time_over(self) -> None:
        super().time_over()
        if self._notified_until <= self.now:
            self._notified_until = math.inf
            self.core.notified()
        change = self._repeats.due_change(self.now, lambda _: self.is_observed)
        if change is not None:
            self.send(CHANGES, "take_change", change[1].version)

    # --- events

    def invite_observer(self) -> None:
        self.core.invite(_INVITATION, _BOB, self.now)

    def modify(self) -> None:
        self.core.change(_ALICE, ChangeObject(_URL, "n", self.core.snapshot.version + 1))

    def say_yes(self) -> None:
        self.core.accept(_BOB, self._question or 0, self.now)

    def say_no(self) -> None:
        self.core.refuse(_BOB, "no", self._question or 0)

    # --- messages from the observer

    def subscribe(self) -> None:
        lease = OBJECT_SUBSCRIPTION.patience(Subscription.ACTIVE)
        seconds = None if lease == math.inf else int(lease)
        self.core.subscribe(_SUBSCRIPTION, _BOB, seconds, None, self.now)

    def unsubscribe(self) -> None:
        self.core.unsubscribe(_BOB, _MANAGER)

    def read(self, number: int) -> None:
        if self.core.is_deleted:
            self.send(OBSERVER, "not_found", number)
        elif self.core.may_read(_BOB):
            self.send(OBSERVER, "take_snapshot", self.core.snapshot.version, "read")
        else:
            self.send(OBSERVER, "take_refusal")

    def confirm_deletion(self) -> None:
        self.core.notified({_MANAGER.removesuffix("/sm")})

    def take_answer(self, code: int) -> None:
        self.core.take_answer(_BOB, code, "", self.now)

    # --- the port of the object

    @override
    def step(self, step: Step) -> None:
        super().step(step)
        if step.machine == INVITED.name:
            self._is_inviting = step.new not in INVITED.may_end

    def invite(self, _request: Message, _observer: str) -> None:
        self.send(OBSERVER, "be_invited")

    def publish(self, change: Change) -> None:
        self._repeats.published(self.core.snapshot, change, self.now)
        if self.is_observed:
            self.send(CHANGES, "take_change", change.version)

    def ask(self, _request: Message, _observer: str, question: int) -> None:
        self._question = question

    def grant(
        self, _requests: Sequence[Message], _terms: JsonObject, *, is_whole: bool = True
    ) -> None:
        """Send the object to the observer; repeated requests get equal answers."""
        assert is_whole  # noqa: S101 - no request says which version its observer has
        self._repeats.observed(_URL, self.now)
        self.send(OBSERVER, "take_snapshot", self.core.snapshot.version, "granted")

    def deny(self, *_: object) -> None:
        self.send(OBSERVER, "take_refusal")

    def end(self, runtimes: tuple[str, ...]) -> None:
        self._repeats.forget(_URL)
        if runtimes:
            self.send(CHANGES, "take_deletion")
            self._notified_until = self.now + REPLY_TIMEOUT


class Observer(plan.Host):
    """Observer's side, with its copy of the object while it observes.

    Attributes:
        is_invited: Whether it was invited and has not answered.
        parity: Whether the number of the newest read is odd: an answer is to that read or to the
            one before.
    """

    counters = frozenset({"_reads", "_is_whole"})
    silent = frozenset({"end"})

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._shown = 0
        self._is_whole = False
        self.core: ObserverCore | None = None
        self.is_invited = False
        self.parity = 0
        self._reads = 0

    @property
    def has_copy(self) -> bool:
        """True if the observer has a copy that has not ended."""
        return self.core is not None and self.core.state is not State.DELETED

    @override
    def time_over(self) -> None:
        was_syncing = self.core is not None and self.core.state is State.SYNCING
        super().time_over()
        if was_syncing:
            self.send(REPORTER, "unsubscribe")

    # --- events

    def observe(self) -> None:
        self.core, self._shown = ObserverCore(_URL, _BOB, self), 0
        self.core.begin(self.now)
        self.send(REPORTER, "subscribe")

    def leave(self) -> None:
        self._give("give_up", "leaves")
        self.send(REPORTER, "unsubscribe")

    def reply(self, code: int) -> None:
        self.is_invited = code < Code.OK
        self.send(REPORTER, "take_answer", code)

    # --- messages from the reporter

    def be_invited(self) -> None:
        self.is_invited = True

    def take_deletion(self) -> None:
        self.send(REPORTER, "confirm_deletion")
        self._give("delete")

    def take_snapshot(self, version: int, _: str) -> None:
        self._is_whole = True
        self._give("become", _object(version))
        self._is_whole = False

    def take_change(self, version: int) -> None:
        self._give("change", Change(version, "n", version, source=_ALICE))

    def take_refusal(self) -> None:
        self._give("give_up", "denied")

    def not_found(self, number: int) -> None:
        self._give("not_found", self._reads - (number != self.parity), "")

    def _give(self, name: str, *args: Hashable) -> None:
        if self.core is not None:
            self.give(self.core, Call(name, args))

    # --- the port of the copy

    def show(self, version: int, data: JsonObject, _: Change | None) -> None:
        """Check that a new value has the next version and equals the reporter's."""
        previous, self._shown = self._shown, version
        is_whole, self._is_whole = self._is_whole, False
        if previous == 0 and not is_whole:
            raise UnsafeError("a change is applied before the snapshot (I-D5)")
        if version <= previous or (version > previous + 1 and not is_whole):
            raise UnsafeError("a change is applied that is not the next one (I-D3)")
        if data != {"n": version}:
            raise UnsafeError("a copy has a value that the reporter never had (I-D4)")

    def read(self, number: int) -> None:
        """Request the whole object from the reporter."""
        self._reads, self.parity = number, number % 2
        self.send(REPORTER, "read", self.parity)


# --- the compositions


def _is_there(reporter: Reporter) -> bool:
    return not reporter.core.is_deleted


def _may_change(reporter: Reporter) -> bool:
    return _is_there(reporter) and reporter.core.snapshot.version < _VERSIONS


def _is_asked(reporter: Reporter) -> bool:
    return reporter.is_asked


def _is_invited(observer: Observer) -> bool:
    return observer.is_invited


def _is_ahead(reporter: Reporter, observer: Observer) -> bool:
    copy = observer.core
    return copy is not None and copy.version > reporter.core.snapshot.version


def _agrees(reporter: Reporter, observer: Observer) -> bool:
    copy = observer.core
    is_same = copy is not None and copy.version == reporter.core.snapshot.version
    is_live = copy is not None and copy.state is State.LIVE
    return is_live and is_same and _is_there(reporter) and not reporter.is_at_work


def _is_apart(reporter: Reporter, observer: Observer) -> bool:
    return not (observer.has_copy or reporter.is_observed or reporter.is_at_work)


_ANSWERED: Final = "the invitation is answered"
_INVITED: Final = Event("the observer is invited", REPORTER, "invite_observer", _is_there)
_OBSERVES: Final = Event(
    "the observer observes", OBSERVER, "observe", lambda observer: observer.core is None
)
_LEAVES: Final = Event("the observer leaves", OBSERVER, "leave", lambda observer: observer.has_copy)
_CHANGES: Final = Event("the object changes", REPORTER, "modify", _may_change, 2)
_DELETED: Final = Event("the object is deleted", REPORTER, Call("delete", (_ALICE,)), _is_there)
_YES: Final = Event("the reporter says yes", REPORTER, "say_yes", _is_asked)
_NO: Final = Event("the reporter says no", REPORTER, "say_no", _is_asked)
_ANSWERS: Final = (
    Event(f"{_ANSWERED}: accept", OBSERVER, Call("reply", (200,)), _is_invited, None),
    Event(f"{_ANSWERED}: decline", OBSERVER, Call("reply", (403,)), _is_invited, None),
    Event(f"{_ANSWERED}: trying", OBSERVER, Call("reply", (100,)), _is_invited),
)

_BOTH: Final = (REPORTER, OBSERVER)

SYNC: Final = plan.Composition(
    name="sync",
    places={REPORTER: Reporter, OBSERVER: Observer},
    channels=(
        *plan.both_ways(OBSERVER, REPORTER),
        plan.Channel(REPORTER, OBSERVER, plan.Medium.UNORDERED, _ROUTES),
    ),
    events=(_OBSERVES, _CHANGES, _YES),
    never=(
        Condition(
            "A deleted object has an observer, and no time at which it has none (I-D8).",
            (REPORTER,),
            lambda reporter: reporter.waits_without_end,
        ),
        Condition("A copy is newer than the object (I-D4).", _BOTH, _is_ahead),
    ),
    ends=(
        Condition("the copy is what the reporter has", _BOTH, _agrees),
        Condition("no observers", _BOTH, _is_apart),
    ),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=2),
    is_timely=True,
    early=1,
    horizon=1.0,
)
"""Composition: an observer of an object that changes."""

_NARROW: Final = attrs.evolve(SYNC, bounds=plan.Bounds(losses=1, duplicates=1, channel=1))

SYNC_ENDS: Final = attrs.evolve(
    _NARROW, name="sync-ends", events=(_OBSERVES, _CHANGES, _DELETED, _YES), early=0
)
"""Composition: an observed object changes and is deleted; then it has no observers."""

SYNC_LEAVE: Final = attrs.evolve(
    _NARROW, name="sync-leave", events=(_OBSERVES, _LEAVES, _DELETED, _YES, _NO)
)
"""Composition: an observer that comes and leaves, of an object that is deleted."""

INVITATION: Final = attrs.evolve(
    _NARROW, name="invitation", events=(_INVITED, _OBSERVES, _DELETED, _YES, _NO, *_ANSWERS)
)
"""Composition: an observer is invited to an object, which is deleted."""

COMPOSITIONS: Final = (SYNC, SYNC_ENDS, SYNC_LEAVE, INVITATION)
