"""The table of paths of a node alone: what it is told, and what it asks of its host."""

from types import SimpleNamespace

from fsm.limits.shares import own_user
from fsm.registry.allocation import AllocationCore
from fsm.sync.subscriptions import SubscriptionCore


class PathsPort:
    """Notes what a table asks, which is not called back meanwhile.

    Attributes:
        done: Steps and rows; None: they are not noted.
    """

    def __init__(self, done=None):
        self.done = done

    def step(self, step):
        if self.done is not None:
            self.done.append(step)

    path_changed = step

    def forget_routes(self):
        pass


def lone_paths(user_of=own_user):
    """Make a table whose port notes nothing, unless `told` calls it."""
    port = PathsPort()
    core = SubscriptionCore(port, user_of)
    core.port = port
    return core


def told(core, name, *arguments):
    """Call a table by name, with arguments; return what it asked, and why it refused."""
    core.port.done = done = []
    refusal = getattr(core, name)(*arguments)
    core.port.done = None
    return done if refusal is None else [*done, refusal]


def lone_addresses(mint=None, core=AllocationCore):
    """Return the owners of addresses, whose host does nothing."""
    port = dict.fromkeys(("step", "row_changed", "taken", "freed"), lambda _: None)
    return core(SimpleNamespace(**port), mint)
