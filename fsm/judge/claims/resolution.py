"""Claims on the routes that a runtime's registry finds, and on the changes that it announces.

Claims I-R1..I-R9, I-C1 and I-C5. A row of the table `stubs` contains the address of a stub and its
state. A row of the table `p2p` contains the state of a link, the address of its stub, and the
address bound to it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from fsm.effects import Intent
from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import (
    RUNTIME_SCHEME,
    domain_of,
    is_backend,
    last_segment,
    scheme_of,
)
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import LAST_SUCCESS
from specs.trace import Kind, Op

_CHANGES: Final = "/registry/changes"
_REGISTRY: Final = "registry"
_BY_ANY_WAY: Final = frozenset({Intent.REACH.value, Intent.KNOWN.value})
_BY_A_LINK: Final = Intent.DIRECT.value
_DEPLOYING: Final = "deploying"
_DONE: Final = fold.others(Kind.RESOLVE, Op.DONE)
_PROTOSTUB: Final = "/protostub/"
_STUB: Final = "stub:"


class Window(fold.ProcessClaim, claims=("I-C1",), place=fold.Place.RUNTIME):
    """Changes of another registry arrive only while this runtime has subscribed to them (I-C1)."""

    _asked: records.Recent[records.Key, str | None]
    _followed: set[str | None]

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if record.from_ == self.process.part(_REGISTRY):
            self._asked[records.key_of(record)] = record.type

    @fold.on(fold.at_bus(Op.CALLBACK))
    def take_callback(self, record: TraceLine) -> None:
        if not records.is_final(record) or (record.code or 0) > LAST_SUCCESS:
            return
        verb = self._asked.get(records.key_of(record))
        if verb == "subscribe":
            self._followed.add(record.from_)
        elif verb == "unsubscribe":
            self._followed.discard(record.from_)

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        from_ = record.from_ or ""
        if record.to != f"{from_}/changes" or from_ == self.process.part(_REGISTRY):
            return
        if last_segment(from_) == _REGISTRY and from_ not in self._followed:
            self.report_break(record, f"{from_} to have been asked for changes")


class TornDown(fold.ProcessClaim, claims=("I-C5",)):
    """After its last link has ended, a registry has no listeners for its changes (I-C5)."""

    _rows: dict[tuple[str | None, str | None], TraceLine]
    _alone_since: float | None = None

    @fold.on(fold.rows("p2p"))
    def take_link(self, record: TraceLine) -> None:
        self._alone_since = None if self.process.links else record.t

    @fold.on(fold.rows(records.LISTENERS))
    def take_listener(self, record: TraceLine) -> None:
        if record.actor != records.BUS or not (record.key or "").endswith(_CHANGES):
            return
        listener = (record.key, record.val)
        if record.op == Op.DEL:
            self._rows.pop(listener, None)
        else:
            self._rows[listener] = record

    @override
    def end(self) -> None:
        alone = self._alone_since
        if alone is not None and self.process.is_over_since(alone + records.SLACK):
            for row in self._rows.values():
                self.report_break(row, "this listener to go with the last link")


@fold.check("I-R1", on=_DONE, is_forgetful=True)
def check_service_route(process: fold.Process, record: TraceLine) -> None:
    """Check that services are reached through a node, never through a peer (I-R1)."""
    if records.is_p2p_end(record.result or "") and is_backend(record.to or ""):
        process.report_break("I-R1", record, "a node's stub")


class LinkRoutes(fold.ProcessClaim, claims=("I-R2", "I-R3", "I-R4")):
    """Only live links are routes (I-R2), preferred to the node (I-R3), which is a fallback (I-R4).

    The registry's table says which entity is bound to which runtime. The transitions of a stub say
    whether a link to that runtime, or the stub of the node, is live; the registry may learn of them
    a little later. If its sender demands the node, or a link, a message takes that route.
    """

    # By address of a link: the other runtime, the state, the time of the last transition.
    _ends: dict[str, tuple[str, str | None, float]]

    @fold.on(fold.steps(records.LINK_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        _, remote, _, end, *_ = [*records.split(record.key), "", "", ""]
        self._ends[end] = remote, record.new, record.t

    def _is_live(self, end: str, row: Sequence[str], now: float) -> bool:
        """Return whether a link is live by its transitions, and, after a short time, by its row."""
        _, state, since = self._ends.get(end, ("", None, now))
        return state == records.LIVE and (row[0] == records.LIVE or now > since + records.SLACK)

    def _is_route(self, end: str, now: float) -> bool:
        """Return whether a link is live by its transitions, or was live by its row a moment ago."""
        _, state, since = self._ends.get(end, ("", None, now))
        rows = ([*row[:2]] for row in self.process.links.values())
        return state == records.LIVE or (
            now <= since + records.SLACK and [records.LIVE, end] in rows
        )

    @fold.on(_DONE)
    def take_resolution(self, record: TraceLine) -> None:
        to, process, route, now = record.to or "", self.process, record.result or "", record.t
        if records.is_p2p_end(route) and not is_backend(to) and not self._is_route(route, now):
            self.report_break(record, f"{route} to be live", claim="I-R2")
        bound = {remote: row for remote, row in process.links.items() if entity_of(to) in row[2:]}
        lives = [
            end
            for end, (remote, *_) in self._ends.items()
            if remote in bound and self._is_live(end, bound[remote], now)
        ]
        if lives:
            if record.kind in _BY_ANY_WAY and route not in lives:
                self.report_break(record, f"the route by {lives[0]}", claim="I-R3")
        elif bound and not route and record.kind != _BY_A_LINK:
            stubs = process.stubs.words(domain_of(to))[:1]
            if any(process.state("stub_connection", stub) == records.LIVE for stub in stubs):
                self.report_break(record, "the route by the node", claim="I-R4")


@fold.check("I-R5", on=fold.at_bus(Op.RCV), place=fold.Place.NODE)
def check_node_is_right(process: fold.Process, record: TraceLine) -> None:
    """Check that a runtime's message goes to a node of the target's domain or its own (I-R5).

    An answer may be sent back over the node that delivered its request.
    """
    runtime, own_domain = process.sessions.get(record.link, ""), process.domain
    if own_domain is None or scheme_of(runtime) != RUNTIME_SCHEME or records.is_answer(record):
        return
    domains = domain_of(record.to or ""), domain_of(runtime)
    if own_domain not in domains:
        process.report_break("I-R5", record, f"a node of {domains[0]}, or of {domains[1]}")


class SingleFlight(fold.ProcessClaim, claims=("I-R6",), is_forgetful=True, tables=("stubs",)):
    """No second stub is deployed for a domain while the first is being deployed (I-R6)."""

    _flying: dict[str, str]

    @fold.on(fold.steps("stub_deployment"))
    def take_step(self, record: TraceLine) -> None:
        self._flying[record.key or ""] = record.new or ""

    @fold.on(fold.rows("stubs"))
    def take_stub(self, record: TraceLine) -> None:
        before, after = self.process.stubs.before, self.process.stubs.words(record.key or "")
        is_other = bool(before and after) and before[0] != after[0]
        if is_other and self._flying.get(before[0]) == _DEPLOYING:
            self.report_break(record, f"{before[0]} to be deployed first")


class Termination(fold.ProcessClaim, claims=("I-R7",)):
    """A search for a route ends within the time limit, with or without a route (I-R7)."""

    _looking: dict[str, TraceLine]

    @fold.on(fold.others(Kind.RESOLVE, Op.BEGIN))
    def take_begin(self, record: TraceLine) -> None:
        self._looking.setdefault(record.to or "", record)

    @fold.on(_DONE)
    def take_resolution(self, record: TraceLine) -> None:
        self._looking.pop(record.to or "", None)

    @override
    def end(self) -> None:
        for record in self.process.overdue(self._looking.values(), REPLY_TIMEOUT + records.SLACK):
            self.report_break(record, f"an end within {REPLY_TIMEOUT:g} s")


class FallbackKeeps(fold.ProcessClaim, claims=("I-R9",)):
    """A message that no link could carry is sent over the node, once for each request (I-R9).

    A message to all followers of an object is sent over the node and over links, so each of those
    links may cause one more send over the node. A request may be repeated while it waits for the
    node: each copy is sent. A stub that waits for the disk, or for a login, takes no message out of
    its mailbox meanwhile.
    """

    _waiting: Counter[tuple[str, str | None]]
    _queued: Counter[str | None]
    # Number of copies that stubs have received, but neither sent nor queued yet.
    _unread: records.Recent[str | None, int]
    _copies: records.Lasting[str | None, int]
    _sent: records.Recent[str | None, Counter[tuple[str | None, ...]]]
    _branches: records.Lasting[str | None, set[str]]

    @fold.on(fold.msg(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        self._sent.pop(record.mid, None)
        self._branches.pop(record.mid, None)
        waiting = self._queued.get(record.mid, 0) + self._unread.get(record.mid, 0)
        if waiting:
            self._copies[record.mid] = 1 + waiting

    @fold.on(fold.msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        stub = (record.listener or "").removeprefix(records.MINI_BUS)
        if records.is_p2p_end(stub) and records.is_shared(record.to or ""):
            self._branches.setdefault(record.mid, set()).add(stub)
        if record.actor == records.BUS and _PROTOSTUB in stub:
            self._add_unread(record.mid, 1)

    @fold.on(fold.msg(Op.QUEUE))
    def take_queueing(self, record: TraceLine) -> None:
        key = record.actor, record.mid
        if record.actor.startswith(_STUB):
            self._add_unread(record.mid, -1)
        self._waiting[key] += 1
        self._queued[record.mid] += 1
        if self._waiting[key] > 1:
            self._copies[record.mid] = max(self._waiting[key], self._copies.get(record.mid, 1))

    def _add_unread(self, mid: str | None, copies: int) -> None:
        unread = self._unread.pop(mid, 0) + copies
        if unread > 0:
            self._unread[mid] = unread

    @fold.on(fold.msg(Op.FLUSH, Op.DROP))
    def take_departure(self, record: TraceLine) -> None:
        key = record.actor, record.mid
        if record.actor.startswith(_STUB):
            self._add_unread(record.mid, 1 if record.op == Op.FLUSH else -1)
        if key in self._waiting:
            self._queued[record.mid] -= 1
            if not self._queued[record.mid]:
                del self._queued[record.mid]
        if self._waiting[key] > 1:
            self._waiting[key] -= 1
        else:
            del self._waiting[key]

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        # Answers do not count: a request that is repeated is answered again.
        if record.seq is None or records.is_answer(record) or records.is_p2p_end(record.stub or ""):
            return
        route, routes = (
            (record.stub, record.link, record.to),
            self._sent.setdefault(record.mid, Counter()),
        )
        routes[route] += 1
        self._add_unread(record.mid, -1)
        copies = self._copies.get(record.mid, 1)
        if routes[route] > copies + len(self._branches.get(record.mid, ())):
            self.report_break(record, "it to be sent once over one link")
