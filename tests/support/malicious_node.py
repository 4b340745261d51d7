"""A node that alters what passes it, and two runtimes that set up a direct link by it.

It knows everything that passes: it stands between each runtime and the real node. It dials and
listens by itself, too, and can lead the dials of a runtime to any place.
"""

import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs
import trio
from typing_extensions import override

from actors.keys.base64url import read_base64url
from actors.keys.key_set import Keys
from actors.keys.runtime_key import RuntimeKey, make_runtime_key
from actors.keys.signing import SigningKey, make_key
from actors.keys.token import Statement, write_statement
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.link_guard import LinkGuard, Scope
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.p2p.link import P2PLink
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import VouchedBy
from tests.support.catalogues import keys_of
from tests.support.runtime.domain import DOMAIN, Echo, Member, counted_bytes
from tests.support.trace.awaitable_tracer import AwaitableTracer
from transports.bodies import write_body
from transports.errors import CloseReason, DialError, LinkError
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    Everybody,
    Gate,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
)
from transports.memory import MemoryNetwork

GONE = object()
"""What a change makes of a value that is to be taken out."""

Change = Callable[[Any], Any]
JsonMessage = dict[str, Any]


@attrs.define
class Attack:
    """What the node does; the parts that are not given do nothing.

    Attributes:
        owner: The runtime whose object is altered.
        fields: How fields of its Connection object are altered, by name.
        message: Alters any message of a runtime.
        redirect: Leads a dial of a candidate to another address.
    """

    owner: str = "alice"
    fields: dict[str, Change] = attrs.field(factory=dict)
    message: Callable[[str, JsonMessage], Iterable[JsonMessage]] = lambda _, one: (one,)
    redirect: Callable[[str, str], str] = lambda _, address: address


class AlteredLink(Link):
    """A runtime's link to its node."""

    def __init__(self, link: Link, who: str, node: "MaliciousNode") -> None:
        super().__init__(link.kind, link.name, link.upgrade)
        self._link, self._who, self._node = link, who, node

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        await self._link.send_many([self._node.altered(self._who, frame) for frame in frames])

    @override
    async def receive(self) -> bytes:
        return await self._link.receive()

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        await self._link.aclose(close_reason)


class AlteredNetwork(Network):
    """The network as a runtime has it whose node is malicious."""

    def __init__(self, network: Network, who: str, node: "MaliciousNode") -> None:
        self._network, self._who, self._node = network, who, node

    @override
    async def dial(self, kind, address, subprotocol=PROTOFLY_V1, tls=None) -> Link:
        if tls is None:
            link = await self._network.dial(kind, address, subprotocol)
            return AlteredLink(link, self._who, self._node)
        place = self._node.attack.redirect(self._who, address)
        return await self._network.dial(kind, place, subprotocol, tls)

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ):
        return self._network.listen(kind, where, paths, gate)

    @override
    def negotiate(self, terms):
        return self._network.negotiate(terms)


@attrs.frozen
class About:
    """A Connection object: whose it is, its address, and the stub that reports it."""

    who: str
    url: str
    stub: str

    @property
    def is_answer(self) -> bool:
        return "/p2phandler/" in self.stub


