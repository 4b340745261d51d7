"""What a protostub is given, and what it must keep to (STB-01..07).

A stub is an actor, alone in its sandbox. Its MiniBUS hands it, as `Delivery`,
everything the Message BUS routes to its address (the sandbox's `*` listener is
the stub); what it reads from its link it posts on its bus.

Every stub keeps to this:

1. Each step of its connection machine is traced and then posted as exactly one
   status event to `<stub>/status`, in order (STB-05, I-S4).
2. It transmits only while live; what it does not deliver it hands back or refuses.
   On loss of its link: first the status event, then `hand_back`.
3. It drops what already crossed it and appends its own address to `via`, on the way
   out and on the way in (STB-06).

A P2P stub keeps to this, too:

4. `execute connect [PH]` (M-11) is one attempt to get the link back in place; it is
   answered 202 at once, also while an attempt is under way. The registry repeats it
   and gives up in the end; the stub has no back-off of its own.
5. `execute disconnect [remote runtime]` (M-12) ends the link at both ends and its
   Connection objects; it is answered 200 when that is done, also if there is none.
6. A handler names its links `<PH>/conn/<k>`, k never reused; the `link` of each status
   event is that address. When the registry subscribes it (M-05) the handler adds the
   MiniBUS listener, then answers 200; 404 if it has no such link. When a link of it
   has ended for good it tells the registry: `delete` to `R/registry`, `resource` the
   link.

A stub's connection as its runtime sees it: each step is traced, then told, once (STB-05).
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, final

import attrs

from actors.kit.counting.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.engine import Entity, Step
from fsm.machines.stub_connection import STUB_CONNECTION, State, Trigger
from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkWishes
from specs.addresses.address import status_of
from specs.bodies.body import Status
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from transports.bodies import write_body
from transports.link import Kind
from transports.network import Network

__all__ = ["LOOPBACK", "StubConfig", "StubConnection", "StubContext", "StubFactory", "status_event"]

LOOPBACK: Final = "127.0.0.1"
"""Where P2P stubs listen if nobody says otherwise: for this machine only."""


@final
@attrs.frozen(slots=True)
class StubConfig:
    """What one stub is deployed for (STB-13): descriptor, then deployer, later wins.

    Attributes:
        runtime: The runtime it serves.
        domain: The domain its link leads to; the own domain for P2P stubs.
        node_url: Where a node stub dials, such as ws://127.0.0.1:4123/link.
        credentials: What to log in with at each open, if the node asks for it.
        session: Token of a session that an earlier stub had, to come back to.
        remote_runtime: The runtime a P2P requester links to (C-30).
        p2p_handler: That runtime's handler stub, which a requester invites.
        kinds: Transports a P2P link may use, best first.
        host: Where a P2P stub listens, as the other end is to dial it.
        links: To whom a P2P handler lets itself be linked; who is named there may be told
            places of a private network, and name such places (T10).
        options: What its descriptor says of it beyond that; what is in it, the stub knows.
        endpoints: The only places a stub that came as a package may dial, as
            `transports.urls` writes them; `node_url` is the first of them.
    """

    runtime: str
    domain: str
    node_url: str | None = None
    credentials: Credentials = NO_CREDENTIALS
    session: str | None = None
    remote_runtime: str | None = None
    p2p_handler: str | None = None
    kinds: tuple[Kind, ...] = ()
    host: str = LOOPBACK
    links: LinkWishes = WHENEVER_POSSIBLE
    options: JsonObject = attrs.field(factory=dict)
    endpoints: tuple[str, ...] = ()


def _let_go(_token: str) -> None:
    """Keep no token: in a runtime a stub outlives its sessions."""


async def _forget(_token: str) -> None:
    """Store no token."""


@final
@attrs.frozen(slots=True)
class StubContext:
    """All that a stub may use; there is nothing else for it to reach.

    Attributes:
        url: Its own address.
        bus: Its sandbox's MiniBUS.
        config: What it is deployed for.
        network: Dials and listens.
        tracer: Takes its evidence.
        ids: Message ids for its own addresses.
        entropy: n random bytes.
        counters: Counts what it drops.
        keep: Takes the token of its session, for a stub that may come after it.
        remember: Takes it, too, and has stored it when it returns; before the session is used.
    """

    url: str
    bus: MiniBusPort
    config: StubConfig
    network: Network
    tracer: Tracer
    ids: IdSource
    entropy: Callable[[int], bytes]
    counters: Counters = attrs.field(factory=Counters)
    keep: Callable[[str], None] = _let_go
    remember: Callable[[str], Awaitable[None]] = _forget


StubFactory: TypeAlias = Callable[[StubContext], Actor[Delivery]]
"""What a stub module exports as `activate` (STB-01, C-67).

The actor may take more message classes than `Delivery`, for its own tasks.
"""


def status_event(context: StubContext, step: Step, sessions: int) -> Message:
    """Write what the runtime is told of one step of a node stub's connection (STB-05).

    Args:
        context: Of the stub.
        step: Which.
        sessions: How many sessions it has had: of one that is live it is the name.
    """
    url = context.url
    link = f"{url}/session/{sessions}" if step.new == State.LIVE else None
    body = write_body(Status(step.new, description=step.why or None, link=link))
    return Message(context.ids.next(url), MessageType.UPDATE, url, status_of(url), body)


@final
class StubConnection:
    """Takes the steps of one stub's connection; for stubs that keep no core of their own.

    A stub that is made has been `created`; the first thing it tells is that.
    """

    def __init__(self, context: StubContext) -> None:
        self._context = context
        self._entity = Entity(STUB_CONNECTION, context.url)

    @property
    def state(self) -> State | None:
        """How the connection stands; None: nothing was told yet."""
        state = self._entity.state
        return None if state is None else State(state)

    async def step(self, trigger: Trigger, why: str = "") -> None:
        """Take a step; the runtime hears of it.

        Args:
            trigger: What happened.
            why: Half a sentence for people.

        Raises:
            UndeclaredTransitionError: It cannot happen in this state: a bug of the stub.
        """
        context = self._context
        step = self._entity.step(trigger, why)
        context.tracer.step(f"stub:{context.url}", step)
        await context.bus.post(status_event(context, step, sessions=1))
