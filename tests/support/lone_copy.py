"""An observer's copy alone: what it is told, and what it asks of its host, as plain calls."""

from fsm.engine import Step
from fsm.sync.copy import ObserverCore


class CopyPort:
    """Notes what a copy asks; a copy is not called back meanwhile.

    Attributes:
        done: Steps, and calls by name with their arguments, but for the change of a value.
        changes: The change that led to each value; None: the whole object came.
    """

    def __init__(self):
        self.done, self.changes = [], []

    def step(self, step):
        self.done.append(step)

    def show(self, version, data, change):
        self.done.append(("show", version, data))
        self.changes.append(change)

    def read(self, number):
        self.done.append(("read", number))

    def end(self, why):
        self.done.append(("end", why))


def lone_copy(url, observer, core=ObserverCore, **terms):
    """Make a copy with a port that notes; `told` uses it."""
    port = CopyPort()
    copy = core(url, observer, port, **terms)
    copy.port = port
    return copy


def told(copy, *inputs, now=0.0):
    """Call a copy by name, with arguments; return what it asked."""
    copy.port.done = done = []
    for name, *arguments in inputs:
        getattr(copy, name)(*arguments, now)
    return done


def without_steps(done):
    return [one for one in done if not isinstance(one, Step)]
