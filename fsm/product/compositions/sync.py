"""A reporter and an observer of its object: at rest, the copy equals its value.

Participants: `fsm.sync.reporter`, `fsm.sync.invitations`, `fsm.sync.leases` and `fsm.sync.leases`
at the reporter's end, `fsm.sync.copy` at the observer's. What may happen: any message is lost or
comes twice, and changes overtake each other, for they come by several routes; the observer is
invited, observes and leaves; the object changes, and is deleted; the reporter says yes or no.

Left out, and why that is no loss:

* Renewals of leases: a lease may be over at any time, with or without.
* What is in a value but one number: how values are made of changes has tests of its own.
"""

import math
from collections.abc import Collection, Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.machines.sync.invitation import INVITATION as INVITED
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION
from fsm.machines.sync.object_subscription import State as Subscription
from fsm.machines.sync.observer_copy import State
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Medium,
    Never,
    Patience,
    Place,
    Plan,
    Situation,
    UnsafeError,
)
from fsm.sync.copy import ObserverCore
from fsm.sync.invitations import InvitationsCore
from fsm.sync.leases import LeasesCore, RepeatsCore
from fsm.sync.reporter import ReportedObject
from fsm.sync.stored import Keep
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.jsonvalue import JsonObject
from specs.limits.protocol import LEASE
from specs.reply_code import Code

REPORTER: Final = "reporter"
OBSERVER: Final = "observer"
ASKS: Final = "asks"
ANSWERS: Final = "answers"
CHANGES: Final = "changes"

_URL: Final = "comm://a.ex/o"
_ALICE: Final = "hyperty://a.ex/ha"
_BOB: Final = "hyperty://b.ex/hb"
_MANAGER: Final = "hyperty-runtime://b.ex/rb/sm"
_RUNTIME: Final = "hyperty-runtime://a.ex/ra"
_VERSIONS: Final = 3
"""Versions of the object in one run."""


@final
@attrs.frozen(slots=True)
class Sent:
    """A message about the object.

    Attributes:
        what: The request, answer or report.
        number: The version that it brings, the number of a read, or the code of an answer.
    """

    what: str
    number: int = 0

    @override
    def __str__(self) -> str:
        """The event in words."""
        return f"{self.what} {self.number or ''}".rstrip()


def _object(version: int) -> DataObject:
    return DataObject(_ALICE, _RUNTIME, {"n": version}, _URL, version=version)


