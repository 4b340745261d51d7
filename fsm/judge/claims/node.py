"""Claims on a message node: its deliveries, and the requests that runtimes send to it.

Claims I-M5..I-M14: to whom the node delivers a message, in which order, and from which address.
Claims I-A4..I-A6 and I-G2..I-G6 are about addresses and registrations: they read bodies of requests
and answers, so they are judged if a trace has bodies.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import Body, TraceLine, body_of
from fsm.machines.registration import State
from fsm.registry.allocation import MIRROR
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import domain_of, is_below, is_node, runtime_of, scheme_of
from specs.limits.protocol import REGISTRATION_EXPIRES
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op

_CHILDREN: Final = "/children/"
_MACHINE: Final = "node_subscription"
_ACTIVE: Final = "active"


class FanOutExact(fold.ProcessClaim, claims=("I-M5",)):
    """A message is delivered to all subscribers of its target except its sender (I-M5).

    Messages about children are sent to their author, too; the node of another domain may be an
    additional receiver.
    """

    _subscribers: defaultdict[str, set[str]]
    _sender: records.Recent[str | None, str]

    @fold.on(fold.steps(_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        resource, _, runtime = (record.key or "").rpartition("|")
        row = self._subscribers[resource]
        (row.add if record.new == _ACTIVE else row.discard)(runtime)

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if record.by is not None:
            self._sender[record.mid] = record.by

    @fold.on(fold.any_msg(Op.PUBLISH))
    def take_publication(self, record: TraceLine) -> None:
        sender, to = self._sender.get(record.mid, ""), record.to or ""
        is_echoed = _CHILDREN in to and not is_node(sender)
        subscribers = self._subscribers.get(to, set[str]())
        wanted = len(subscribers) - (sender in subscribers and not is_echoed)
        if record.targets not in {wanted, wanted + 1}:
            self.report_break(record, f"{wanted} to get it")


class NoneAfterUnsubscribe(fold.ProcessClaim, claims=("I-M7",)):
    """A session that has unsubscribed from an address gets no later messages to it (I-M7).

    The subscriptions of a session end with it. Messages that wait for it then may follow it to
    another node.
    """

    _came: records.Recent[str | None, int]
    _peers: dict[str | None, str | None]
    _active: defaultdict[str, set[str]]
    _left: records.Recent[tuple[str, str], int]

    @fold.on(fold.others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        self._peers[record.link] = record.b

    @fold.on(fold.steps(records.SESSION))
    def take_session_end(self, record: TraceLine) -> None:
        if record.new not in records.LASTING:
            runtime = records.runtime_of_session(record)
            for resource in self._active.pop(runtime, ()):
                self._left[resource, runtime] = record.ln

    @fold.on(fold.steps(_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        resource, _, runtime = (record.key or "").rpartition("|")
        self._left.pop((resource, runtime), None)
        if record.new == _ACTIVE:
            self._active[runtime].add(resource)
        else:
            self._active[runtime].discard(resource)
            self._left[resource, runtime] = record.ln

    @fold.on(fold.any_msg(Op.ADMIT, Op.RCV))
    def take_admission(self, record: TraceLine) -> None:
        # The other node has admitted the messages that it sent to the subscribers here.
        if record.op == Op.ADMIT or (record.actor == MIRROR and record.listener is None):
            self._came[record.mid] = record.ln

    @fold.on(fold.any_msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        if not self._left or records.is_answer(record):
            return
        if self._came.get(record.mid, 0) > self._left_since(record):
            self.report_break(record, "nothing of what it unsubscribed")

    def _left_since(self, sent: TraceLine) -> float:
        """Return at which record the receiver unsubscribed; infinity: it may get messages."""
        peer, to = self._peers.get(sent.link, sent.listener), sent.to or ""
        if peer is None or is_below(to, peer) or self.process.owners.get(entity_of(to)) == peer:
            return math.inf
        return self._left.get((to, peer), math.inf)


class RelayFidelity(fold.ProcessClaim, claims=("I-M11",)):
    """A back end gives one answer to each request, and none without a request (I-M11)."""

    _asked: set[records.Key]

    @fold.on(fold.msg(Op.RELAY))
    def take_relay(self, record: TraceLine) -> None:
        key = records.key_of(record)
        if record.direction == "out":
            self._asked.add(key)
        elif key not in self._asked:
            self.report_break(record, "one question of a back end before its answer")
        else:
            self._asked.remove(key)


class WhoAnswers(fold.ProcessClaim, claims=("I-M13",), place=fold.Place.NODE):
    """A component of a node answers from the address to which the request was sent (I-M13)."""

    _parts: set[str | None]
    _asked: records.Recent[str | None, str | None]

    @fold.on(fold.rows("components"))
    def take_component(self, record: TraceLine) -> None:
        self._parts.add(record.key)

    @fold.on(fold.msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if record.listener in self._parts:
            self._asked[record.mid] = record.listener

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        if records.is_answer(record):
            listener = self._asked.get(record.ref)
            if listener is not None and record.from_ != listener:
                self.report_break(record, f"an answer from {listener}")


class OrderPerObject(fold.ProcessClaim, claims=("I-M14",), place=fold.Place.NODE):
    """Changes of an object are sent to each receiver in the order of their arrival (I-M14).

    A link to another node of the domain serves several receivers: one runtime, or all runtimes that
    subscribe there.
    """

    _came: records.Recent[str | None, int]
    _last: Counter[tuple[str | None, ...]]

    @fold.on(fold.msg(Op.ADMIT, Op.RCV))
    def take_admission(self, record: TraceLine) -> None:
        # The other node has admitted the messages that it sent.
        if record.op == Op.ADMIT or record.actor == MIRROR:
            self._came[record.mid] = record.ln

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        if record.mid not in self._came or not (record.to or "").endswith("/changes"):
            return
        key = (record.link, record.listener, record.from_, record.to)
        arrival = self._came[record.mid]
        if arrival < self._last[key]:
            self.report_break(record, "what came later to leave later")
        self._last[key] = max(self._last[key], arrival)


# --- bodies -----------------------------------------------------------------------------


_ALLOCATION: Final = "/address-allocation"
_REGISTRY: Final = "domain://registry."
_STATUS: Final = "/registration"
_REPORTED: Final = {State.LIVE.value: "live", State.LASTING.value: "live"}
"""Names under which states of records are reported, if they differ from the state's name."""


