"""The observers' end of objects alone: what it says is kept, its tasks are run when ordered to."""

import attrs

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.trace import NULL_TRACER
from actors.runtime.config import RuntimeConfig
from actors.runtime.store.runtime_store import StoreGate
from actors.runtime.sync.observer import ObservedObjects
from actors.runtime.sync.output import SyncOutput
from specs.bodies.object import Observe
from specs.message import Message, MessageType, reply_to

URL, RUNTIME = "comm://a.ex/o", "hyperty-runtime://b.ex/rb"
BOB, CAROL = "hyperty://b.ex/bob", "hyperty://b.ex/carol"


class Bus:
    """Keeps what was said and done; answers by `decide`."""

    url = f"{RUNTIME}/sm"

    def __init__(self):
        self.said, self.done = [], []
        self.decide = lambda _message: 200

    def send(self, message):
        self.said.append(message)

    async def request(self, message):
        self.said.append(message)
        return reply_to(message, self.decide(message), {})

    def __getattr__(self, name):
        def do(*args):
            self.done.append((name, *args))

        return do


class NoLinks:
    """A registry that knows no link, and ends before it knows of one."""

    async def find_link(self, entity, known, *, is_wanted):
        if known is None:
            raise ActorStoppedError("registry")


@attrs.define
class Lone:
    """Observers of one runtime."""

    bus: Bus = attrs.field(factory=Bus)
    jobs: list = attrs.field(factory=list)
    observed: ObservedObjects = attrs.field(init=False)

    def __attrs_post_init__(self):
        config = RuntimeConfig(domain="b.ex", name="rb")
        out = SyncOutput(config, self.bus, StoreGate(), NULL_TRACER, Counters(), NoLinks())
        out.spawn = self.jobs.append
        self.observed = ObservedObjects(out, lambda _url: None)
        self.observed.listener = None

    async def run(self):
        """Run all that was spawned."""
        while self.jobs:
            await self.jobs.pop(0)()

    def wanted(self, number, observer=BOB):
        request = Message(number, MessageType.SUBSCRIBE, observer, Bus.url, {"resource": URL})
        self.observed.observe(request, Observe(URL))
        return request

    def said_of(self, kind):
        """For whom the reporter's end was asked."""
        about = f"{URL}/subscription"
        return [m.body["source"] for m in self.bus.said if (m.type, m.to) == (kind, about)]
