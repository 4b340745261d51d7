"""Folds of what goes along with the steps of stubs; the machines judge these (I-S3..I-S9)."""

from collections import defaultdict
from typing import Final, final

from typing_extensions import override

from fsm.judge.claims.fold import Fold, Place, Process, any_msg, at_bus, msg, on, rows, steps
from fsm.judge.claims.records import BUS, LINK_MACHINE, LISTENERS, LIVE, SLACK, split
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import last_segment, status_of
from specs.limits.protocol import STUB_QUEUE
from specs.trace import ABSENT, Op

__all__ = [
    "DeployBeforeRun", "EventForChange", "QueueOrder", "StatusShape", "TableAgrees",
    "TransmitWhenLive", "Unique",
]  # fmt: skip

_CONNECTION: Final = "stub_connection"
_DEPLOYMENT: Final = "stub_deployment"
_STATUS: Final = "status"
_NOT_OF_A_CONNECTION: Final = frozenset({"deploying", "deployment-failed", "undeployed"})


@final
class StatusShape(Fold, claims=("I-S3",), place=Place.RUNTIME):
    """A status is announced by its owner, to its own place (I-S3)."""

    @on(at_bus(Op.ADMIT))
    def admitted(self, record: TraceLine) -> None:
        to = record.to or ""
        if last_segment(to) == _STATUS:
            place = status_of(record.from_ or "")
            if to != place:
                self.broken(record, f"{place} as its place")


@final
class EventForChange(Fold, claims=("I-S4",)):
    """Each change of a stub is announced once, and nothing else is (I-S4)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._steps: dict[str | None, list[TraceLine]] = {}
        self._events: defaultdict[str | None, int] = defaultdict(int)

    @on(steps(_CONNECTION))
    def connection(self, record: TraceLine) -> None:
        if record.key is not None:
            self._steps.setdefault(record.key, []).append(record)

    @on(steps(LINK_MACHINE))
    def link(self, record: TraceLine) -> None:
        # A handler announces all its links under its own address.
        end = split(record.key)[-1].partition("/conn/")[0]
        self._steps.setdefault(end, []).append(record)

    @on(any_msg(Op.SUBMIT))
    def submitted(self, record: TraceLine) -> None:
        from_ = record.from_ or ""
        if from_ not in self._steps or record.actor != BUS or record.to != status_of(from_):
            return
        self._events[from_] += 1
        if self._events[from_] > len(self._steps[from_]):
            self.broken(record, "a step of the stub before each of its events")

    @override
    def end(self) -> None:
        for stub, changes in self._steps.items() if self.process.home is not None else ():
            silent = changes[self._events[stub] :]
            if silent and self.process.is_over_since(silent[0].t + SLACK):
                self.broken(silent[0], "an event of this step")


@final
class TableAgrees(Fold, claims=("I-S5",)):
    """The registry has each stub as its events say, in their order (I-S5)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._states: defaultdict[str, list[str]] = defaultdict(list)
        self._reached: defaultdict[str, int] = defaultdict(int)

    @on(steps(_CONNECTION))
    def stepped(self, record: TraceLine) -> None:
        self._states[record.key or ""].append(record.new or "")

    @on(rows("stubs"))
    def stub(self, record: TraceLine) -> None:
        stub, _, status = (record.val or "").partition(" ")
        if record.op == Op.DEL or stub not in self._states or status in _NOT_OF_A_CONNECTION:
            return
        known, since = self._states[stub], self._reached[stub]
        if status not in known[since:]:
            self.broken(record, f"{stub} as it was last reported")
        else:
            self._reached[stub] = known.index(status, since)


@final
class Unique(Fold, claims=("I-S6",), is_forgetful=True):
    """The address of a stub is never given to another (I-S6)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._known: set[str] = set()

    @on(steps(_DEPLOYMENT))
    def stepped(self, record: TraceLine) -> None:
        if record.old == ABSENT:
            if record.key in self._known:
                self.broken(record, "another address for another stub")
            self._known.add(record.key or "")


@final
class DeployBeforeRun(Fold, claims=("I-S7",), place=Place.RUNTIME):
    """A stub is deployed, and its status listened to, before it begins (I-S7)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._deployment: dict[str, str] = {}
        self._heard: set[str] = set()

    @on(rows(LISTENERS))
    def listener(self, record: TraceLine) -> None:
        if record.actor == BUS:
            self._heard.add(record.key or "")

    @on(steps(_DEPLOYMENT))
    def deployed(self, record: TraceLine) -> None:
        self._deployment[record.key or ""] = record.new or ""

    @on(steps(_CONNECTION))
    def connected(self, record: TraceLine) -> None:
        stub = record.key or ""
        if record.old != ABSENT:
            return
        if self._deployment.get(stub) != "deploying":
            self.broken(record, "a stub that is being deployed")
        elif status_of(stub) not in self._heard:
            self.broken(record, f"a listener of {status_of(stub)} before")


@final
class TransmitWhenLive(Fold, claims=("I-S8",)):
    """A node's stub sends only over an open session (I-S8)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._states: dict[str | None, str | None] = {}

    @on(steps(_CONNECTION))
    def stepped(self, record: TraceLine) -> None:
        self._states[record.key] = record.new

    @on(any_msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if self._states.get(record.stub, LIVE) != LIVE:
            self.broken(record, f"{record.stub} to be live")


@final
class QueueOrder(Fold, claims=("I-S9",)):
    """Messages that wait for a stub leave in their order, and not too many wait (I-S9)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)

    @on(msg(Op.QUEUE))
    def queued(self, record: TraceLine) -> None:
        if record.actor.startswith("stub:"):
            queue = self._waiting[record.actor]
            queue[record.mid or ""] = None
            if len(queue) > STUB_QUEUE:
                self.broken(record, f"at most {STUB_QUEUE} to wait")

    @on(msg(Op.FLUSH))
    def flushed(self, record: TraceLine) -> None:
        queue, mid = self._waiting.get(record.actor), record.mid or ""
        if queue and mid in queue:
            first = next(iter(queue))
            if first != mid:
                self.broken(record, f"{first} to leave first")
            del queue[mid]

    @on(msg(Op.SYNTH, Op.DROP))
    def ended(self, record: TraceLine) -> None:
        queue = self._waiting.get(record.actor)
        if queue:
            queue.pop(record.mid or "", None)
            queue.pop(record.ref or "", None)
