"""The registry's table of node stubs: one per domain, deployed once (REG-02, RES-13..15)."""

import math
from typing import Final, final

import attrs

from fsm.effects import RowChanged
from fsm.intent import Intent
from fsm.limits.error_window import CrashCount
from fsm.machines import resolve_job, stub_connection, stub_deployment
from fsm.registry.resolve.effects import (
    Deploy,
    Effect,
    NodePlan,
    NoRoute,
    PathsLost,
    Route,
    RoutesChanged,
    Undeploy,
)
from fsm.registry.resolve.inputs import StatusSeen
from fsm.registry.resolve.jobs import ResolveJobs, node_key
from specs.limits.protocol import RETRY_COOL_DOWN, SANDBOX_COOL_DOWN
from specs.reply_code import Code
from specs.trace import Op

__all__ = ["NodeStubTable"]

_TABLE: Final = "stubs"
_WRITER: Final = "registry"


@attrs.define(slots=True)
class _Row:
    """One domain's stub.

    Attributes:
        deployment: State of its deployment, as the loader reports it.
        connection: State of its connection, as the stub reports it; None: no report yet.
        waiting: Questions that came while it was being deployed, oldest first.
    """

    url: str
    deployment: stub_deployment.State = stub_deployment.State.DEPLOYING
    connection: stub_connection.State | None = None
    waiting: dict[tuple[str, Intent], float] = attrs.field(factory=dict)

    @property
    def is_deployed(self) -> bool:
        return self.deployment is stub_deployment.State.DEPLOYED


@attrs.frozen(slots=True)
class _Cooling:
    """A domain whose stub failed: until when no other is deployed, and why it failed."""

    until: float
    why: str


@final
class NodeStubTable:
    """The stub of each domain's node; each search for one is in `jobs`."""

    def __init__(self, runtime: str, jobs: ResolveJobs) -> None:
        self._runtime = runtime
        self._jobs = jobs
        self._rows: dict[str, _Row] = {}
        self._cooling: dict[str, _Cooling] = {}
        self._crashes: dict[str, CrashCount] = {}
        self._sessions: dict[str, str | None] = {}
        self._minted = 0

    def url(self, domain: str) -> str | None:
        """Return the stub of a domain, if it is deployed."""
        row = self._rows.get(domain)
        return row.url if row is not None and row.is_deployed else None

    def urls(self) -> tuple[str, ...]:
        """Return all stubs that are deployed."""
        return tuple(row.url for row in self._rows.values() if row.is_deployed)

    def ask(
        self, domain: str, asked: tuple[str, Intent], now: float, until: float = math.inf
    ) -> list[Effect]:
        """Answer with the domain's stub, now or when it is deployed.

        Args:
            domain: The domain of the node.
            asked: Address to reach, and the intent.
            now: Seconds on the host's clock.
            until: How long the answer may be remembered, on the same clock.
        """
        row, key = self._rows.get(domain), node_key(domain)
        if row is not None and row.is_deployed:
            why = f"the node of {domain}"
            return [*self._jobs.answer(key, "deployed"), Route(*asked, row.url, until, why)]
        if row is not None:
            row.waiting[asked] = until
            return []
        begun = self._jobs.begin(key)
        cooling = self._cooling.get(domain)
        if cooling is not None and now < cooling.until:
            why = f"no route to the node of {domain} a moment ago: {cooling.why}"
            none = self._jobs.decide(key, resolve_job.Trigger.NONE, cooling.why)
            return [*begun, *none, NoRoute(*asked, Code.UNAVAILABLE, why)]
        waits = self._jobs.decide(key, resolve_job.Trigger.DEPLOY)
        self._minted += 1
        row = _Row(f"{self._runtime}/protostub/{self._minted}", waiting={asked: until})
        self._rows[domain] = row
        added = self._changed(Op.ADD, domain, row)
        return [*begun, *waits, added, Deploy(row.url, NodePlan(domain))]

    def deployed(self, url: str) -> list[Effect]:
        """Answer the waiting questions, in order (C-40)."""
        found = self._find(url)
        if found is None:
            return [Undeploy(url)]
        domain, row = found
        row.deployment = stub_deployment.State.DEPLOYED
        waiting, row.waiting = row.waiting, {}
        routes: list[Effect] = [
            Route(*asked, url, until, f"the node of {domain}") for asked, until in waiting.items()
        ]
        ended = self._jobs.settle([node_key(domain)], resolve_job.Trigger.FOUND)
        return [self._changed(Op.UPD, domain, row), *ended, *routes]

    def failed(self, url: str, why: str, now: float) -> list[Effect]:
        """Refuse the waiting questions, each once; deploy again only after a while (STB-14).

        Args:
            url: Address of the stub.
            why: The reason, as half a sentence.
            now: Seconds on the host's clock.
        """
        found = self._find(url)
        if found is None:
            return []
        self._cool(found[0], now + RETRY_COOL_DOWN, why, now)
        return self._removed(*found, why)

    def crashed(self, url: str, now: float) -> list[Effect]:
        """Forget a stub that crashed: the next need deploys another, unless too often (R11).

        Args:
            url: Address of the stub.
            now: Seconds on the host's clock.
        """
        found = self._find(url)
        if found is None:
            return []
        domain = found[0]
        self._crashes = {one: it for one, it in self._crashes.items() if not it.is_calm(now)}
        if self._crashes.setdefault(domain, CrashCount()).crashed(now):
            self._cool(domain, now + SANDBOX_COOL_DOWN, "it crashes again and again", now)
        return self._removed(*found, "it crashed")

    def _cool(self, domain: str, until: float, why: str, now: float) -> None:
        self._cooling = {one: it for one, it in self._cooling.items() if it.until > now}
        self._cooling[domain] = _Cooling(until, why)

    def _removed(self, domain: str, row: _Row, why: str) -> list[Effect]:
        del self._rows[domain]
        refusals: list[Effect] = [
            NoRoute(*asked, Code.UNAVAILABLE, f"no stub for {domain}: {why}")
            for asked in row.waiting
        ]
        ended = self._jobs.settle([node_key(domain)], resolve_job.Trigger.NONE, why)
        return [self._changed(Op.DEL, domain, row), *ended, RoutesChanged(), *refusals]

    def status(self, seen: StatusSeen, now: float) -> list[Effect]:
        """Take the status of a stub's connection (I-S5); that of a removed stub is ignored.

        Args:
            seen: The status event.
            now: Seconds on the host's clock.
        """
        url = seen.stub
        found = self._find(url)
        if found is None:
            return []
        domain, row = found
        row.connection = stub_connection.State(seen.value)
        changed = self._changed(Op.UPD, domain, row)
        if row.connection is stub_connection.State.FAILED:
            return [*self.failed(url, seen.why or "it could not connect", now), Undeploy(url)]
        if row.connection is not stub_connection.State.LIVE:
            return [changed]
        known, self._sessions[domain] = self._sessions.get(domain), seen.link
        is_new = known is not None and known != seen.link
        return [changed, *([PathsLost(domain)] if is_new else [])]

    def has(self, url: str) -> bool:
        """Return whether this is a stub of this table."""
        return self._find(url) is not None

    def _find(self, url: str) -> tuple[str, _Row] | None:
        return next(((d, row) for d, row in self._rows.items() if row.url == url), None)

    @staticmethod
    def _changed(op: Op, domain: str, row: _Row) -> RowChanged:
        return RowChanged(
            op, _TABLE, domain, f"{row.url} {row.connection or row.deployment}", _WRITER
        )