class _OpenRequests:
    """Requests that a message node received, kept until they are answered."""

    def __init__(self) -> None:
        self._open: dict[str, TraceLine] = {}

    def add(self, record: TraceLine) -> None:
        self._open[record.mid or ""] = record

    def granted(self, answer: TraceLine) -> TraceLine | None:
        """Remove and return the request that a final answer grants; None: the answer refuses it."""
        if (answer.code or 0) < Code.OK:
            return None
        request = self._open.pop(answer.ref or "", None)
        return request if answer.code == Code.OK else None


class AddressRequests(fold.ProcessClaim, claims=("I-A4", "I-A5", "I-A6"), place=fold.Place.NODE):
    """As many addresses are given as asked for (I-A4); owners free (I-A6) whole blocks (I-A5)."""

    _asked: _OpenRequests
    _owners: dict[str, str | None]
    _live: set[str]
    _blocks: defaultdict[tuple[str | None, str], set[str]]
    _freed: dict[str, set[str]]
    _freeing: TraceLine | None = None

    @fold.on(fold.rows("alloc"))
    def take_allocation(self, record: TraceLine) -> None:
        if record.op == Op.ADD:
            self._owners[record.key or ""] = record.val

    @fold.on(fold.steps("address"))
    def take_step(self, record: TraceLine) -> None:
        address = records.split(record.key)[0]
        if record.new == "allocated":
            self._live.add(address)
            return
        self._live.discard(address)
        freeing = self._freeing
        if freeing is None or not (record.why or "").startswith("delete"):
            return
        self._freed.setdefault(freeing.mid or "", set()).add(address)
        if self._owners.get(address) != runtime_of(freeing.from_ or ""):
            expected = f"it to be released by {self._owners.get(address)}"
            self.report_break(record, expected, claim="I-A6")

    @fold.on(fold.with_body(Op.DELIVER))
    def take_request(self, record: TraceLine) -> None:
        if (record.to or "").endswith(_ALLOCATION):
            self._asked.add(record)
            if record.type == MessageType.DELETE:
                self._freeing = record
                self._freed[record.mid or ""] = set()

    @fold.on(fold.with_body(Op.XMIT))
    def take_answer(self, record: TraceLine) -> None:
        request = self._asked.granted(record)
        released = self._freed.pop(record.ref or "", set())
        if request is None:
            return
        body, runtime = body_of(request), runtime_of(request.from_ or "")
        if request.type == MessageType.CREATE:
            self._record_given(record, request, body, runtime)
        key = body.get("resource")
        if request.type == MessageType.DELETE and isinstance(key, str):
            block = self._blocks.pop((runtime, key), set())
            if released != block & (self._live | released):
                self.report_break(
                    record, f"what is left of the block {key} to be freed", claim="I-A5"
                )

    def _record_given(
        self, record: TraceLine, asked: TraceLine, body: Body, runtime: str | None
    ) -> None:
        wanted, given = _inner(body), records.addresses_in(_inner(body_of(record)).get("allocated"))
        number, scheme = wanted.get("number", 1), body.get("scheme")
        domain = domain_of(asked.to or "").removeprefix("msg-node.")
        is_right = all(scheme_of(url) == scheme and domain_of(url) == domain for url in given)
        if not is_right or len(set(given)) != number or len(given) != number:
            self.report_break(
                record, f"{number} distinct {scheme} addresses of {domain}", claim="I-A4"
            )
        key = wanted.get("allocationKey")
        if isinstance(key, str):
            self._blocks[runtime, key].update(given)


