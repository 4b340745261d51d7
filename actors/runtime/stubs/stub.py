"""The interface of a protostub, and its obligations (STB-01..07).

A stub is an actor, alone in its sandbox. Its MiniBUS delivers, as
`Delivery`, all messages that the Message BUS routes to its address (the stub is the `*`
listener of the sandbox); the stub posts the messages of its link on its bus.

Every stub keeps to this:

1. Each step of its connection machine is traced and then posted as exactly one
   status event to `<stub>/status`, in order (STB-05, I-S4).
2. It transmits only while live; undelivered messages are handed back or refused.
   On loss of its link: first the status event, then `hand_back`.
3. It drops messages that have crossed it before, and appends its own address to `via`,
   outbound and inbound (STB-06).

A P2P stub keeps to this, too:

4. `execute connect [PH]` (M-11) is one attempt to get the link back in place; it is
   answered 202 at once, also while an attempt is under way. The registry repeats it
   and gives up in the end; the stub has no back-off of its own.
5. `execute disconnect [remote runtime]` (M-12) ends the link at both ends and its
   Connection objects; it is answered 200 when that is done, also if there is none.
6. A handler names its links `<PH>/conn/<k>`, k never reused; the `link` of each status
   event is that address. When the registry subscribes it (M-05) the handler adds the
   MiniBUS listener, then answers 200; 404 if it has no such link. When a link of it
   has ended for good it reports that to the registry: `delete` to `R/registry`, `resource` the
   link.

A stub's connection as its runtime sees it: each step is traced, then reported, once (STB-05).
"""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import attrs
import trio

from actors.kit.back_ends.ice import IcePlan
from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.own_sender import OwnSender
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.effects import PortQueue
from fsm.engine import Entity, Step
from fsm.machines.stub_connection import STUB_CONNECTION, State, Trigger
from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkPolicy
from specs.addresses.address import domain_of, quality_broker, runtime_of, status_of
from specs.bodies.answer import IceServersGiven
from specs.bodies.session import IceServer, Status
from specs.errors import BadMessageError
from specs.identity import SenderIdentity, said_by
from specs.jsonvalue import JsonObject
from specs.limits.webrtc import ICE_INQUIRY
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body
from transports.link import Kind, Network
from transports.urls import LOOPBACK

# The servers of STUN and TURN that data channels of a runtime use (CON-04).


@attrs.frozen(slots=True)
class IceSource:
    """The source of the STUN and TURN servers of a runtime.

    Attributes:
        plan: The configured servers; None: the broker of the domain is asked.
        relay_only: Whether data channels use nothing but servers of TURN.
        clock_offset: Seconds from the Trio clock to the epoch.
    """

    plan: IcePlan | None = None
    relay_only: bool = False
    clock_offset: float = 0.0

    async def servers(self, bus: MiniBusPort, ids: IdSource, url: str) -> tuple[IceServer, ...]:
        """Return the usable servers; none if the broker does not answer.

        Args:
            bus: Port of the stub that uses them.
            ids: Message ids of its address.
            url: Its address.

        If cancelled, the answer of the broker is dropped.
        """
        runtime = runtime_of(url)
        if self.plan is not None:
            now = trio.current_time() + self.clock_offset
            return self.plan.servers_for(runtime, now).servers
        broker = quality_broker(domain_of(runtime))
        inquiry = Message(ids.next(url), MessageType.READ, url, broker, {})
        with trio.move_on_after(ICE_INQUIRY):
            answer = await bus.request(inquiry)
            if answer.code == Code.OK:
                return _servers(answer)
        return ()


def _servers(answer: Message) -> tuple[IceServer, ...]:
    try:
        return read_body(answer, IceServersGiven).value.servers
    except BadMessageError:
        return ()


NO_SERVERS: Final = IceSource(IcePlan())
"""No servers, and no request to a broker."""


if TYPE_CHECKING:
    # Keys are slow to import, and a stub in a sandbox process has none.
    from actors.runtime.link_guard import LinkGuard
    from actors.runtime.own_identity import OwnIdentity


@attrs.frozen(slots=True)
class StubConfig:
    """The configuration of one stub (STB-13): of descriptor and deployer, the latter overrides.

    Attributes:
        runtime: Address of the runtime that it serves.
        domain: Domain to which its link leads; the own domain for P2P stubs.
        node_url: URL that a node stub dials, such as ws://127.0.0.1:4123/link.
        credentials: Where the token for a login comes from.
        session: Token of a session of an earlier stub, to resume it; None: a new session.
        is_again: Whether an earlier stub to the node had a session and has failed.
        remote_runtime: Address of the runtime to which a P2P requester links (C-30).
        p2p_handler: Address of the handler stub of that runtime, which the requester invites.
        kinds: Kinds of direct links, best first.
        host: Host at which a P2P stub listens, as the other end dials it.
        links: Runtimes whose links a P2P handler accepts; those named there may get addresses
            of a private network, and name such addresses (T10).
        ice: Where data channels get servers of STUN and TURN from.
        options: Further options of its descriptor, which the stub understands.
        endpoints: The only addresses that a stub from a package may dial, as `transports.urls`
            writes them; `node_url` is the first.
    """

    runtime: str
    domain: str
    node_url: str | None = None
    credentials: Credentials = NO_CREDENTIALS
    session: str | None = attrs.field(default=None, repr=False)
    is_again: bool = False
    remote_runtime: str | None = None
    p2p_handler: str | None = None
    kinds: tuple[Kind, ...] = ()
    host: str = LOOPBACK
    links: LinkPolicy = WHENEVER_POSSIBLE
    ice: IceSource = NO_SERVERS
    options: JsonObject = attrs.field(factory=dict)
    endpoints: tuple[str, ...] = ()


