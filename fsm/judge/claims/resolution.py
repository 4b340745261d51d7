"""Claims on a runtime's registry: the routes it finds and the changes it announces.

Claims I-R1..I-R9, I-C1 and I-C5. A row of `stubs` is the address of a stub and its state. A
row of `p2p` is the state of a link, the address of its stub, and the address bound to it.
"""

from collections import Counter
from typing import Final

from typing_extensions import override

from fsm.effects import Intent
from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import domain_of, is_backend, last_segment
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
    """Another registry's changes come between asking for them and the end of that (I-C1)."""

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
            self.broken(record, f"{from_} to have been asked for changes")


class TornDown(fold.ProcessClaim, claims=("I-C5",)):
    """With the last link changes of a registry have no followers any more (I-C5)."""

    _rows: dict[tuple[str | None, str | None], TraceLine]
    _alone_since: float | None = None

    @fold.on(fold.rows("p2p"))
    def take_link(self, record: TraceLine) -> None:
        self._alone_since = None if self.process.links.all() else record.t

    @fold.on(fold.rows(records.LISTENERS))
    def take_listener(self, record: TraceLine) -> None:
        if record.actor != records.BUS or not (record.key or "").endswith(_CHANGES):
            return
        at = (record.key, record.val)
        if record.op == Op.DEL:
            self._rows.pop(at, None)
        else:
            self._rows[at] = record

    @override
    def end(self) -> None:
        alone = self._alone_since
        if alone is not None and self.process.is_over_since(alone + records.SLACK):
            for row in self._rows.values():
                self.broken(row, "this listener to go with the last link")


@fold.check("I-R1", on=_DONE, is_forgetful=True)
def check_service_route(process: fold.Process, record: TraceLine) -> None:
    """Services are reached by a node, never by a peer (I-R1)."""
    if records.is_p2p_end(record.result or "") and is_backend(record.to or ""):
        process.broken("I-R1", record, "a node's stub")


@fold.check("I-R2", on=_DONE)
def check_route_is_live(process: fold.Process, record: TraceLine) -> None:
    """A direct link is a route only while it is live (I-R2): by its row, or by its own steps.

    The row may be recorded a little later than the step that it is written for.
    """
    end = record.result or ""
    if not records.is_p2p_end(end) or process.state(records.LINK_MACHINE, end) == records.LIVE:
        return
    is_live = any([*row[:2]] == [records.LIVE, end] for row in process.links.all())
    if not is_live and not is_backend(record.to or ""):
        process.broken("I-R2", record, f"{end} to be live")


@fold.check("I-R3", on=_DONE)
def check_link_is_preferred(process: fold.Process, record: TraceLine) -> None:
    """An entity bound to a live link is reached by it, unless the sender wants the node (I-R3)."""
    if record.kind not in _BY_ANY_WAY:
        return
    entity = entity_of(record.to or "")
    links = process.links.all()
    lives = [row[1] for row in links if row[0] == records.LIVE and entity in row[2:]]
    if lives and record.result not in lives:
        process.broken("I-R3", record, f"the route by {lives[0]}")


@fold.check("I-R4", on=_DONE)
def check_node_is_used_meanwhile(process: fold.Process, record: TraceLine) -> None:
    """While a link is not live, messages go by the node that is there (I-R4).

    But for those whose sender wants the link or nothing, and goes by the node itself else.
    """
    if record.result or record.kind == _BY_A_LINK:
        return
    to = record.to or ""
    is_near = [*process.stubs.words(domain_of(to))[1:]] == [records.LIVE]
    bound = [row for row in process.links.all() if entity_of(to) in row[2:]]
    if is_near and any(row[0] != records.LIVE for row in bound):
        process.broken("I-R4", record, "the route by the node")


