"""One reporter, several observers' copies and what travels between them, without a clock or a bus.

What goes to the reporter keeps its order, as one pair's messages do (I-B7), and may be
lost. What goes to an observer is lost, doubled and overtaken: it comes by several paths.
"""

import json
from copy import deepcopy

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.machines.sync.observer_copy import State
from fsm.sync.copy import ObserverCore
from fsm.sync.leases import RepeatsCore
from fsm.sync.reporter import ReportedObject
from specs.bodies.object import ChangeObject, DataObject
from specs.trace import Op
from tests.support import lone_report
from tests.support.lone_copy import lone_copy, told

HA, URL = "hyperty://a.ex/ha", "comm://a.ex/o1"
RA = "hyperty-runtime://a.ex/ra"
OUTSIDER = "hyperty://a.ex/outsider"
FIRST = {"title": "to do", "a": {"b": 1}, "items": ["milk"]}


@attrs.frozen
class Asked:
    """What an observer's sync manager says to the reporter's end."""

    what: str
    life: int
    read: int = 0


@attrs.frozen
class Answer:
    """What comes back, to one life of an observer."""

    life: int
    reported: tuple


@attrs.define(eq=False)
class Side:
    """An observer and its runtime.

    Attributes:
        life: Of the copy; what was answered to an older one is nobody's.
        arriving: On its way here, in the order it was sent.
        leaving: On its way to the reporter.
        is_synced: Whether this copy has its snapshot.
    """

    observer: str
    manager: str
    copy: ObserverCore | None = None
    life: int = 0
    arriving: list = attrs.field(factory=list)
    leaving: list = attrs.field(factory=list)
    is_synced: bool = False
    is_cut: bool = False

    @property
    def is_there(self):
        """Whether a copy is kept."""
        return self.copy is not None and self.copy.state is not State.DELETED

    def deadline(self):
        return self.copy.deadline() if self.is_there else float("inf")


def sides(count):
    return [Side(f"hyperty://b.ex/h{n}", f"hyperty-runtime://b.ex/r{n}/sm") for n in range(count)]


def rewritten(value, change):
    """Say what a change makes of a value: by hand, in place, as the tests understand it.

    Parts that stand at two places are made two first: an edit of one leaves the other.
    """
    value, change = apart(value), attrs.evolve(change, value=apart(change.value))
    *way, name = change.attribute.split(".")
    at, removes = value, change.value is None or change.operation == "remove"
    for part in way:
        key, inner = found(at, part)
        if key is None:
            return value
        if not isinstance(inner, dict | list):
            if removes:
                return value
            inner = at[key] = {}
        at = inner
    key, present = found(at, name)
    if key is not None:
        put(at, key, present, change)
    return value


def written(value):
    """Return a value as JSON text, which tells 1 from true."""
    return json.dumps(value, sort_keys=True)


def apart(value):
    """Return a copy of a value no two parts of which are one object, unlike `deepcopy`."""
    return json.loads(json.dumps(value))


def found(at, part):
    """Return by which key a part of a path leads on, and to what; None: it does not."""
    if isinstance(at, dict):
        return part, at.get(part)
    is_there = part.isdigit() and int(part) < len(at)
    return (int(part), at[int(part)]) if is_there else (None, None)


def put(at, key, present, change):
    if change.index is not None:
        at[key] = list(present)
        adds, value = change.operation == "add", change.value
        gone, new = (0, value) if adds else (len(value) if isinstance(value, list) else value, [])
        at[key][change.index : change.index + gone] = new
    elif change.operation == "add":
        at[key] = [*(present if isinstance(present, list) else []), *change.value]
    elif change.operation == "remove":
        if isinstance(present, list):
            gone = {written(one) for one in change.value}
            at[key] = [one for one in present if written(one) not in gone]
    elif change.value is not None:
        at[key] = change.value
    elif isinstance(at, list) or key in at:
        del at[key]