def _keep_nothing(_token: str, _is_anew: bool) -> None:  # noqa: FBT001 - of a callable
    """Store no session token; default of a stub context, for stubs that keep it in memory."""


async def _forget(_token: str) -> None:
    """Remove no stored token; default of a stub context."""


def _guard_of_nobody() -> "LinkGuard":
    """Return a link guard with a new key that trusts no other domain; default of a context."""
    from actors.runtime.link_guard import LinkGuard  # noqa: PLC0415 - see above

    return LinkGuard()


@attrs.frozen(slots=True)
class StubContext:
    """Everything of the runtime that a stub may use.

    Attributes:
        url: Its own address.
        bus: Port to the MiniBUS of its sandbox.
        config: Its configuration.
        network: Dials and listens.
        tracer: Takes its trace records.
        ids: Message ids for its own addresses.
        entropy: Returns n random bytes.
        counters: Counts what it drops.
        keep: Takes the token of its session, for a later stub, and whether the session is new.
        own: The runtime as a sender; the stub of the own node updates the identity.
        remember: Takes the token, too, and returns when it is stored; called before the session is
            used.
        identity: The key of the runtime and statements about it; None: no key is used, as in a
            sandbox process.
        guard: Returns the object that signs offers of a P2P stub, and verifies those of peers.
    """

    url: str
    bus: MiniBusPort
    config: StubConfig
    network: Network
    tracer: Tracer
    ids: IdSource
    entropy: Callable[[int], bytes]
    counters: Counters = attrs.field(factory=Counters)
    keep: Callable[[str, bool], None] = _keep_nothing
    remember: Callable[[str], Awaitable[None]] = _forget
    identity: "OwnIdentity | None" = None
    guard: "Callable[[], LinkGuard]" = attrs.field(factory=lambda: cache(_guard_of_nobody))
    own: OwnSender = attrs.field()

    @own.default
    def _own(self) -> OwnSender:
        return OwnSender.of(self.config.runtime)

    def without_identity(self) -> Self:
        """Return the context of a stub that learns nothing of this runtime's user (REG-15).

        It has no credentials, no token of an earlier session, and no key.
        """
        config = attrs.evolve(self.config, credentials=NO_CREDENTIALS, session=None)
        own = OwnSender.of(config.runtime)
        return attrs.evolve(self, config=config, identity=None, own=own)

    def sender_of(self, message: Message) -> SenderIdentity | None:
        """Return the sender identity of a message that this stub brings, as its node states.

        The own node may state any; that of another domain is limited by `said_by`.
        """
        domain = self.config.domain
        if domain == domain_of(self.config.runtime):
            return message.identity
        return said_by(domain, message.identity)


StubFactory: TypeAlias = Callable[[StubContext], Actor[Delivery]]
"""Function that a stub module exports as `activate`; it makes the stub (STB-01, C-67).

The actor may take more message classes than `Delivery`, for its own tasks.
"""


class PortHost(PortQueue):
    """Base of hosts whose cores queue effects, which the host then executes and may wait for."""

    async def perform(self) -> None:
        """Execute the queued effects of the core, and those that follow from them."""
        while self.due:
            waiting = self.due.popleft()()
            if waiting is not None:
                await waiting


def session_name(stub: str, number: int) -> str:
    """Return the name of a session of a node stub, as its status events contain it.

    Args:
        stub: Address of the stub.
        number: Number of the session.
    """
    return f"{stub}/session/{number}"


def status_event(context: StubContext, step: Step, sessions: int) -> Message:
    """Return the status event for a transition of a node stub's connection (STB-05).

    Args:
        context: The context of the stub.
        step: The step.
        sessions: Number of sessions of the stub so far; it names a live session.
    """
    url = context.url
    link = session_name(url, sessions) if step.new == State.LIVE else None
    body = write_body(Status(step.new, description=step.why or None, link=link))
    return Message(context.ids.next(url), MessageType.UPDATE, url, status_of(url), body)


class StubConnection:
    """The connection state machine of a stub that has no core of its own.

    A new stub is `created`; its first step reports that.
    """

    def __init__(self, context: StubContext) -> None:
        self._context = context
        self._entity = Entity(STUB_CONNECTION, context.url)

    @property
    def state(self) -> State | None:
        """The state of the connection; None: no transition has happened yet."""
        state = self._entity.state
        return None if state is None else State(state)

    async def step(self, trigger: Trigger, why: str = "") -> None:
        """Make a transition, and report it to the runtime by a status event.

        Args:
            trigger: What happened.
            why: Reason for people, as half a sentence.

        If cancelled, the step is taken and traced, and the status event may be missing.

        Raises:
            UndeclaredTransitionError: The table has no such step in this state: a bug of the stub.
            ActorStoppedError: The runtime has closed.
        """
        context = self._context
        step = self._entity.step(trigger, why)
        context.tracer.step(f"stub:{context.url}", step)
        await context.bus.post(status_event(context, step, sessions=1))
