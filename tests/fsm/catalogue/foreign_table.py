"""The table of foreign domains of a node, and what it wants done."""

import inspect
import math
from types import SimpleNamespace

from fsm.catalogue.foreign import ForeignCore, ForeignPort
from fsm.session.node_session_io import OutboundMessage

NODE, B = "domain://msg-node.a.ex", "b.ex"
STUB = f"{NODE}/protostub/{B}"


class Port:
    """Notes the calls: each has its name as `kind`, and its arguments."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, kind):
        names = [*inspect.signature(getattr(ForeignPort, kind)).parameters][1:]

        def note(*args):
            self.calls.append(SimpleNamespace(kind=kind, **dict(zip(names, args, strict=True))))

        return note


class Table:
    """The core; each call returns what it wants done."""

    def __init__(self, domains, idle=math.inf):
        self._port = Port()
        self.core = ForeignCore(NODE, domains, self._port, idle)

    def send(self, message, now, size=10, domain=B):
        self.core.send(domain, OutboundMessage(message, b"x" * size), now)
        return self.done()

    def tick(self, now):
        self.core.tick(now)
        return self.done()

    def banish(self, domain, now):
        self.core.banish(domain, now)
        return self.done()

    def leave(self):
        self.core.leave()
        return self.done()

    def ready(self, stub, now):
        self.core.sandbox_ready(stub, now)
        return self.done()

    def status(self, stub, state, why):
        self.core.sandbox_status(stub, state, why)
        return self.done()

    def posted(self, stub, message, now):
        self.core.sandbox_posted(stub, message, now)
        return self.done()

    def session(self, stub, token, *, is_anew):
        self.core.sandbox_session(stub, token, is_anew=is_anew)
        return self.done()

    def gone(self, stub, why, now):
        self.core.sandbox_gone(stub, why, now)
        return self.done()

    def done(self):
        calls, self._port.calls = self._port.calls, []
        return calls


def kinds(calls):
    return [one.kind for one in calls]
