"""The registry's table of stubs to message nodes, one stub per domain (RES-04, STB-11..16).

A stub is the component that connects this runtime to the node of a domain. The identity provider
of a domain (`domain-idp://<domain>`) has its own stub if the domain's catalogue describes one;
otherwise the stub of the domain's node serves it (C-59, PFY-12). The stub of another domain is
removed after some time without use (PFY-03).
"""

import math
from typing import Final, TypeAlias

import attrs

from fsm.effects import Intent, RowChanged
from fsm.limits.rates import CrashCount
from fsm.machines import resolve_job, stub_connection, stub_deployment
from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.searches import NodePlan, ResolveJobs, RoutesPort, node_key
from specs.addresses.address import domain_of, is_idp_proxy
from specs.limits.protocol import DEPLOY_TIMEOUT, RETRY_COOL_DOWN, SANDBOX_COOL_DOWN
from specs.reply_code import Code
from specs.trace import Op

_TABLE: Final = "stubs"
_WRITER: Final = "registry"


@attrs.define(slots=True)
class _Row:
    """The stub to the node of one domain.

    Attributes:
        url: Address of the stub.
        deployment: State of the deployment, as the loader reports it.
        connection: State of the connection, as the stub reports it; None: no report yet.
        waiting: Route searches that wait for the deployment, oldest first, with the times until
            which their answers are valid.
        begun: Time at which the deployment was requested.
        used: Time at which the stub was last known to be in use.
        release: Number of the open `release` request to the bus; None: there is none.
    """

    url: str
    deployment: stub_deployment.State = stub_deployment.State.DEPLOYING
    connection: stub_connection.State | None = None
    waiting: dict[tuple[str, Intent], float] = attrs.field(factory=dict)
    begun: float = math.inf
    used: float = math.inf
    release: int | None = None

    @property
    def is_deployed(self) -> bool:
        return self.deployment is stub_deployment.State.DEPLOYED

    @property
    def is_at_rest(self) -> bool:
        """Whether the stub is not connecting, so that no message can be waiting in it."""
        return self.connection not in _WAITING

    def use(self, now: float) -> None:
        """Note that the stub is in use, so that an open `release` request is void."""
        self.used, self.release = now, None


_WAITING: Final = frozenset({stub_connection.State.IN_PROGRESS, stub_connection.State.DISCONNECTED})


_Cooling: TypeAlias = tuple[float, str, Code]
"""The pause after a stub of a domain has failed: its end, the reason of the failure, and the code
with which requests are refused meanwhile: 503, or 404 if no stub for the domain exists.
"""