@attrs.define(slots=False)
class MaliciousNode:
    """What the node knows and has.

    Attributes:
        key: Key of its own, as of a runtime.
        certificate: Certificate of its own.
        domain_key: Key of a domain of its own.
        seen: The values of each field of each runtime's objects, in the order they passed.
        objects: The newest Connection object of each runtime.
        about: The object whose fields are altered now.
        offered: The candidates of each object, as they were passed on.
        on_signed: Called when the signature of a runtime's object passes.
        stolen: What anybody has told it over a link of its own.
    """

    attack: Attack
    network: Network
    key: RuntimeKey = attrs.field(factory=make_runtime_key)
    domain_key: SigningKey = attrs.field(factory=lambda: make_key("EdDSA", "of-the-node"))
    seen: dict[tuple[str, str], list[Any]] = attrs.field(factory=dict)
    objects: dict[str, str] = attrs.field(factory=dict)
    about: "About | None" = None
    offered: dict[str, list[JsonMessage]] = attrs.field(factory=dict)
    on_signed: Callable[[str], None] = lambda _: None

    def __attrs_post_init__(self) -> None:
        self.identity = OwnIdentity(self.key)
        self.guard = LinkGuard(self.identity)

    stolen: list[bytes] = attrs.field(factory=list)

    def altered(self, who: str, frame: bytes) -> bytes:
        lines = [json.loads(line) for line in frame.split(b"\n") if line]
        passed = [one for line in lines for one in self.attack.message(who, line)]
        kept = [one for one in passed if self._touch(who, one)]
        return b"\n".join(json.dumps(one).encode() for one in kept or lines[:0])

    def _touch(self, who: str, message: JsonMessage) -> bool:
        """Alter the fields of a Connection object in a message; False: nothing is left of it."""
        body = message.get("body")
        if not str(message["from"]).startswith("connection://") or not isinstance(body, dict):
            return True
        value = body.get("value")
        data = value.get("data") if isinstance(value, dict) else None
        url = str(message["from"]).removesuffix("/subscription")
        stub = body.get("source") or (data or {}).get("owner") or ""
        self.objects[who] = url
        self.about = About(who, url, str(stub))
        if isinstance(data, dict):
            for name in list(data):
                changed = self._changed(who, name, data[name])
                if changed is GONE:
                    del data[name]
                else:
                    data[name] = changed
        name = body.get("attribute")
        if isinstance(name, str):
            body["value"] = self._changed(who, name, value)
            if body["value"] is GONE:
                # A version must not be missing: it says something that is of no matter.
                body["attribute"], body["value"] = "nothing", 0
                body.pop("operation", None)
                body.pop("attributeType", None)
        return True

    def _changed(self, who: str, name: str, value: Any) -> Any:
        self.seen.setdefault((who, name), []).append(json.loads(json.dumps(value)))
        if name == "security" and value is not None:
            self.on_signed(who)
        change = self.attack.fields.get(name)
        left = value if change is None or who != self.attack.owner else change(value)
        if name == "candidates" and left is not GONE:
            self.offered[self.about.url] = list(left)
        return left

    def last(self, who: str, name: str) -> Any:
        """The newest value of a field that passed; None: none did."""
        return next(reversed(self.seen.get((who, name), [])), None)

    def signed(self, world: "Victims", **said: str | None) -> JsonMessage:
        """What it offers in the place of a runtime: signed by its own key, for this very link.

        Args:
            world: The runtimes.
            said: What it shows beside the key: `statement`, `assertion`.
        """
        about = self.about
        who = world[about.who].runtime.url
        reader = next(name for name in world.members if name != about.who)
        listed = self.offered.get(about.url, [])
        data = ConnectionData(about.stub, candidates=tuple(Candidate(**one) for one in listed))
        bond = Scope(
            signer=who,
            reader=world[reader].runtime.url,
            object=about.url,
            answers=self.objects[reader] if about.is_answer else "",
        )
        self.identity.statement = said.get("statement")
        self.identity.assertion = said.get("assertion")
        made = self.guard.sign(data, bond)
        return write_body(made)

    # --- what it does by itself -------------------------------------------------------------

    async def listen(self, kind: Kind, where: str, listening, *, task_status) -> None:
        """Take links at a place of its own, and record all that is said there."""
        async with (
            self.network.listen(kind, where, {"/p2p": PROTOFLY_V1}, Everybody(listening)) as one,
            trio.open_nursery() as nursery,
        ):
            task_status.started(one)
            await self._take(one, nursery)

    async def _take(self, listener: Listener, nursery: trio.Nursery) -> None:
        while True:
            nursery.start_soon(self.record, await listener.accept())

    async def record(self, link: Link) -> None:
        """Record what comes over a link, and greet as a peer does."""
        try:
            self.stolen.append(await link.receive())
            await link.send(b'{"p2p":"opened","nonce":"%s"}' % (b"0" * 32))
            while True:
                self.stolen.append(await link.receive())
        except LinkError:
            await trio.aclose_forcefully(link)

    async def intrude(
        self, candidate: JsonMessage, tls: ssl.SSLContext | None, said: bytes
    ) -> None:
        """Dial a candidate with the secret that it has read, and say something."""
        hello = {"p2p": "hello", "nonce": "0" * 32, "secret": candidate["secret"]}
        try:
            link = await self.network.dial(Kind(candidate["kind"]), candidate["address"], tls=tls)
        except DialError:
            return
        try:
            with trio.move_on_after(5):
                await link.send(json.dumps(hello).encode())
                await link.send(said)
                self.stolen.append(await link.receive())
        except LinkError:
            pass
        finally:
            await trio.aclose_forcefully(link)