@final
class ReporterPlace(Host):
    """The reporter's end of the object."""

    def __init__(self) -> None:
        super().__init__()
        self.core = ReportedObject(_object(1), self)
        self.invitations = InvitationsCore(self)
        self._repeats = RepeatsCore()
        self._leases = LeasesCore()
        self._question: int | None = None
        self._asked_until = math.inf
        self._notified_until = math.inf
        self._is_inviting = False

    @property
    def is_asked(self) -> bool:
        """True if the reporter is to say yes or no."""
        return self._question is not None

    @property
    def is_observed(self) -> bool:
        """True if the observer is one, as far as this end knows."""
        return _BOB in self.core.observers

    @property
    def waits_without_end(self) -> bool:
        """True if the object is deleted, and its observer is not notified in time."""
        return self.core.is_deleted and self.is_observed and self._notified_until == math.inf

    @property
    def is_at_work(self) -> bool:
        """True if an answer is awaited."""
        return self._is_inviting or self.is_asked

    @override
    def deadline(self) -> float:
        waits = min(self._asked_until, self._notified_until, self.invitations.deadline())
        return min(waits, self._repeats.deadline(), self._leases.deadline())

    @override
    def time_over(self) -> None:
        if self.invitations.deadline() <= self.now:
            self.invitations.time_over(self.now)
        if self._notified_until <= self.now:
            self._notified_until = math.inf
            self.core.notified()
        if self._asked_until <= self.now and self._question is not None:
            self.core.refuse(_BOB, "no answer came", self._decided())
        for _, observer in self._leases.due(self.now):
            self.core.expire(observer)
        again = self._repeats.due(self.now, lambda _: self.is_observed)
        if again is not None:
            self.send(CHANGES, Sent("changed", again[1].version))

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent("subscribe"):
                self.core.subscribe(_BOB, _MANAGER, LEASE)
            case Sent("unsubscribe"):
                self.core.unsubscribe(_BOB, _MANAGER)
            case Sent("read", number):
                self._read(number)
            case Sent("heard"):
                self.core.notified({_MANAGER.removesuffix("/sm")})
            case Sent("answer", code):
                self.invitations.take_answer(_URL, _BOB, code, "", self.now)
            case str(wanted):
                self._want(wanted)
            case _:
                raise TypeError(happened)

    def _want(self, wanted: str) -> None:
        match wanted:
            case "invite":
                self.invitations.invite(_URL, _BOB, self.now)
                self.core.authorise(_BOB)
            case "change":
                self.core.change(_ALICE, ChangeObject(_URL, "n", self.core.snapshot.version + 1))
            case "delete":
                self.invitations.withdraw(_URL)
                self.core.delete(_ALICE)
                self._repeats.forget(_URL)
            case "yes" if self._question is not None:
                self.core.accept(_BOB, self._decided())
            case "no" if self._question is not None:
                self.core.refuse(_BOB, "no", self._decided())
            case _:
                raise TypeError(wanted)

    def _decided(self) -> int:
        """Return the question, which is open no more."""
        question, self._question, self._asked_until = self._question, None, math.inf
        return question or 0

    def _read(self, number: int) -> None:
        if self.core.is_deleted:
            self.send(ANSWERS, Sent("nothing there", number))
        elif self.core.may_read(_BOB):
            self.send(ANSWERS, Sent("value", self.core.snapshot.version))
        else:
            self.send(ANSWERS, Sent("denied"))

    # --- the ports of the object and of the invitations

    def step(self, step: Step) -> None:
        """Note a step."""
        self.moved([step])
        if step.machine == INVITED.name:
            self._is_inviting = step.new not in INVITED.may_end

    def send_invitation(self, url: str, observer: str) -> None:
        """Invite the observer."""
        del url, observer
        self.send(ANSWERS, Sent("invite"))

    def relay(self, url: str, observer: str, code: int, why: str) -> None:
        """Tell nobody: the reporter is part of this place."""

    def row(self, row: RowChanged) -> None:
        """Trace nothing."""

    def keep(self, change: Keep) -> None:
        """Store nothing."""

    def written(self, snapshot: DataObject) -> None:
        """Trace nothing."""

    def publish(self, change: Change) -> None:
        """Send a change, if the observer is one."""
        self._repeats.published(self.core.snapshot, change, self.now)
        if self.is_observed:
            self.send(CHANGES, Sent("changed", change.version))

    def lease(self, observer: str, seconds: int | None) -> None:
        """Begin a lease, or end it."""
        if seconds is None:
            self._leases.end(_URL, observer)
        else:
            self._leases.begin(_URL, observer, seconds, self.now)

    def ask(self, observer: str, patience: float, question: int) -> None:
        """Ask the reporter, which is part of this place."""
        del observer
        self._question, self._asked_until = question, self.now + patience

    def grant(
        self, observer: str, snapshot: DataObject, lease: int | None, *, is_renewal: bool
    ) -> None:
        """Answer with the object."""
        del observer, lease, is_renewal
        self._decided()
        self._repeats.observed(_URL, self.now)
        self.send(ANSWERS, Sent("granted", snapshot.version))

    def renew(self, observer: str, lease: int | None) -> None:
        """Answer nothing: no observer renews here."""

    def deny(self, observer: str, code: Code, why: str) -> None:
        """Answer with a refusal."""
        del observer, code, why
        self._decided()
        self.send(ANSWERS, Sent("denied"))

    def cut_off(self, observer: str, manager: str, *, is_over: bool) -> None:
        """Say nothing: a lease is over, and that is a loss like others."""

    def end(self, runtimes: tuple[str, ...]) -> None:
        """Notify the observer."""
        if runtimes:
            self.send(CHANGES, Sent("deleted"))
            self._notified_until = self.now + OBJECT_SUBSCRIPTION.patience(Subscription.ACTIVE)

    def vacate(self) -> None:
        """Keep what is left."""


