"""The reporter's end of an object alone: what it is told, and what it asks of its host."""

from inspect import signature

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.sync.reporter import ReportedObject
from specs.message import Message, MessageType


class ReportPort:
    """Notes what a reported object asks, which is not called back meanwhile.

    Attributes:
        done: Steps, rows of observers, and calls by name with their arguments, in order.
        kept: What is to be stored.
        guests: Rows of allowed observers.
        versions: The versions that the object got.
        core: The object.
    """

    def __init__(self):
        self.done, self.kept, self.guests, self.versions, self.core = [], [], [], [], None

    def step(self, step):
        self.done.append(step)

    def row(self, row):
        (self.done if row.table == "observers" else self.guests).append(row)

    def keep(self, change):
        self.kept.append(change)

    def written(self, snapshot):
        self.versions.append(snapshot.version)

    def publish(self, change):
        self.done.append(("publish", change))

    def ask(self, request, observer, question):
        self.done.append(("ask", request, observer, question))

    def grant(self, requests, terms, *, is_whole=True):
        snapshot = self.core.snapshot if is_whole else None
        self.done.append(("grant", requests, snapshot, terms))

    def deny(self, requests, code, why):
        self.done.append(("deny", requests, code, why))

    def invite(self, request, observer):
        self.done.append(("invite", request, observer))

    def relay(self, requests, observer, code, why):
        self.done.append(("relay", requests, observer, code, why))

    def cut_off(self, observer, manager, *, is_over):
        self.done.append(("cut_off", observer, manager, is_over))

    def end(self, runtimes):
        self.done.append(("end", runtimes))

    def vacate(self):
        self.done.append(("vacate",))


class Report:
    """A reported object with a port that notes, and a clock; requests stand for their observers.

    Attributes:
        core: The object.
        now: Seconds on its clock.
    """

    def __init__(self, created, port, core, allowed, terms):
        self.core, self.port, self.now = core(created, port, allowed, **terms), port, 0.0
        port.core = self.core

    def __getattr__(self, name):
        return getattr(self.core, name)

    def do(self, name, *arguments):
        """Call the object by name; a call of `subscribe` is written without its request."""
        match name, arguments:
            case "subscribe", (observer, manager, *terms):
                arguments = (subscription(observer, manager), observer, *terms)
                arguments += (None,) * (4 - len(arguments))
            case "authorise", (observer,):
                name, arguments = "allow", (self.snapshot.reporter, observer)
            case "invite", (observer,):
                arguments = invitation(self.snapshot.reporter), observer
            case "wait", (seconds,):
                self.now += seconds
                name, arguments = "time_over", ()
        method = getattr(self.core, name)
        is_timed = "now" in signature(method).parameters
        return method(*arguments, *((self.now,) if is_timed else ()))


def subscription(observer, manager):
    """Return the request of a sync manager, which an answer shows as its observer."""
    return Message(1, MessageType.SUBSCRIBE, manager, "comm://a.ex/o", {"source": observer})


def invitation(reporter):
    """Return the request of a reporter."""
    return Message(1, MessageType.CREATE, reporter, "hyperty-runtime://a.ex/ra/sm")


def lone_report(created, *allowed, core=ReportedObject, **terms):
    """Make a reported object with a port that notes; `told` uses it."""
    return Report(created, ReportPort(), core, allowed, terms)


def told(reported, *inputs):
    """Call an object by name, with arguments; return what it asked, and why it refused."""
    reported.port.done = done = []
    for name, *arguments in inputs:
        refusal = reported.do(name, *arguments)
        done += [] if refusal is None else [refusal]
    return [_shown(each) for each in done]


def _shown(done):
    """Return a call with the observer in the place of its requests."""
    match done:
        case ("grant", [request, *_], snapshot, terms):
            return ("grant", request.body["source"], snapshot, terms)
        case ("deny", [request, *_], code, why):
            return ("deny", request.body["source"], code, why)
        case ("ask", _, observer, question):
            return ("ask", observer, question)
        case ("relay", _, observer, code, why):
            return ("relay", observer, code, why)
        case ("invite", _, observer):
            return ("invite", observer)
        case _:
            return done


def said(done):
    """Return what was asked besides the evidence."""
    return [each for each in done if not isinstance(each, Step | RowChanged)]


def kinds(done):
    """Return the names of the calls, besides the evidence."""
    return [each[0] if isinstance(each, tuple) else "refused" for each in said(done)]
