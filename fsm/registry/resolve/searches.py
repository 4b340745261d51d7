"""Open searches of a runtime's registry for stubs and links, and its calls to the host.

A search has a key: a domain, or an entity to which a link is wanted. At most one search is open for
each key; after it has ended, another may begin (RES-13, I-R6, I-R7).

Route searches that wait for a link are in `LinkQueue` (RES-09, I-R9). Their messages wait, in
order, at the component that asked, so no message is lost or doubled, whatever the result.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import attrs

from fsm.effects import Intent, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.timers import Alarms
from fsm.machines.resolve_job import RESOLVE_JOB, State, Trigger
from specs.limits.protocol import P2P_TIMEOUT
from specs.reply_code import Code


@attrs.frozen(slots=True)
class NodePlan:
    """Data for the deployment of a stub to a domain's node or identity provider (PFY-12).

    Attributes:
        domain: The domain.
        is_idp: Whether the stub connects to the identity provider.
        is_again: Whether an earlier stub to the node had a session and has failed.
    """

    domain: str
    is_idp: bool = False
    is_again: bool = False


@attrs.frozen(slots=True)
class RequesterPlan:
    """Data for the deployment of a P2P stub that requests a link (RES-08).

    Attributes:
        remote: Address of the remote runtime.
        handler: Address of the remote runtime's handler stub.
        descriptor: Catalogue address of the requester stub, from the record's `p2pRequester`.
    """

    remote: str
    handler: str
    descriptor: str


StubPlan: TypeAlias = NodePlan | RequesterPlan


class RoutesPort:
    """Calls of the registry's route search to its host, which sends messages and deploys stubs.

    Each method does nothing unless it is overridden. No method calls the search directly; the host
    passes results to `ResolveCore` later.
    """

    # ---- trace

    def step(self, step: Step) -> None:
        """Trace a state machine transition."""

    def row(self, row: RowChanged) -> None:
        """Trace a change in a table."""

    def refuse_stub(self, address: str, why: str) -> None:
        """Report that a record names a stub that is no P2P requester stub."""

    def refuse_hint(self, entity: str, why: str) -> None:
        """Report that a registry record does not confirm a hint for a link (RES-16)."""

    # ---- answers to the Message BUS

    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        """Answer `ask` with the stub or link (`url`) to which messages for an address are given.

        The answer is valid until the time `until`, or until `forget_routes` is called.
        """

    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer `ask`: no route exists, so messages are refused with code and reason (RES-14)."""

    def forget_routes(self) -> None:
        """Forget every route that was answered before."""

    def release(self, url: str, domain: str, number: int) -> None:
        """Forget the routes through a stub unless it is in use; then call `stub_released`.

        The stub is in use if requests through it are open, or subscriptions in its domain exist.
        Each call has another number.
        """

    def add_peer(self, link: str, remote: str) -> None:
        """Accept messages of a runtime over a link (I-B10)."""

    def remove_peer(self, link: str) -> None:
        """Refuse further messages over a link."""

    def set_owner(self, entity: str, owner: str | None) -> None:
        """Answer `ask_owner` with the runtime that owns an address; None: no registry knows it."""

    def forget_owner(self, entity: str) -> None:
        """Withdraw the answer to `ask_owner`, since the owner may have changed."""

    # ---- stubs

    def deploy(self, url: str, plan: StubPlan) -> None:
        """Deploy a stub; then call `stub_deployed` or `stub_failed`."""

    def undeploy(self, url: str) -> None:
        """Remove a stub with all its listeners (STB-16)."""

    def set_own_node(self, stub: str, *, is_live: bool, end: str | None = None) -> None:
        """Report whether the connection to the runtime's own node is live (REG-12).

        If the reason `end` is given, the stub will not connect again.
        """

    def renew_paths(self, domain: str, session: str | None) -> None:
        """Repeat all subscriptions at the node of a domain, since it has opened a new session."""

    # ---- requests

    def read_record(self, entity: str) -> None:
        """Read a record from its domain's registry (M-25, I-R10); then call `record_read`."""

    def read_owner(self, entity: str) -> None:
        """Read a record to learn the owner of an address (M-25); then call `owner_read`."""

    def set_path(self, url: str) -> None:
        """Subscribe at the runtime's node to messages for `url` (M-03); then call `path_set`."""

    def remove_path(self, url: str) -> None:
        """Unsubscribe at the runtime's node from messages for `url` (M-04)."""

    # ---- direct links

    def register_link(self, link: str, handler: str) -> None:
        """Set the listeners of a handler's link (M-05, I-P17); then call `link_registered`."""

    def unregister_link(self, link: str) -> None:
        """Remove the Message BUS listener of a link (I-P19)."""

    def connect(self, stub: str, handler: str) -> None:
        """Order a requester stub to restore its link (M-11)."""

    def disconnect(self, stub: str, remote: str, link: str) -> None:
        """Order a P2P stub to end one link (M-12); other links of the stub stay."""

    def suspend(self, stub: str, remote: str) -> None:
        """Order a requester stub to wait until the peer's link is live or has failed (P2P-27)."""

    def resume(self, stub: str, remote: str) -> None:
        """Order a waiting requester stub to continue: the peer's link has failed (P2P-27)."""

    def link_up(self, remote: str, link: str) -> None:
        """Exchange lists of hyperties and objects over a link that is live now (P2P-23)."""

    def link_down(self, remote: str) -> None:
        """Stop the exchange of lists over a link that is no longer live but may come back."""

    def link_gone(self, remote: str) -> None:
        """Forget the hyperties and objects of a runtime whose link is removed."""