@final
class ObserverPlace(Host):
    """The observer's end: its copy, while it has one.

    Attributes:
        is_invited: Whether it has been, and has not answered.
        parity: Whether the newest read is an odd one: an answer is to that or to the one before.
    """

    counters = frozenset({"_reads", "_is_whole"})

    def __init__(self) -> None:
        super().__init__()
        self._shown = 0
        self._is_whole = False
        self.copy: ObserverCore | None = None
        self.is_invited = False
        self.parity = 0
        self._reads = 0

    @property
    def has_copy(self) -> bool:
        """True if a copy is kept."""
        return self.copy is not None and self.copy.state is not State.DELETED

    @override
    def deadline(self) -> float:
        return float("inf") if self.copy is None else self.copy.deadline()

    @override
    def time_over(self) -> None:
        if self.copy is not None:
            was_syncing = self.copy.state is State.SYNCING
            self.copy.time_over(self.now)
            if was_syncing:
                self.send(ASKS, Sent("unsubscribe"))

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case "observe":
                self.copy, self._shown = ObserverCore(_URL, _BOB, self), 0
                self.copy.begin(self.now)
                self.send(ASKS, Sent("subscribe"))
            case "leave":
                if self.copy is not None:
                    self.copy.give_up("leaves", self.now)
                self.send(ASKS, Sent("unsubscribe"))
            case "accept" | "decline" | "trying":
                self.is_invited = happened == "trying"
                code = {"accept": 200, "decline": 403, "trying": 100}[happened]
                self.send(ASKS, Sent("answer", code))
            case Sent("invite"):
                self.is_invited = True
            case Sent(what):
                if what == "deleted":
                    self.send(ASKS, Sent("heard"))
                if self.copy is not None:
                    self._hear(self.copy, happened, self.now)
            case _:
                raise TypeError(happened)

    def _hear(self, copy: ObserverCore, said: Sent, now: float) -> None:
        self._is_whole = said.what in {"granted", "value"}
        match said.what:
            case "deleted":
                copy.delete(now)
            case "granted" | "value":
                copy.become(_object(said.number), now)
            case "changed":
                copy.change(_change(said.number), now)
            case "denied":
                copy.give_up("denied", now)
            case "nothing there":
                copy.not_found(self._reads - (said.number != self.parity), "", now)
            case what:
                raise TypeError(what)

    # --- the port of the copy

    def step(self, step: Step) -> None:
        """Note a step."""
        self.moved([step])

    def show(self, version: int, data: JsonObject, change: Change | None) -> None:
        """Look at a new value."""
        del change
        before, self._shown = self._shown, version
        is_whole, self._is_whole = self._is_whole, False
        if before == 0 and not is_whole:
            raise UnsafeError("a change is applied before the snapshot (I-D5)")
        if version <= before or (version > before + 1 and not is_whole):
            raise UnsafeError("a change is applied that is not the next one (I-D3)")
        if data != {"n": version}:
            raise UnsafeError("a copy has a value that the reporter never had (I-D4)")

    def read(self, number: int) -> None:
        """Ask for the object."""
        self._reads, self.parity = number, number % 2
        self.send(ASKS, Sent("read", self.parity))

    def end(self, why: str) -> None:
        """Keep the copy as it is."""


def _change(version: int) -> Change:
    return Change(version, "n", version, source=_ALICE)


def _reporter(now: Situation) -> ReporterPlace:
    return now.at(REPORTER, ReporterPlace)


def _observer(now: Situation) -> ObserverPlace:
    return now.at(OBSERVER, ObserverPlace)


def _is_there(now: Situation) -> bool:
    return not _reporter(now).core.is_deleted


def _may_change(now: Situation) -> bool:
    return _is_there(now) and _reporter(now).core.snapshot.version < _VERSIONS


