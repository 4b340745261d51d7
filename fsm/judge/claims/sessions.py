"""Claims on a node: its sessions, its addresses, and the messages it accepts from links.

Claims I-M1..I-M4, I-M8, I-M12, I-K4, I-A1..I-A7 and I-X2.

A session is an entity with the key `node|runtime`; the n-th session of a runtime has the key
`node|runtime|n`. A record of the session names its link. The tables of a node are empty at its end
(I-X2).
"""

from collections import defaultdict
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from fsm.machines.registration import REGISTRATION, State
from fsm.registry.records import KEPT
from fsm.session.node_session_io import PeerForm
from fsm.sync.subscriptions import entity_of
from specs.addresses import address
from specs.limits.protocol import SESSION_IDLE, WRITE_TIMEOUT
from specs.trace import ABSENT, Kind, Op

_OVER: Final = frozenset({"closed", "expired"})
_ALLOC: Final = "alloc"


class SessionFirst(fold.ProcessClaim, claims=("I-M1",)):
    """No message from a link is admitted before the link has a session (I-M1)."""

    _pending: set[str | None]
    _sessions: set[str | None]
    _came: records.Recent[str | None, str | None]

    @fold.on(fold.others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        if record.link is not None:
            self._sessions.add(record.link)
            self._pending.discard(record.link)

    @fold.on(fold.others(Kind.LINK, Op.OPEN))
    def take_opening(self, record: TraceLine) -> None:
        if record.link not in self._sessions:
            self._pending.add(record.link)

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        if record.stub is None:
            self._came[record.mid] = record.link

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if self._came.get(record.mid) in self._pending:
            self.report_break(record, "an open session on its link")


class OnePerRuntime(fold.ProcessClaim, claims=("I-M2",), is_forgetful=True):
    """A runtime's session has at most one open link: older links are closed (I-M2)."""

    _states: dict[str | None, str | None]
    _links: dict[str | None, str | None]
    _left: dict[str | None, TraceLine]

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        self._states[records.runtime_of_session(record)] = record.new

    @fold.on(fold.others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        if record.link is None:
            return
        if self._states.get(record.b, "open") != "open":
            self.report_break(record, f"an open session of {record.b}", record.b or "")
        older = self._links.get(record.b, record.link)
        self._links[record.b] = record.link
        if older != record.link:
            self._left[older] = record

    @fold.on(fold.others(Kind.LINK, Op.CLOSE))
    def take_closing(self, record: TraceLine) -> None:
        link = record.link
        for runtime in [owner for owner, current in self._links.items() if current == link]:
            del self._links[runtime]
        if link in self._left:
            self._check_replaced(link, self._left.pop(link), record.t)

    def _check_replaced(self, older: str | None, record: TraceLine, closed_at: float) -> None:
        if closed_at - record.t > WRITE_TIMEOUT + records.SLACK:
            self.report_break(record, f"{older} to be closed", record.b or "")

    @override
    def end(self) -> None:
        end = self.process.end
        for link, record in self._left.items() if end is not None else ():
            self._check_replaced(link, record, end.t if end is not None else 0.0)


@fold.check("I-M3", on=fold.rows(_ALLOC))
def check_owner_keeps_addresses(process: fold.Process, record: TraceLine) -> None:
    """Check that a runtime with a detached session keeps its addresses (I-M3)."""
    if record.op == Op.DEL and process.state(records.SESSION, record.val) == "detached":
        process.report_break("I-M3", record, f"{record.val} to keep it while it is away")


class NothingAfterClose(fold.ProcessClaim, claims=("I-M4",)):
    """No message is sent over the links of a session after its end (I-M4)."""

    _runtimes: dict[str, str | None]

    @fold.on(fold.others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        if record.link is not None:
            self._runtimes[record.link] = record.b

    @fold.on(fold.any_msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        runtime = self._runtimes.get(record.link or "")
        if runtime is not None and self.process.state(records.SESSION, runtime) in _OVER:
            self.report_break(record, "nothing to go to a session that is over")


class PolicyOnce(fold.ProcessClaim, claims=("I-M8",), place=fold.Place.NODE):
    """A node judges each message that arrives only once by its policies (I-M8).

    The arrival of messages about the session itself is not recorded, so they are not counted.
    """

    _decisions: records.Recent[str | None, int]

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        self._decisions[record.mid] = 0

    @fold.on(fold.others(Kind.AUTHZ))
    def take_decision(self, record: TraceLine) -> None:
        if record.mid in self._decisions:
            self._decisions[record.mid] += 1
            if self._decisions[record.mid] > 1:
                self.report_break(record, "one decision")


class ExpiryTiming(fold.ProcessClaim, claims=("I-M12",)):
    """A session expires once its runtime was away for `SESSION_IDLE`, not before (I-M12)."""

    _left: dict[str | None, TraceLine]

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        left = self._left.pop(record.key, record)
        if record.new == "detached":
            self._left[record.key] = record
        elif record.new == "expired" and not records.has_waited(record.t - left.t, SESSION_IDLE):
            self.report_break(record, f"{SESSION_IDLE:g} s away before it expires")
        elif record.t - left.t > SESSION_IDLE + records.SLACK:
            self.report_break(record, f"an end after {SESSION_IDLE:g} s away")

    @override
    def end(self) -> None:
        for left in self.process.overdue(self._left.values(), SESSION_IDLE + records.SLACK):
            self.report_break(left, f"an end after {SESSION_IDLE:g} s away")


_GIVEN_ONCE: Final = {
    "address": ("I-A1", "an address that was never given"),
    "stub_deployment": ("I-S6", "another address for another stub"),
}


class Fresh(fold.ProcessClaim, claims=("I-A1", "I-S6"), is_forgetful=True):
    """An address is allocated only once (I-A1), and so is the address of a stub (I-S6)."""

    _given: set[tuple[str | None, str | None]]

    @fold.on(fold.steps(*_GIVEN_ONCE))
    def take_step(self, record: TraceLine) -> None:
        claim, expected = _GIVEN_ONCE[record.machine or ""]
        key = record.machine, record.key
        if record.old == ABSENT and key in self._given:
            self.report_break(record, expected, claim=claim)
        self._given.add(key)


@fold.check("I-A2", "I-A3", on=fold.any_msg(Op.ADMIT), place=fold.Place.NODE)
def check_sender_is_allocated(process: fold.Process, record: TraceLine) -> None:
    """Check that a sender's address is allocated (I-A2), to the session that sends (I-A3)."""
    domain, by, from_ = process.domain, record.by, record.from_ or ""
    if domain is None or by is None or records.is_answer(record):
        return
    if address.scheme_of(from_) == address.RUNTIME_SCHEME or address.is_backend(from_):
        return
    if address.domain_of(from_) != domain or address.is_below(from_, by):
        return
    holder = process.owners.get(from_) or process.owners.get(entity_of(from_))
    if holder is None:
        process.report_break("I-A2", record, f"{from_} to be allocated")
    elif holder != by:
        process.report_break("I-A3", record, f"{from_} to be used by {holder}")


class LateReleases(fold.ProcessClaim, claims=("I-A7",)):
    """All addresses of a session are released soon after its end (I-A7)."""

    _ended: dict[str | None, float]

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        runtime = records.runtime_of_session(record)
        self._ended.pop(runtime, None)
        if record.new in _OVER:
            self._ended[runtime] = record.t

    @fold.on(fold.rows(_ALLOC))
    def take_allocation(self, record: TraceLine) -> None:
        if record.op != Op.DEL:
            # The session is open again, perhaps at another node of the domain.
            self._ended.pop(record.val, None)
        elif record.t - self._ended.get(record.val, record.t) > records.SLACK:
            self.report_break(record, f"a release soon after {record.val} had left")


class FalseLasting(fold.ProcessClaim, claims=("I-A7",)):
    """A registry record that outlives its session was registered in upstream's form (I-A7).

    Any other record ends in the state live, in which an entity may not end
    (`fsm.machines.registration`). If a record was restored at the start of the node, the session
    that registered it is unknown.
    """

    _upstream: set[str | None]
    _owners: defaultdict[str | None, set[str | None]]

    @fold.on(fold.others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        if record.kind == PeerForm.UPSTREAM.value:
            self._upstream.add(record.b)

    @fold.on(fold.rows(_ALLOC))
    def take_allocation(self, record: TraceLine) -> None:
        if record.op != Op.DEL:
            self._owners[record.key].add(record.val)

    @fold.on(fold.steps(REGISTRATION.name))
    def take_registration(self, record: TraceLine) -> None:
        if record.new != State.LASTING or record.why == KEPT:
            return
        url, *_ = records.split(record.key)
        owner = (
            {address.runtime_of(url)} if address.scheme_of(url) == address.RUNTIME_SCHEME else set()
        )
        known = self._owners.get(url) or owner
        if known and not known & self._upstream:
            self.report_break(record, "the wire form of its registrant")


class CleanAtRest(fold.ProcessClaim, claims=("I-X2",), place=fold.Place.NODE):
    """When a node has ended, no session owns or subscribes to an address there (I-X2)."""

    _rows: dict[tuple[str | None, ...], TraceLine]

    @fold.on(fold.rows(_ALLOC, "subs"))
    def take_change(self, record: TraceLine) -> None:
        row = (record.table, record.key, record.val)
        if record.op == Op.DEL:
            self._rows.pop(row, None)
        else:
            self._rows[row] = record

    @override
    def end(self) -> None:
        for row in self._rows.values() if self.process.end is not None else ():
            self.report_break(row, f"this row of {row.table} to go with its session")
