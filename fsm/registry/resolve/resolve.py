"""Search of a runtime's registry for the route to an address outside this runtime (RES-01..15).

The search is opportunistic (C-20): it answers at once with a live P2P link to the entity (hyperty
or data object), or else with the stub of a message node. Meanwhile it reads records and sets up
links for later messages. So a message only waits while the stub of its domain is being deployed,
and never for a link. By its `link_policy`, a runtime may demand that messages wait for a link for
some time, or that they go by a link only.

The search for a link (RES-03, RES-06, RES-13) uses the registry record of the entity, which names
the runtime and its P2P stubs. After the record is known, the search waits until the link is live,
or ends since no link is possible.
"""

from fsm.effects import Intent, LinkHint
from fsm.machines.p2p_connection import State
from fsm.machines.resolve_job import Trigger
from fsm.p2p.link_policy import P2pUse, P2pWait
from fsm.registry.resolve.address_owners import AddressOwners, RecordCache
from fsm.registry.resolve.links import (
    LinkEntry,
    LinkTable,
    ResolveConfig,
    plan_of,
    plan_of_hint,
)
from fsm.registry.resolve.node_stubs import NodeStubs
from fsm.registry.resolve.searches import (
    LinkQueue,
    RequesterPlan,
    ResolveJobs,
    RoutesPort,
    WaitingAsk,
    link_key,
)
from fsm.registry.resolve.topology import Topology
from specs.addresses.address import (
    domain_of,
    idp_proxy,
    is_backend,
    is_below,
    is_idp_proxy,
    is_other_stub,
    runtime_of,
)
from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.limits.p2p import LINK_HINTS
from specs.limits.protocol import NEGATIVE_CACHE
from specs.reply_code import Code