class RightNodeStub(
    fold.ProcessClaim, claims=("I-R5",), place=fold.Place.RUNTIME, is_forgetful=True
):
    """The stub chosen leads to the target's domain, or to the own (I-R5)."""

    _domains: dict[str, str]

    @fold.on(fold.rows("stubs"))
    def take_stub(self, record: TraceLine) -> None:
        if record.op != Op.DEL:
            self._domains[(record.val or "").partition(" ")[0]] = record.key or ""

    @fold.on(_DONE)
    def take_resolution(self, record: TraceLine) -> None:
        domain, own = self._domains.get(record.result or ""), domain_of(self.process.home or "")
        if domain is not None and domain not in {domain_of(record.to or ""), own}:
            self.broken(record, f"a stub for {domain_of(record.to or '')}")


class SingleFlight(fold.ProcessClaim, claims=("I-R6",), is_forgetful=True, tables=("stubs",)):
    """For one domain no second stub is deployed while the first still is (I-R6)."""

    _flying: dict[str, str]

    @fold.on(fold.steps("stub_deployment"))
    def take_step(self, record: TraceLine) -> None:
        self._flying[record.key or ""] = record.new or ""

    @fold.on(fold.rows("stubs"))
    def take_stub(self, record: TraceLine) -> None:
        before, after = self.process.stubs.before, self.process.stubs.words(record.key or "")
        is_other = bool(before and after) and before[0] != after[0]
        if is_other and self._flying.get(before[0]) == _DEPLOYING:
            self.broken(record, f"{before[0]} to be deployed first")


class Termination(fold.ProcessClaim, claims=("I-R7",)):
    """A search for a route finds one, or that there is none, in time (I-R7)."""

    _looking: dict[str, TraceLine]

    @fold.on(fold.others(Kind.RESOLVE, Op.BEGIN))
    def take_begin(self, record: TraceLine) -> None:
        self._looking.setdefault(record.to or "", record)

    @fold.on(_DONE)
    def take_resolution(self, record: TraceLine) -> None:
        self._looking.pop(record.to or "", None)

    @override
    def end(self) -> None:
        for begun in self.process.overdue(self._looking.values(), REPLY_TIMEOUT + records.SLACK):
            self.broken(begun, f"an end within {REPLY_TIMEOUT:g} s")


class FallbackKeeps(fold.ProcessClaim, claims=("I-R9",)):
    """A message that could not go by a link goes by the node, once for each request (I-R9).

    A message to all followers of an object goes by the node and by links, so each of those
    links may have the node carry it once more. A request may be repeated while it waits for the
    node: each copy is sent, whether it waits at the stub, too, or before it. A stub that waits for
    the disk, or for a login, takes nothing out of its mailbox meanwhile.
    """

    _waiting: Counter[tuple[str, str | None]]
    _queued: Counter[str | None]
    # Copies that stubs were given, and have neither sent nor queued.
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
        at = record.actor, record.mid
        if record.actor.startswith(_STUB):
            self._add_unread(record.mid, -1)
        self._waiting[at] += 1
        self._queued[record.mid] += 1
        if self._waiting[at] > 1:
            self._copies[record.mid] = max(self._waiting[at], self._copies.get(record.mid, 1))

    def _add_unread(self, mid: str | None, copies: int) -> None:
        unread = self._unread.pop(mid, 0) + copies
        if unread > 0:
            self._unread[mid] = unread

    @fold.on(fold.msg(Op.FLUSH, Op.DROP))
    def take_departure(self, record: TraceLine) -> None:
        at = record.actor, record.mid
        if record.actor.startswith(_STUB):
            self._add_unread(record.mid, 1 if record.op == Op.FLUSH else -1)
        if at in self._waiting:
            self._queued[record.mid] -= 1
            if not self._queued[record.mid]:
                del self._queued[record.mid]
        if self._waiting[at] > 1:
            self._waiting[at] -= 1
        else:
            del self._waiting[at]

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        # A stub sends what is no answer; a request that is repeated is answered again.
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
            self.broken(record, "it to be sent once over one link")