@attrs.define
class Victims:
    """Alice and Bob, who want a direct link, and whoever else is there.

    Attributes:
        ends: Every end of a link that was in use: address of the stub, and the link.
    """

    node: MaliciousNode
    members: dict[str, Member]
    domain_key: SigningKey
    ends: list[tuple[str, P2PLink]]

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def identity(self, name: str):
        return self[name].runtime.identity

    def certificate(self, name: str) -> bytes | None:
        """The certificate that a runtime has offered; None: it has offered none."""
        security = self.node.last(name, "security")
        return None if security is None else read_base64url(security["certificate"])

    def says(self, name: str, key: SigningKey | None = None, **changed: object) -> str:
        """What the domain says of a runtime, or something else."""
        said = Statement(
            domain=DOMAIN,
            runtime=self[name].runtime.url,
            thumbprint=self.identity(name).key.thumbprint,
            issued=trio.current_time(),
            until=trio.current_time() + 10_000,
            user=f"user://{DOMAIN}/{name}",
        )
        return write_statement(attrs.evolve(said, **changed), key or self.domain_key)

    def failed(self) -> list[str]:
        """Why ends of links failed."""
        return [
            str(fact.why)
            for member in self.members.values()
            for fact in member.tracer.facts
            if fact.machine == "p2p_connection" and fact.new == "failed"
        ]

    def strangers(self) -> list[str]:
        """Ends of links that were in use with somebody else than another of these runtimes."""
        shown = {
            member.runtime.url: self.certificate(name) for name, member in self.members.items()
        }
        return [
            stub
            for stub, link in self.ends
            if link._pipe.peer_certificate
            not in [one for url, one in shown.items() if not stub.startswith(f"{url}/") and one]
        ]


@asynccontextmanager
async def victims(
    attack: Attack,
    *names: str,
    kinds: tuple[Kind, ...] = (Kind.TCP,),
    network: Network | None = None,
    require: VouchedBy = VouchedBy.DOMAIN,
    **config: Any,
) -> AsyncIterator[Victims]:
    """Run a domain whose node is malicious; the domain vouches for each runtime."""
    carrier = network or MemoryNetwork()
    evil, domain_key = MaliciousNode(attack, carrier), make_key("EdDSA", "of-the-domain")
    async with AsyncExitStack() as stack:
        opened = NodeConfig(domain=DOMAIN, entropy=counted_bytes(0))
        node = await stack.enter_async_context(open_node(opened, carrier, AwaitableTracer()))
        world = Victims(evil, {}, domain_key, [])
        for number, name in enumerate(names or ("alice", "bob"), start=1):
            terms = RuntimeConfig(
                domain=DOMAIN,
                name=name,
                node=node.url,
                kinds=kinds,
                p2p_require=require,
                entropy=counted_bytes(number),
                **config,
            )
            tracer, hyperty = AwaitableTracer(), Echo()
            altered = AlteredNetwork(carrier, name, evil)
            runtime = await stack.enter_async_context(open_runtime(terms, altered, tracer))
            address = await runtime.deploy(name, lambda hyperty=hyperty: hyperty)
            world.members[name] = Member(runtime, tracer, hyperty, address)
            identity = world.identity(name)
            identity.statement, identity.domain_keys = world.says(name), keys_of(domain_key)
        yield world


def domain_keys(world: Victims) -> Keys:
    return keys_of(world.domain_key)