_INVITED: Final = "the observer is invited"
_CHANGES: Final = "the object changes"
_OBSERVES: Final = "the observer observes"
_LEAVES: Final = "the observer leaves"
_DELETED: Final = "the object is deleted"
_YES: Final = "the reporter says yes"
_NO: Final = "the reporter says no"

_EVENTS: Final = (
    Event(_INVITED, REPORTER, "invite", when=_is_there),
    Event(_OBSERVES, OBSERVER, "observe", when=lambda now: _observer(now).copy is None),
    Event(_LEAVES, OBSERVER, "leave", when=lambda now: _observer(now).has_copy),
    Event(_CHANGES, REPORTER, "change", when=_may_change, budget=2),
    Event(_DELETED, REPORTER, "delete", when=_is_there),
    *(
        Event(f"the reporter says {word}", REPORTER, word, when=lambda now: _reporter(now).is_asked)
        for word in ("yes", "no")
    ),
    *(
        Event(
            f"the invitation is answered: {word}",
            OBSERVER,
            word,
            when=lambda now: _observer(now).is_invited,
            budget=1 if word == "trying" else None,
        )
        for word in ("accept", "decline", "trying")
    ),
)


def _is_ahead(now: Situation) -> bool:
    copy = _observer(now).copy
    return copy is not None and copy.version > _reporter(now).core.snapshot.version


def _agrees(now: Situation) -> bool:
    copy, reporter = _observer(now).copy, _reporter(now)
    is_same = copy is not None and copy.version == reporter.core.snapshot.version
    is_live = copy is not None and copy.state is State.LIVE
    return is_live and is_same and _is_there(now) and not reporter.is_at_work


def _is_apart(now: Situation) -> bool:
    reporter = _reporter(now)
    return not _observer(now).has_copy and not reporter.is_observed and not reporter.is_at_work


_RESTS: Final = (
    End("the copy is what the reporter has", (REPORTER, OBSERVER), _agrees),
    End("no observers", (REPORTER, OBSERVER), _is_apart),
)


_FAULTS: Final = Bounds(losses=1, duplicates=1, channel=1)


def _plan(
    name: str, about: str, events: Collection[str], bounds: Bounds = _FAULTS, early: int = 1
) -> Plan:
    def compose(taken: Bounds) -> Composition:
        return Composition(
            name=name,
            about=about,
            places=(Place(REPORTER, ReporterPlace), Place(OBSERVER, ObserverPlace)),
            channels=(
                Channel(ASKS, OBSERVER, REPORTER),
                Channel(ANSWERS, REPORTER, OBSERVER),
                Channel(CHANGES, REPORTER, OBSERVER, Medium.UNORDERED),
            ),
            events=[event for event in _EVENTS if event.name in events],
            never=_NEVER,
            ends=_RESTS,
            bounds=taken,
            patience=Patience.AT_REST,
            early=early,
            horizon=1.0,
        )

    return Plan(name, compose, bounds)


_NEVER: Final = (
    Never(
        "A deleted object has an observer, and no time at which it has none.",
        "I-D8",
        (REPORTER,),
        lambda now: _reporter(now).waits_without_end,
    ),
    Never("A copy is newer than the object.", "I-D4", (REPORTER, OBSERVER), _is_ahead),
)

SYNC: Final = _plan(
    "sync",
    "An observer of an object that changes.",
    (_OBSERVES, _CHANGES, _YES),
    attrs.evolve(_FAULTS, channel=2),
)
"""A copy is what the reporter has."""

SYNC_ENDS: Final = _plan(
    "sync-ends",
    "An observer of an object that changes and is deleted.",
    (_OBSERVES, _DELETED, _CHANGES, _YES),
    early=0,
)
"""A deleted object has no observers."""

SYNC_LEAVE: Final = _plan(
    "sync-leave",
    "An observer that comes and goes, of an object that is deleted.",
    (_OBSERVES, _LEAVES, _DELETED, _YES, _NO),
)
"""A departed hyperty does not observe."""

INVITATION: Final = _plan(
    "invitation",
    "An observer that is invited to an object which is deleted.",
    {event.name for event in _EVENTS} - {_CHANGES, _LEAVES},
)
"""An invited hyperty may observe."""