class RecordRequests(
    fold.ProcessClaim, claims=("I-G2", "I-G3", "I-G4", "I-G5", "I-G6"), place=fold.Place.NODE
):
    """Records are their owners' (I-G2), true (I-G6), and confirmed before others read them (I-G3).

    Records are live as long as they are refreshed (I-G4), and each change is reported (I-G5).
    Registrations, refreshes and reports by another node of the domain are judged in that node's
    trace. A node restores the addresses of its earlier process before its registry starts: that
    process has confirmed their records.
    """

    _asked: _OpenRequests
    _owners: dict[str, str | None]
    _statuses: dict[str, str]
    _reported: dict[str, str]
    _known: set[str]
    _fresh: dict[str, TraceLine]
    _expires: dict[str, float]
    _carried: records.Recent[str | None, None]
    _has_registry: bool = False

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        if record.actor == MIRROR:
            self._carried[record.mid] = None

    @fold.on(fold.steps("session"))
    def take_move(self, record: TraceLine) -> None:
        if record.new == "moved":
            runtime = records.split(record.key)[1]
            for url, refreshed in tuple(self._fresh.items()):
                if runtime_of(refreshed.from_ or "") == runtime:
                    del self._fresh[url]

    @fold.on(fold.rows("alloc"))
    def take_allocation(self, record: TraceLine) -> None:
        if record.op == Op.ADD and record.writer != MIRROR:
            self._owners[record.key or ""] = record.val

    @fold.on(fold.rows("components"))
    def take_start(self, record: TraceLine) -> None:
        is_first = not self._has_registry
        if is_first and record.op == Op.ADD and (record.key or "").startswith(_REGISTRY):
            self._has_registry = True
            self._known.update(self._owners)

    @fold.on(fold.steps("registration"))
    def take_step(self, record: TraceLine) -> None:
        url, status = records.split(record.key)[0], record.new or ""
        if _REPORTED.get(status, status) != _REPORTED.get(self._statuses.get(url, ""), ""):
            self._reported.pop(url, None)
        if status == State.DISCONNECTED.value:
            self._overdue(url, record.t)
            self._fresh.pop(url, None)
        self._statuses[url] = status

    @fold.on(fold.with_body(Op.DELIVER))
    def take_request(self, record: TraceLine) -> None:
        if (record.to or "").startswith(_REGISTRY):
            self._asked.add(record)

    @fold.on(fold.with_body(Op.XMIT))
    def take_answer(self, record: TraceLine) -> None:
        request = self._asked.granted(record)
        if request is None:
            return
        body = body_of(request)
        if request.type == MessageType.READ:
            for url in _records(body_of(record)):
                if url not in self._known and self._owners.get(url) is not None:
                    self.report_break(
                        record, "a registration that was confirmed", url, claim="I-G3"
                    )
            return
        written = _inner(body)
        resource = written.get("url", body.get("resource"))
        if isinstance(resource, str):
            self._record_written(request, resource, written)

    def _record_written(self, request: TraceLine, url: str, written: Body) -> None:
        runtime = runtime_of(request.from_ or "")
        owner = self._owners.get(url, runtime)
        if owner != runtime:
            self.report_break(request, f"{owner} to write it", url, claim="I-G2")
        handler = written.get("p2pHandler")
        is_own = not isinstance(handler, str) or is_below(handler, f"{runtime}/p2phandler")
        if written.get("runtime", runtime) != runtime or not is_own:
            self.report_break(request, f"{runtime} and its own handler", url, claim="I-G6")
        self._known.add(url)
        self._overdue(url, request.t)
        self._fresh[url] = request
        expires = written.get("expires")
        if isinstance(expires, int | float):
            self._expires[url] = expires

    def _overdue(self, url: str, now: float) -> None:
        """Report a record that stayed live longer than it was valid."""
        fresh, status = self._fresh.get(url), self._statuses.get(url, "")
        expires = self._expires.get(url, REGISTRATION_EXPIRES)
        if fresh is not None and status in _REPORTED and now - fresh.t > expires + records.SLACK:
            expected = f"it to be disconnected after {expires:g} s"
            self.report_break(fresh, expected, url, claim="I-G4")

    @fold.on(fold.with_body(Op.PUBLISH))
    def take_publication(self, record: TraceLine) -> None:
        url = (record.to or "").removesuffix(_STATUS)
        if record.mid in self._carried:
            return
        if url == record.to or not (record.from_ or "").startswith(_REGISTRY):
            return
        reported, status = body_of(record).get("value"), self._statuses.get(url, "")
        if reported != _REPORTED.get(status, status) or self._reported.get(url) == reported:
            self.report_break(
                record, f"a change to {_REPORTED.get(status, status)}", url, claim="I-G5"
            )
        self._reported[url] = str(reported)

    @override
    def end(self) -> None:
        end = self.process.end
        for url in list(self._fresh) if end is not None else ():
            self._overdue(url, end.t if end is not None else 0.0)


def _inner(body: Body) -> Body:
    value = body.get("value")
    return value if isinstance(value, Mapping) else {}


def _records(body: Body) -> Iterator[str]:
    """Yield the addresses of the registry records in an answer's body."""
    value = body.get("value")
    for row in value if isinstance(value, list) else [value]:
        url = row.get("url") if isinstance(row, Mapping) else None
        if isinstance(url, str):
            yield url