class ResolveCore:
    """Finds routes: knows the stubs, links, remote records and local addresses of a runtime.

    `now` is always the time on the host's clock in seconds.

    Args:
        config: The configuration; its `link_policy` says which links are wanted.
        port: The host.
    """

    def __init__(self, config: ResolveConfig, port: RoutesPort) -> None:
        self._config = config
        self._port = port
        self._jobs = ResolveJobs(port)
        self._stubs = NodeStubs(config, port, self._jobs)
        self._records = RecordCache()
        self._links = LinkTable(config.runtime, port, self._jobs, self._records)
        self._waiters = LinkQueue()
        self._owners = AddressOwners(port, self._records)
        self._hinted: dict[str, RequesterPlan] = {}
        self._local: set[str] = set()
        self._is_closing = False

    # ---- questions

    def links(self) -> tuple[LinkEntry, ...]:
        """Return the entries of all P2P links (P2P-18); the caller must not change them."""
        return self._links.entries()

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link to a runtime or to an address in it that belongs to a stub (P2P-18).

        The stub itself asks, for the status of the link that it handles.
        """
        return self._links.row(whom, stub)

    def node_stubs(self) -> tuple[str, ...]:
        """Return the addresses of the deployed stubs to message nodes."""
        return self._stubs.urls()

    def node_of(self, to: str) -> str:
        """Return the domain of the node to which messages for an address are sent (C-49)."""
        if self._config.topology is Topology.TRIANGLE and not to.startswith("global:"):
            return domain_of(to)
        return self._config.domain

    def node_stub(self, to: str) -> str | None:
        """Return the deployed stub to the node that gets messages for an address, or None."""
        return self._stubs.url(self.node_of(to))

    def is_local(self, address: str) -> bool:
        """Return whether an address is, or was, that of a component of this runtime."""
        return runtime_of(address) in self._local or is_below(address, self._config.runtime)

    def live_link(self, entity: str) -> str | None:
        """Return the live link that leads to a hyperty or object, or to a runtime, or None."""
        return self._links.live_link(entity)

    def speaks_for(self, link: str, part: str, who: str, now: float) -> bool | None:
        """Return whether a component of a linked runtime may send in the name of an address.

        A component of the linked runtime may send for all addresses below that runtime's. Otherwise
        the address must be the sender's own, and its registry record must name the linked runtime,
        as a node would check (P2P-30).

        Args:
            link: Address of the link.
            part: Address of the sending component.
            who: Address of the hyperty or object.
            now: Seconds on the host's clock.

        Returns:
            None: not known yet, since the link is not live, or the record has not been read.
        """
        entry = self._links.entry_by(link)
        if entry is None or not (part == who or is_below(part, entry.remote)):
            return False
        if not entry.is_live:
            return None
        if is_below(who, entry.remote):
            return True
        record = self._records.find(who, now)
        if record is None and not self._records.is_known(who, now):
            return None
        return record is not None and record.runtime == entry.remote

    @property
    def searches(self) -> int:
        """The number of open searches for routes and links."""
        return len(self._jobs)

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called next."""
        return min(
            self._jobs.deadline(),
            self._waiters.deadline(),
            self._links.deadline(),
            self._stubs.deadline(),
            self._owners.deadline(),
        )

    # ---- inputs: searches

    def ask(self, to: str, intent: Intent, now: float, hint: LinkHint | None = None) -> None:
        """Search for the route to an address; the host gets the call `route` or `no_route`.

        Args:
            to: The address, which has no listener on the Message BUS.
            intent: Permitted kinds of routes.
            now: Seconds on the host's clock.
            hint: The sender's unverified description of a link to the address (RES-16).
        """
        if self.is_local(to):
            self._port.no_route(to, intent, Code.NOT_FOUND, "target not found")
        elif not domain_of(to):
            why = f"{to[:80]!r} is no address such as hyperty://a.example/1"
            self._port.no_route(to, intent, Code.MALFORMED, why)
        elif is_backend(to) or intent is Intent.NODE:
            self._ask_node(to, intent, now)
        else:
            self._ask_link(to, intent, now, hint)

    def seek_link(self, entity: str, now: float) -> None:
        """Begin to set up a link to the runtime of an address, if allowed; no message waits."""
        runtime = runtime_of(entity)
        if not (self.is_local(entity) or is_backend(entity) or self.live_link(runtime)):
            self._seek(runtime, Intent.LINK, None, now)

    def add_local(self, address: str) -> None:
        """Note the address of a hyperty or object of this runtime.

        The address stays local: later messages to it are answered 404.
        """
        self._local.add(address)

    def close_links(self, now: float) -> None:
        """Forget all links and set up no more, since the runtime shuts down."""
        self._is_closing = True
        self._links.close()
        self._jobs.end_links("the runtime goes")
        self._answer_waiters(now)

    def stop(self) -> None:
        """End all searches without a result, since the registry itself stops."""
        self._is_closing = True
        self._links.close()
        self._jobs.end("the registry goes")

    def time_over(self, now: float) -> None:
        """Handle the deadlines that have passed, of searches, links, stubs and owners."""
        for entity in self._jobs.late(now):
            self._take_record(entity, None, now)
        self._links.tick(now)
        self._owners.tick(now)
        self._stubs.tick(now)
        self._answer_waiters(now)

    # ---- inputs: stubs

    def stub_deployed(self, url: str, now: float) -> None:
        """Note that a requested stub is deployed and running."""
        if not self._links.has_requester(url):
            self._stubs.deployed(url, now)

    def stub_failed(self, url: str, why: str, now: float, *, is_absent: bool = False) -> None:
        """Handle that a requested stub could not be deployed, or does not exist (`is_absent`)."""
        self._links.gone(url, now)
        code = Code.NOT_FOUND if is_absent else Code.UNAVAILABLE
        self._stubs.failed(url, why, now, code)
        self._answer_waiters(now)

    def stub_gone(self, url: str, now: float) -> None:
        """Remove a stub that has crashed, with its routes and links."""
        self._links.gone(url, now)
        self._stubs.crashed(url, now)
        self._answer_waiters(now)

    def stub_released(self, url: str, number: int, now: float, *, is_free: bool) -> None:
        """Handle the answer to `release`: the stub may be removed if `is_free`."""
        self._stubs.released(url, number, now, is_free=is_free)

    def node_status(self, stub: str, value: str, session: str | None, why: str, now: float) -> None:
        """Handle a status event of a stub to a node, with the session that it has (M-06)."""
        self._stubs.status(stub, value, session, why, now)

    # ---- inputs: links

    def link_status(self, stub: str, value: str, remote: str, link: str | None, now: float) -> None:
        """Handle the status of a link that a P2P stub reports (M-07, M-13).

        If `link` is None, the link has the address of its stub.
        """
        self._links.status(stub, value, remote, link or stub, now)
        if value == State.FAILED:
            self._records.forget_runtime(remote)
        self._answer_waiters(now)

    def path_set(self, url: str, refusal: str | None, now: float) -> None:
        """Handle the answer to `set_path`: None, or the reason why the node refused."""
        self._links.path_set(url, refusal, now)
        self._answer_waiters(now)

    def link_registered(self, link: str, refusal: str | None, now: float) -> None:
        """Handle the answer to `register_link`: None, or the reason why the handler refused."""
        self._links.registered(link, refusal, now)
        self._answer_waiters(now)

    def link_over(self, stub: str, link: str, now: float) -> None:
        """Remove a link of a handler stub that has ended and will not be restored."""
        self._links.over(stub, link, now)
        self._answer_waiters(now)

    def link_forged(self, link: str, now: float) -> None:
        """End the links to a peer that sent too many messages from foreign addresses (S1)."""
        self._links.forged(link, now)
        self._answer_waiters(now)

    def entities_listed(
        self, remote: str, there: tuple[str, ...], gone: tuple[str, ...], now: float
    ) -> None:
        """Handle a linked registry's report of added and removed addresses (M-08, M-09)."""
        self._links.list_entities(remote, there, gone, now)
        self._answer_waiters(now)

    def witness(self, link: str, entity: str, now: float) -> None:
        """Read the record of an address from which messages come over a link (P2P-30)."""
        self._links.witness(link, entity, now)

    # ---- inputs: records

    def record_read(self, entity: str, record: Record | None, now: float) -> None:
        """Handle the result of `read_record`: a live record, or None if none could be read."""
        self._owners.compare(entity, record)
        self._take_record(entity, record, now)
        self._answer_waiters(now)

    def record_reported(self, entity: str, status: RecordStatus | None, now: float) -> None:
        """Handle the new status of a record (M-30, REG-13).

        No link is set up to a disconnected entity, but a live link stays in use. A status of None
        means that the record may have changed while no report could be received.
        """
        self._owners.doubt(entity)
        if status is None or status is RecordStatus.LIVE:
            self._records.forget(entity)
            if status is not None:
                self._links.entities.unbind(entity)
        else:
            self._records.away(entity, now)
            self._join(entity, self._links.entities.entry_of(entity))
        self._answer_waiters(now)

    def ask_owner(self, entity: str, remote: str, now: float) -> None:
        """Find the runtime that owns a hyperty or object in whose name `remote` sends (I-B10).

        The host gets the answer by the call `set_owner`.
        """
        self._owners.ask(entity, remote, now)

    def owner_read(
        self, entity: str, record: Record | None, now: float, *, is_answered: bool = True
    ) -> None:
        """Handle the result of `read_owner`: a live or disconnected record, or None.

        `is_answered` tells whether a registry answered.
        """
        if record is not None and record.status == RecordStatus.LIVE:
            # The record also binds the entity, before waiting searches continue.
            self._links.entities.bind(entity, record.runtime)
        self._owners.read(entity, record, now, is_answered=is_answered)
        self._answer_waiters(now)

    # ---- routes

    def _ask_link(self, to: str, intent: Intent, now: float, hint: LinkHint | None) -> None:
        """Answer with the live link, or else the node; begin to set up a link if wanted."""
        entity = runtime_of(to)
        link = self.live_link(entity)
        if link is not None:
            self._jobs.answer(link_key(entity), "live link")
            self._port.route(to, intent, link, now + NEGATIVE_CACHE, "live link")
        elif intent is Intent.DIRECT:
            self._port.no_route(to, intent, Code.UNAVAILABLE, "no live link leads there")
        elif not self._config.link_policy.holds_messages:
            # The message is sent by the node before the search for a link begins.
            self._ask_node(to, intent, now)
            self._seek(entity, intent, hint, now)
        else:
            self._seek(entity, intent, hint, now)
            if not self._may_wait((to, intent, entity), now):
                self._ask_without_link(to, intent, now)

    def _may_wait(self, ask: WaitingAsk, now: float) -> bool:
        """Let a route search wait until a link is set up; return whether it waits (RES-09)."""
        _, intent, entity = ask
        if intent is Intent.KNOWN or not self._jobs.is_open(link_key(entity)):
            return False
        entry = self._links.entities.entry_of(entity)
        is_lost = entry is not None and entry.status is State.DISCONNECTED
        is_required = self._use(entity) is P2pUse.REQUIRED
        is_awaited = self._config.link_policy.wait is P2pWait.AWAIT and not is_lost
        return (is_required or is_awaited) and self._waiters.wait(ask, now)

    def _answer_waiters(self, now: float) -> None:
        """Answer the route searches that need not wait for a link any longer."""
        over = self._waiters.take_done(lambda entity: not self._jobs.is_open(link_key(entity)), now)
        for to, intent, waiting_for in over:
            link = self._links.live_link(waiting_for)
            if link is None:
                self._ask_without_link(to, intent, now)
            else:
                self._port.route(to, intent, link, now + NEGATIVE_CACHE, "live link")

    def _ask_without_link(self, to: str, intent: Intent, now: float) -> None:
        if self._use(runtime_of(to)) is P2pUse.REQUIRED:
            why = "no direct link, and none other may be"
            self._port.no_route(to, intent, Code.UNAVAILABLE, why)
        else:
            self._ask_node(to, intent, now)

    def _ask_node(self, to: str, intent: Intent, now: float) -> None:
        """Answer with the stub to a node, or to an identity provider that has its own stub."""
        is_described = self._config.has_catalogues and domain_of(to) != self._config.domain
        is_idp = is_described and is_idp_proxy(to)
        server = idp_proxy(domain_of(to)) if is_idp else self.node_of(to)
        self._stubs.ask(server, (to, intent), now, now + NEGATIVE_CACHE)

    # ---- searches for links

    def _use(self, entity: str) -> P2pUse:
        """Return the link policy for an address, by the address and its runtime, if known."""
        entry = self._links.entities.entry_of(entity)
        return self._config.link_policy.of(*([entry.remote] if entry is not None else []), entity)

    def _seek(self, entity: str, intent: Intent, hint: LinkHint | None, now: float) -> None:
        """Begin to search for a P2P link to an address, if intent and link policy allow one."""
        key, use = link_key(entity), self._use(entity)
        is_due = intent is Intent.REACH and use is not P2pUse.WHEN_ASKED
        is_wanted = (is_due or intent is Intent.LINK) and use is not P2pUse.NEVER
        if not is_wanted or self._is_closing or self._jobs.is_open(key):
            return
        self._jobs.begin(key)
        record = self._records.find(entity, now)
        if record is not None:
            self._set_up(entity, record, now)
        elif self._records.is_known(entity, now):
            self._join(entity, self._links.entities.entry_of(entity))
        else:
            self._jobs.query(key, now)
            self._port.read_record(entity)
            if hint is not None:
                self._follow(entity, hint, now)

    def _follow(self, entity: str, hint: LinkHint, now: float) -> None:
        """Begin to set up a link that a hint describes, while the record is read (RES-16).

        Messages to the hyperty or object use the link only after the record has confirmed the hint.
        """
        plan = plan_of_hint(entity, hint)
        if isinstance(plan, str):
            self._port.refuse_hint(entity, plan)
            return
        is_unwanted = self._config.link_policy.of(plan.remote, entity) is P2pUse.NEVER
        is_own = plan.remote == self._config.runtime
        is_full = len(self._hinted) >= LINK_HINTS
        if not (is_unwanted or is_own or is_full) and self._links.plan(plan, now):
            self._hinted[entity] = plan

    def _take_record(self, entity: str, record: Record | None, now: float) -> None:
        self._records.put(entity, record, now)
        former = self._records.find(entity, now)
        self._verify_hint(entity, former, now)
        if self._links.entities.is_read_for_list(entity):
            if former is not None:
                self._links.entities.bind(entity, former.runtime)
        elif former is None:
            self._join(entity, self._links.entities.entry_of(entity))
        else:
            self._set_up(entity, former, now)

    def _verify_hint(self, entity: str, record: Record | None, now: float) -> None:
        """Compare a hint that was used with the registry record; end the link if they differ."""
        plan = self._hinted.pop(entity, None)
        if plan is None or (record is not None and plan_of(record) == plan):
            return
        why = "no live record confirms it" if record is None else "its record says otherwise"
        self._port.refuse_hint(entity, f"a link to {plan.remote} was hinted at, but {why}")
        self._links.disproved(plan, now)

    def _set_up(self, entity: str, record: Record, now: float) -> None:
        remote, plan, entities = record.runtime, plan_of(record), self._links.entities
        is_unwanted = self._config.link_policy.of(remote, entity) is P2pUse.NEVER
        if remote == self._config.runtime or is_unwanted:
            self._join(entity, entities.entry_of(entity))
            return
        if plan is not None and self._links.may_plan(remote, now):
            self._jobs.decide(link_key(entity), Trigger.DEPLOY)
            self._links.plan(plan, now)
        else:
            self._join(entity, entities.entry_for(entity, remote))
        entities.bind(entity, remote)
        stub = record.p2p_requester
        if stub and is_other_stub(stub):
            why = f"the record of {record.url} names {stub}, which is no P2P requester stub"
            self._port.refuse_stub(stub, why)

    def _join(self, entity: str, entry: LinkEntry | None) -> None:
        """Let the search for a link wait for an existing link, or end if none leads there."""
        key = link_key(entity)
        if entry is None:
            self._jobs.decide(key, Trigger.NONE, "no link to where it lives")
            return
        self._jobs.decide(key, Trigger.ATTACH)
        if entry.is_live:
            self._jobs.settle([key], Trigger.FOUND)