class ObjectWorld:
    """Both ends, the messages between them, and what must be true at every moment.

    Args:
        reporter: The core of the reporter's end; another for a defect.
        copy: The core of an observer's copy; another for a defect.
        repeats: The core that has last changes said again; another for a defect.
    """

    def __init__(self, reporter=ReportedObject, copy=ObserverCore, repeats=RepeatsCore, count=3):
        self.now = 0.0
        self.repeats = repeats()
        self.make_copy = copy
        created = DataObject(HA, RA, deepcopy(FIRST), URL)
        self.reporter = lone_report.lone_report(created, core=reporter)
        self.history = {1: deepcopy(FIRST)}
        self.sides = sides(count)
        self.waiting = {}
        """Lives whose subscription the reporter's end has not answered, by observer."""
        self.undecided = []
        self.added = set()
        """Whom the reporter's end has reported as added, and not as removed."""
        self.is_deleted = False

    def side_of(self, observer):
        return next(side for side in self.sides if side.observer == observer)

    # --- the reporter's end ---------------------------------------------------------------

    def at_reporter(self, happened):
        effects = lone_report.told(self.reporter, happened)
        for effect in effects:
            self._of_reporter(effect)
        return effects

    def _of_reporter(self, effect):
        match effect:
            case Step() | ("vacate",) | Refused():
                pass
            case RowChanged(op, _, _, observer):
                (self.added.add if op is Op.ADD else self.added.discard)(observer)
            case ("grant", observer, snapshot, *_):
                self.repeats.observed(URL, self.now)
                assert observer in self.added, "a snapshot before its observer was added (I-D6)"
                assert snapshot == self.reporter.snapshot, "a snapshot that is not the newest"
                self._answer(observer, ("become", snapshot))
            case ("deny", observer, _, why):
                self._answer(observer, ("give_up", why))
            case ("ask", observer, question):
                self.undecided.append((observer, question))
            case ("publish", change):
                self._publish(change)
            case ("end", runtimes):
                for side in self.sides:
                    if side.manager.removesuffix("/sm") in runtimes:
                        side.arriving.append(("delete",))
            case _:
                raise AssertionError(effect)

    def _answer(self, observer, reported):
        side = self.side_of(observer)
        side.arriving += [Answer(life, reported) for life in self.waiting.pop(observer, ())]

    def _publish(self, change):
        assert not self.is_deleted, "a change of what is deleted (I-D8)"
        assert change.version == max(self.history) + 1, "versions rise by one (I-D2)"
        self.history[change.version] = rewritten(self.history[change.version - 1], change)
        assert self.reporter.snapshot.version == change.version
        assert written(self.reporter.snapshot.data) == written(self.history[change.version])
        self.repeats.published(self.reporter.snapshot, change, self.now)
        self._send(change)

    def _send(self, change):
        runtimes = self.reporter.runtimes
        assert set(self.reporter.observers) == self.added
        for side in self.sides:
            if side.manager.removesuffix("/sm") in runtimes:
                side.arriving.append(("change", change))

    def change(self, by, attribute, value=None, operation=None):
        """Ask for a change; whoever is not the reporter is refused, and nothing changes."""
        kind = None if operation is None else "array"
        before, asked = self.reporter.snapshot, ChangeObject(URL, attribute, value, kind, operation)
        reported = lone_report.kinds(self.at_reporter(("change", by, asked)))
        if by == HA and not self.is_deleted:
            assert reported == ["publish"], "the reporter may (SYN-13)"
        else:
            assert reported == ["refused"], "nobody else may (I-D1)"
            assert self.reporter.snapshot is before

    def delete(self, by):
        reported = self.at_reporter(("delete", by))
        if by != HA or self.is_deleted:
            assert lone_report.kinds(reported) == ["refused"]
        elif self.reporter.is_deleted:
            self.is_deleted = True
            self.repeats.forget(URL)

    def decide(self, place, yes):
        who, what = self.undecided.pop(place % len(self.undecided))
        reported = ("accept", who, what) if yes else ("refuse", who, "no", what)
        self.at_reporter(reported)

    # --- observers ------------------------------------------------------------------------

    def join(self, side):
        side.copy, side.is_synced = lone_copy(URL, side.observer, self.make_copy), False
        side.life += 1
        self.at_copy(side, ("begin",))
        side.leaving.append(Asked("subscribe", side.life))

    def leave(self, side):
        self.at_copy(side, ("give_up", "leaves"))
        side.leaving.append(Asked("unsubscribe", side.life))

    def crash(self, side):
        """The observer's runtime is gone, with all that was on its way to and from it."""
        side.copy, side.arriving, side.leaving = None, [], []

    def at_copy(self, side, happened):
        copy = side.copy
        before, is_read = copy.version, happened[0] == "become"
        was_there = side.is_there
        side.is_synced |= is_read
        for effect in told(copy, happened, now=self.now):
            assert was_there, "nothing comes of a copy that has ended (I-D7, I-D8)"
            match effect:
                case ("show", version, data):
                    assert side.is_synced, "nothing before the snapshot (I-D5)"
                    assert version > before, "versions rise (I-D12)"
                    assert version == before + 1 or is_read, "no gap but by a read (I-D3)"
                    assert written(data) == written(self.history[version]), (
                        "what the reporter had then"
                    )
                    before, is_read = version, False
                case ("read", read):
                    side.leaving.append(Asked("read", side.life, read))
                case Step() | ("end", _):
                    pass
                case _:
                    raise AssertionError(effect)

    def arrives(self, side, place, fate):
        """Let something come to an observer, or not, or stay to come once more."""
        place = min(place, len(side.arriving) - 1)
        what = side.arriving[place]
        if fate != "doubled":
            del side.arriving[place]
        if fate != "lost":
            self._take(side, what)

    def _take(self, side, what):
        if isinstance(what, Answer):
            if what.life != side.life:
                return
            what = what.reported
        if side.copy is not None:
            self.at_copy(side, what)
        if what == ("delete",):
            side.leaving.append(Asked("reported", side.life))

    def departs(self, side, fate):
        """Let the first of what an observer said come to the reporter's end, or not."""
        asked = side.leaving.pop(0)
        if fate == "lost":
            if asked.what == "read":  # its bus makes an answer of its own
                side.arriving.append(Answer(asked.life, ("read_failed", asked.read, "408")))
            return
        match asked.what:
            case "subscribe":
                self.waiting.setdefault(side.observer, []).append(asked.life)
                self.at_reporter(("subscribe", side.observer, side.manager))
            case "unsubscribe":
                self.at_reporter(("unsubscribe", side.observer, side.manager))
                assert side.observer not in self.reporter.observers, "who left is no observer"
            case "reported":
                self.at_reporter(("notified", {side.manager.removesuffix("/sm")}))
            case "read":
                side.arriving.append(Answer(asked.life, self._read(side)))

    def _read(self, side):
        if self.reporter.is_deleted or not self.reporter.may_read(side.observer):
            return ("give_up", "not an observer")
        return ("become", self.reporter.snapshot)

    # --- time -----------------------------------------------------------------------------

    def wait(self, seconds):
        self.now += seconds
        self.time_over()

    def time_over(self):
        while (
            again := self.repeats.due_change(self.now, lambda _: self.reporter.observers)
        ) is not None:
            self._send(again[1])
        for side in self.sides:
            if side.is_there:
                self.at_copy(side, ("time_over",))

    # --- quiet ----------------------------------------------------------------------------

    def deliver_all(self):
        """Let everything arrive, in order, until nothing is on its way."""
        while any(side.arriving or side.leaving for side in self.sides) or self.undecided:
            while self.undecided:
                self.decide(0, yes=True)
            for side in self.sides:
                while side.leaving:
                    self.departs(side, "taken")
                while side.arriving:
                    self.arrives(side, 0, "taken")

    def settle(self, seconds):
        """Let nothing happen any more but what both ends do by themselves, for so long."""
        until = self.now + seconds
        self.deliver_all()
        while (due := self.deadline()) <= until:
            self.now = max(self.now, due)
            self.time_over()
            self.deliver_all()
        self.now = until

    def deadline(self):
        return min(self.repeats.deadline(), *(side.deadline() for side in self.sides))

    def differing(self):
        """Return the copies that are kept and are not what the reporter has (I-D4)."""
        newest = self.reporter.snapshot
        return [
            (side.observer, side.copy.state, side.copy.version, newest.version)
            for side in self.sides
            if side.is_there
            and (
                self.is_deleted
                or side.copy.state is not State.LIVE
                or side.copy.version != newest.version
                or written(side.copy.data) != written(newest.data)
            )
        ]
