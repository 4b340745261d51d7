"""The reporter's end of an object alone: what it is told, and what it asks of its host."""

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.sync.reporter import ReportedObject


class ReportPort:
    """Notes what a reported object asks, which is not called back meanwhile.

    Attributes:
        done: Steps, rows of observers, and calls by name with their arguments, in order.
        kept: What is to be stored.
        leases: The leases that were begun, by observer.
        guests: Rows of allowed observers.
        versions: The versions that the object got.
    """

    def __init__(self):
        self.done, self.kept, self.guests, self.versions, self.leases = [], [], [], [], {}

    def step(self, step):
        self.done.append(step)

    def row(self, row):
        (self.done if row.table == "observers" else self.guests).append(row)

    def keep(self, change):
        self.kept.append(change)

    def written(self, snapshot):
        self.versions.append(snapshot.version)

    def lease(self, observer, seconds):
        self.leases[observer] = seconds

    def publish(self, change):
        self.done.append(("publish", change))

    def ask(self, observer, patience, question):
        self.done.append(("ask", observer, patience, question))

    def grant(self, observer, snapshot, lease, *, is_renewal):
        self.done.append(("grant", observer, snapshot, lease, is_renewal))

    def renew(self, observer, lease):
        self.done.append(("renew", observer, lease))

    def deny(self, observer, code, why):
        self.done.append(("deny", observer, code, why))

    def cut_off(self, observer, manager, *, is_over):
        self.done.append(("cut_off", observer, manager, is_over))

    def end(self, runtimes):
        self.done.append(("end", runtimes))

    def vacate(self):
        self.done.append(("vacate",))


def lone_report(created, *allowed, core=ReportedObject, **terms):
    """Make a reported object with a port that notes; `told` uses it."""
    port = ReportPort()
    reported = core(created, port, allowed, **terms)
    reported.port = port
    return reported


def told(reported, *inputs):
    """Call an object by name, with arguments; return what it asked, and why it refused."""
    reported.port.done = done = []
    for name, *arguments in inputs:
        refusal = getattr(reported, name)(*arguments)
        done += [] if refusal is None else [refusal]
    return done


def said(done):
    """Return what was asked besides the evidence."""
    return [each for each in done if not isinstance(each, Step | RowChanged)]


def kinds(done):
    """Return the names of the calls, besides the evidence."""
    return [each[0] if isinstance(each, tuple) else "refused" for each in said(done)]