class NodeStubs:
    """The stubs to the nodes of all domains: deployment, failure, release when idle.

    Args:
        config: The configuration; its `stub_idle` says when a stub of another domain is released.
        port: The host.
        jobs: The open searches.
    """

    def __init__(self, config: ResolveConfig, port: RoutesPort, jobs: ResolveJobs) -> None:
        self._config = config
        self._port = port
        self._jobs = jobs
        self._rows: dict[str, _Row] = {}
        self._cooling: dict[str, _Cooling] = {}
        self._crashes: dict[str, CrashCount] = {}
        self._sessions: dict[str, str | None] = {}
        self._minted = 0
        self._releases = 0

    def url(self, domain: str) -> str | None:
        """Return the address of the stub to a domain's node if it is deployed, or None."""
        row = self._rows.get(domain)
        return row.url if row is not None and row.is_deployed else None

    def urls(self) -> tuple[str, ...]:
        """Return the addresses of all deployed stubs."""
        return tuple(row.url for row in self._rows.values() if row.is_deployed)

    def ask(self, domain: str, asked: tuple[str, Intent], now: float, until: float) -> None:
        """Answer a route search with the stub to a domain's node; deploy the stub if needed.

        The host gets the answer by the call `route` or `no_route`, now or after the deployment.

        Args:
            domain: The domain of the node, or the address of its identity provider.
            asked: The address to reach, and the permitted kinds of routes.
            now: Seconds on the host's clock.
            until: The time until which the answer may be remembered, on the same clock.
        """
        row, key = self._rows.get(domain), node_key(domain)
        if row is not None and row.is_deployed:
            row.use(now)
            self._jobs.answer(key, "deployed")
            self._port.route(*asked, row.url, until, f"the node of {domain}")
            return
        if row is not None:
            row.waiting[asked] = until
            return
        cooling = self._cooling.get(domain)
        is_cooling = cooling is not None and now < cooling[0]
        if is_cooling and is_idp_proxy(domain):
            self.ask(domain_of(domain), asked, now, until)
            return
        self._jobs.begin(key)
        if cooling is not None and is_cooling:
            why = f"no route to the node of {domain} a moment ago: {cooling[1]}"
            self._jobs.decide(key, resolve_job.Trigger.NONE, cooling[1])
            self._refuse(asked, cooling, why, now)
            return
        self._jobs.decide(key, resolve_job.Trigger.DEPLOY)
        self._minted += 1
        url = f"{self._config.runtime}/protostub/{self._minted}"
        row = self._rows[domain] = _Row(url, waiting={asked: until}, begun=now)
        self._trace(Op.ADD, domain, row)
        is_idp, is_again = is_idp_proxy(domain), domain in self._sessions
        plan = NodePlan(domain_of(domain) if is_idp else domain, is_idp, is_again)
        self._port.deploy(url, plan)

    def deployed(self, url: str, now: float) -> None:
        """Note that a stub is deployed, and answer the searches that wait for it (C-40)."""
        entry = self._find(url)
        if entry is None:
            self._port.undeploy(url)
            return
        domain, row = entry
        row.deployment = stub_deployment.State.DEPLOYED
        row.use(now)
        waiting, row.waiting = row.waiting, {}
        self._trace(Op.UPD, domain, row)
        self._jobs.settle([node_key(domain)], resolve_job.Trigger.FOUND)
        for asked, until in waiting.items():
            self._port.route(*asked, url, until, f"the node of {domain}")

    def failed(self, url: str, why: str, now: float, code: Code = Code.UNAVAILABLE) -> None:
        """Remove a stub that failed, and refuse the searches that wait for it (STB-14).

        Another stub to the domain is deployed only after a pause.

        Args:
            url: Address of the stub.
            why: The reason, as half a sentence.
            now: Seconds on the host's clock.
            code: Code of the refusals.
        """
        entry = self._find(url)
        if entry is None:
            return
        domain, row = entry
        cooling = self._cool(domain, (now + RETRY_COOL_DOWN, why, code), now)
        if not is_idp_proxy(domain) or now - row.begun >= DEPLOY_TIMEOUT:
            # A slow failure: searches that have waited so long do not wait for the node as well.
            self._remove(domain, row, why, now, cooling)
            return
        waiting, row.waiting = row.waiting, {}
        self._remove(domain, row, why, now)
        for asked, until in waiting.items():
            self.ask(domain_of(domain), asked, now, until)

    def crashed(self, url: str, now: float) -> None:
        """Remove a crashed stub; the next search deploys another, unless it crashes often (R11)."""
        entry = self._find(url)
        if entry is None:
            return
        domain = entry[0]
        self._crashes = {crash: it for crash, it in self._crashes.items() if not it.is_calm(now)}
        if self._crashes.setdefault(domain, CrashCount()).count_crash(now):
            why = "it crashes again and again"
            self._cool(domain, (now + SANDBOX_COOL_DOWN, why, Code.UNAVAILABLE), now)
        self._remove(*entry, "it crashed", now, self._cooling.get(domain))

    # ---- release of idle stubs (PFY-03)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return min((self._idle_at(*each) for each in self._rows.items()), default=math.inf)

    def tick(self, now: float) -> None:
        """Ask the bus whether the stubs that seem idle may be removed."""
        for domain, row in self._rows.items():
            if self._idle_at(domain, row) <= now:
                self._releases += 1
                row.release = self._releases
                self._port.release(row.url, domain_of(domain) or domain, self._releases)

    def _idle_at(self, domain: str, row: _Row) -> float:
        """Return the time at which a stub counts as idle; infinity for the runtime's domain."""
        if domain == self._config.domain or not row.is_deployed or row.release is not None:
            return math.inf
        return row.used + self._config.stub_idle

    def released(self, url: str, number: int, now: float, *, is_free: bool) -> None:
        """Handle the answer to `release`: remove the stub if it is free and still unused.

        The next message to its domain deploys another stub with a new address (STB-15). The answer
        to an outdated request is ignored.
        """
        entry = self._find(url)
        if entry is None or entry[1].release != number:
            return
        domain, row = entry
        if not is_free or not row.is_at_rest:
            row.use(now)
            return
        self._sessions.pop(domain, None)
        self._remove(domain, row, "it was idle", now)
        self._port.undeploy(url)

    def _cool(self, domain: str, cooling: _Cooling, now: float) -> _Cooling:
        self._cooling = {each: it for each, it in self._cooling.items() if it[0] > now}
        self._cooling[domain] = cooling
        return cooling

    def _remove(
        self, domain: str, row: _Row, why: str, now: float, cooling: _Cooling | None = None
    ) -> None:
        del self._rows[domain]
        former, row.connection = row.connection, None
        self._trace(Op.DEL, domain, row)
        self._report_own_node(domain, row, former)
        self._jobs.settle([node_key(domain)], resolve_job.Trigger.NONE, why)
        self._port.forget_routes()
        for asked in row.waiting:
            failure = cooling or (now, why, Code.UNAVAILABLE)
            self._refuse(asked, failure, f"no stub for {domain}: {why}", now)

    def status(self, url: str, value: str, session: str | None, why: str, now: float) -> None:
        """Handle a status event of a stub's connection (I-S5); ignore that of a removed stub."""
        entry = self._find(url)
        if entry is None:
            return
        domain, row = entry
        was, row.connection = row.connection, stub_connection.State(value)
        is_over = row.connection is stub_connection.State.FAILED
        if is_over and was is stub_connection.State.DISCONNECTED and domain == self._config.domain:
            # The stub stays and refuses all messages, since another stub would log in again.
            self._trace(Op.UPD, domain, row)
            self._port.set_own_node(url, is_live=False, end=why)
            return
        if is_over:
            self._report_own_node(domain, row, was)
            self.failed(url, why or "it could not connect", now)
            self._port.undeploy(url)
            return
        self._trace(Op.UPD, domain, row)
        self._report_own_node(domain, row, was)
        if row.connection is not stub_connection.State.LIVE:
            return
        known, self._sessions[domain] = self._sessions.get(domain), session
        if known is not None and known != session and not is_idp_proxy(domain):
            self._port.renew_paths(domain, session)

    def _report_own_node(self, domain: str, row: _Row, was: stub_connection.State | None) -> None:
        """Report whether the connection to the runtime's own node is live, if changed."""
        live = stub_connection.State.LIVE
        if domain == self._config.domain and (row.connection is live) is not (was is live):
            self._port.set_own_node(row.url, is_live=row.connection is live)

    def _find(self, url: str) -> tuple[str, _Row] | None:
        return next(((d, row) for d, row in self._rows.items() if row.url == url), None)

    def _trace(self, op: Op, domain: str, row: _Row) -> None:
        value = f"{row.url} {row.connection or row.deployment}"
        self._port.row(RowChanged(op, _TABLE, domain, value, _WRITER))

    def _refuse(self, asked: tuple[str, Intent], cooling: _Cooling, why: str, now: float) -> None:
        """Refuse a route search; the answer says when to retry, unless no stub exists at all."""
        until, _, code = cooling
        pause = until - now if code is Code.UNAVAILABLE and until > now else None
        self._port.no_route(*asked, code, why, pause)