WaitingAsk: TypeAlias = tuple[str, Intent, str]
"""A waiting route search: the address, the intent, and the entity to which a link is set up."""


class LinkQueue:
    """The route searches that wait until a link is set up, and their deadlines."""

    def __init__(self) -> None:
        self._asks: dict[tuple[str, Intent], WaitingAsk] = {}
        self._until: dict[str, float] = {}

    def wait(self, ask: WaitingAsk, now: float) -> bool:
        """Let a route search wait for a link; return False if the time for that link is over."""
        to, intent, entity = ask
        if now >= self._until.setdefault(entity, now + P2P_TIMEOUT):
            return False
        self._asks[to, intent] = ask
        return True

    def deadline(self) -> float:
        """Return the time at which the wait of the first route search ends."""
        waiting = {entity for _, _, entity in self._asks.values()}
        return min((self._until[entity] for entity in waiting), default=math.inf)

    def take_done(self, is_settled: Callable[[str], bool], now: float) -> list[WaitingAsk]:
        """Remove and return the route searches whose link is decided, or whose time is over."""
        settled = {entity for entity in self._until if is_settled(entity)}
        for entity in settled:
            # When a link to this entity is set up again, searches may wait for it again.
            del self._until[entity]
        finished = [ask for ask in self._asks.values() if self._until.get(ask[2], 0.0) <= now]
        for to, intent, _ in finished:
            del self._asks[to, intent]
        return finished


_LINK: Final = "link|"
_LOOKING: Final = (State.LOOKUP, State.QUERY)
_WAITING: Final = (State.ATTACHED, State.WAIT)


def node_key(domain: str) -> str:
    """Return the key of the search for the stub of a domain's node."""
    return f"node|{domain}"


def link_key(entity: str) -> str:
    """Return the key of the search for a direct link to a hyperty or object."""
    return f"{_LINK}{entity}"


class ResolveJobs:
    """The open searches for stubs and links, each with its state machine."""

    def __init__(self, port: RoutesPort) -> None:
        self._port = port
        self._open: dict[str, Entity] = {}
        self._alarms = Alarms[str]()

    def __len__(self) -> int:
        return len(self._open)

    def is_open(self, key: str) -> bool:
        """Return whether a search with this key is open."""
        return key in self._open

    def begin(self, key: str) -> None:
        """Begin a search.

        Raises:
            UndeclaredTransitionError: The search is open already; call `is_open` first.
        """
        job = self._open.setdefault(key, Entity(RESOLVE_JOB, key))
        self._port.step(job.step(Trigger.ASKED))

    def answer(self, key: str, why: str) -> None:
        """Trace a search whose result is known already; an open search is not changed."""
        if key not in self._open:
            self.begin(key)
            self.decide(key, Trigger.ATTACH, why)
            self.settle([key], Trigger.FOUND)

    def query(self, key: str, now: float) -> None:
        """Note that an open search waits for a record, for a limited time."""
        self.decide(key, Trigger.QUERIED)
        self._alarms.set(key, now + self._open[key].patience)

    def decide(self, key: str, trigger: Trigger, why: str = "") -> None:
        """Trigger a transition of a search by the result of a look-up.

        A search whose look-up has ended before is not changed.
        """
        job = self._open.get(key)
        if job is not None and job.state in _LOOKING:
            self._move(job, trigger, why)

    def settle(self, keys: Iterable[str], trigger: Trigger, why: str = "") -> None:
        """End the given searches that wait for a stub or link."""
        for key in keys:
            job = self._open.get(key)
            if job is not None and job.state in _WAITING:
                self._move(job, trigger, why)

    def deadline(self) -> float:
        """Return the time at which `late` must be called next."""
        return self._alarms.deadline()

    def late(self, now: float) -> list[str]:
        """Return the hyperties and objects whose records have not come in time."""
        return [key.removeprefix(_LINK) for key in self._alarms.due(now)]

    def end_links(self, why: str) -> None:
        """End every search for a link without a result, since no more links are set up."""
        self._end([job for key, job in self._open.items() if key.startswith(_LINK)], why)

    def end(self, why: str) -> None:
        """End every search without a result."""
        self._end(list(self._open.values()), why)

    def _end(self, jobs: list[Entity], why: str) -> None:
        for job in jobs:
            self._move(job, Trigger.NONE, why)

    def _move(self, job: Entity, trigger: Trigger, why: str) -> None:
        step = job.step(trigger, why)
        self._alarms.set(job.key, float("inf"))
        if job.may_end:
            del self._open[job.key]
        self._port.step(step)
