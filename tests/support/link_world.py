"""Two runtimes, one reporting and one observing, and by which way the changes go between them."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import trio
import trio.lowlevel

from actors.runtime.bus.messages import InFlight, Origin
from actors.runtime.bus.ports import CorePort
from actors.runtime.objects.observation import ObservedObject
from actors.runtime.objects.reported_object import ReportedObject
from specs.message import Message, MessageType
from specs.trace import Kind, Op
from tests.support.runtime.domain import Domain, DomainOptions, Echo, Member, go_live, open_domain
from transports.link import Kind as Carrier

LINKED = "a live link"
UNLINKED = "no link"


@attrs.define
class Other:
    """One more observer in bob's runtime."""

    copy: ObservedObject

    async def run_dry(self):
        """Follow until the object is gone."""
        async for _ in self.copy.states():
            pass


@attrs.define
class Pair:
    """A reporter `alice` and an observer `bob`.

    Attributes:
        obj: The reporter's end.
        copy: The observer's.
        observing: Its context.
    """

    domain: Domain
    obj: ReportedObject
    copy: ObservedObject
    observing: AsyncExitStack

    @property
    def alice(self) -> Member:
        return self.domain["alice"]

    @property
    def bob(self) -> Member:
        return self.domain["bob"]

    @property
    def changes(self) -> str:
        return f"{self.obj.url}/changes"

    @property
    def children(self) -> str:
        return f"{self.obj.url}/children/resources"

    def at_node(self) -> int:
        """How many changes the node was given to pass on."""
        facts = self.domain.node_tracer.facts
        ours = [fact for fact in facts if fact.to == self.changes and fact.type == "update"]
        return len([fact for fact in ours if fact.op is Op.RCV])

    def paths(self) -> list[tuple[Op | None, str | None]]:
        """The rows of paths on the changes that the node wrote."""
        facts = self.domain.node_tracer.facts
        return [
            (one.op, one.val) for one in facts if (one.table, one.key) == ("subs", self.changes)
        ]

    def branches(self) -> list[tuple[Op | None, str | None]]:
        """The rows of the listeners of the changes at the reporter's bus."""
        facts = self.alice.tracer.facts
        rows = [one for one in facts if (one.table, one.key) == ("listeners", self.changes)]
        return [(one.op, one.val) for one in rows]

    def applied(self) -> list[int | None]:
        """The versions that the copy took, in order."""
        facts = self.bob.facts(Op.APPLY, Kind.OBJ)
        return [one.version for one in facts if one.key == self.obj.url]

    def reads(self) -> int:
        """How often the copy saw a gap, and had the object read whole."""
        facts = self.bob.facts(Op.STEP, Kind.STATE)
        copies = [one for one in facts if one.machine == "observer_copy"]
        mine = [one for one in copies if (one.key or "").startswith(self.obj.url)]
        return len([one for one in mine if (one.old, one.new) == ("live", "stale")])

    def said_at_node(self, type_: str) -> int:
        """How many messages of a type about the object the node was given."""
        facts = self.domain.node_tracer.facts
        about = [one for one in facts if (one.to or "").startswith(f"{self.obj.url}/")]
        return len([one for one in about if one.type == type_ and one.op is Op.RCV])

    def arrived(self, member: Member) -> int:
        """How many changes a runtime's bus was given."""
        facts = member.facts(Op.SUBMIT)
        return len([one for one in facts if (one.type, one.to) == ("update", self.changes)])

    async def leave(self) -> None:
        """Observe no longer."""
        await self.observing.aclose()

    @asynccontextmanager
    async def another_observer(self, **how):
        """Deploy one more hyperty beside bob, and let it observe."""
        echo = Echo()
        address = await self.bob.runtime.deploy("other", lambda: echo)
        await self.obj.allow(address)
        async with echo.observe(self.obj.url, **how) as copy:
            yield Other(copy)

    async def ask_by_link(self, type_: MessageType, observer: str, part: str = "/subscription"):
        """Ask as bob's sync manager, over the link, for whomever."""
        parts = self.bob.runtime
        sender, to = f"{self.bob.runtime.url}/sm", f"{self.obj.url}{part}"
        port = CorePort(sender, parts.bus)
        message = Message(parts.config.ids.next(sender), type_, sender, to, {"source": observer})
        return await port.request_direct(message)

    async def forge(self, peer: Member, change) -> None:
        """Have a peer of bob's say over its link that the object has changed."""
        forged = Message(999, MessageType.UPDATE, self.obj.url, self.changes, change)
        await self.say_as(peer, self.bob, forged)

    async def say_as(self, peer: Member, other: Member, forged: Message) -> None:
        """Have a peer say something over its link to another, in whomever's name."""
        link = next(one for one in await peer.runtime.links() if one.remote == other.runtime.url)
        bus = peer.runtime.bus
        CorePort("test", bus).add_link(forged.to, link.url or "")
        bus.grant("test", forged.from_, Origin.LOCAL)
        bus.submit(InFlight(forged, "test"))

    def slow_down(self, by_node: float, by_link: float) -> None:
        """Let each frame to and from the node, and each on the link, take its time."""
        for kind, seconds in ((Carrier.WEBSOCKET, by_node), (Carrier.TCP, by_link)):
            for wire in self.domain.network.open_wires(kind):
                wire.dialler.pattern = wire.acceptor.pattern = _taking(seconds)

    async def end_link(self) -> None:
        """Have bob's end of the link closed for good."""
        for entry in await self.bob.runtime.links():
            body = {"method": "disconnect", "params": [entry.remote]}
            await self.bob.runtime.order("registry", MessageType.EXECUTE, entry.stub, body)

    async def follows(self, version: int) -> None:
        """Wait, at most a minute, until the copy has this version."""
        await reaches(self.copy, version)

    async def link_is(self, status: str | None) -> None:
        await self.alice.wait_for(status, self.bob)
        await self.bob.wait_for(status, self.alice)

    async def path_has_steps(self, number: int, what: str) -> None:
        """Wait until the reporter's bus has written as many rows of a kind."""

        async def is_so() -> bool:
            return len([op for op, _ in self.branches() if op is Op(what)]) >= number

        with trio.fail_after(60):
            await self.alice.tracer.until(is_so)


def _taking(seconds: float):
    return lambda _number, _frame: (seconds,)


@asynccontextmanager
async def pair(begins=LINKED, options: DomainOptions | None = None, **how):
    """Report and observe; the link is live before, or there is none."""
    async with open_domain("alice", "bob", options=options) as domain:
        if begins == LINKED:
            await go_live(domain)
        alice, bob = domain["alice"].hyperty, domain["bob"].hyperty
        async with alice.report("comm", {"n": 0}, observers=(bob.url,)) as obj:
            if begins == LINKED:
                await _is_listed(domain["bob"], obj.url)
            async with AsyncExitStack() as observing:
                copy = await observing.enter_async_context(bob.observe(obj.url, **how))
                yield Pair(domain, obj, copy, observing)


async def reaches(copy: ObservedObject, version: int) -> None:
    """Wait, at most a minute, until a copy has this version."""
    with trio.fail_after(60):
        await trio.lowlevel.checkpoint()
        while copy.version < version:
            await copy.later_than(copy.version)


async def _is_listed(member: Member, url: str) -> None:
    """Wait until a runtime has been notified that an object lives at the other end of its link."""

    async def is_so() -> bool:
        return any(url in one.entities for one in await member.runtime.links())

    with trio.fail_after(60):
        await member.tracer.until(is_so)
