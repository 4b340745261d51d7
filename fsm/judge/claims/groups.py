"""Claims on the nodes of one group: each node alone, and all together (I-M7, I-M15..I-M18).

The nodes of a domain that share a store, the engine, form a group. The trace of each node names its
group, the revisions of the engine's rows by which it got its lease and its sessions, and the
messages that it exchanged with other nodes (`fsm.group.kinds.GroupTable`). Revisions order the
actions of several nodes, so no claim compares their clocks. A node without a group provides no
evidence.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import attrs
from typing_extensions import override

from fsm.group.kinds import GroupTable
from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from fsm.registry.allocation import MIRROR
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import is_backend, is_below
from specs.limits.group import GROUP_LEASE, GROUP_TERM
from specs.trace import Op

_SUBSCRIPTION: Final = "node_subscription"
_MEMBERSHIP: Final = "group_membership"
_ACTIVE: Final = "active"
_SERVES: Final = frozenset({"member", "leaving"})
_TO: Final = ">"
"""Separator between the ids of two nodes in the name of the link between them."""

_LEAST: Final = -1
"""Number below each revision, for a node that knows no row."""


def _is_between(record: TraceLine) -> bool:
    """Return whether a recorded message was sent or received over the link between two nodes."""
    return record.actor == MIRROR and _TO in (record.link or "")


# --- one node ---------------------------------------------------------------------------


class MembersServe(fold.ProcessClaim, claims=("I-M15",)):
    """A node of a group opens and serves sessions only while its lease is valid (I-M15).

    A node notices the end of its lease by its own clock, even after it was suspended. So a
    violation is reported only if it still serves some time after the first message that follows
    that end. A node without a group records no membership and is not judged.
    """

    _is_out: bool = False
    _renewed: float | None = None
    _late: float | None = None

    @fold.on(fold.steps(_MEMBERSHIP))
    def take_membership(self, record: TraceLine) -> None:
        self._is_out = record.new not in _SERVES
        self._renewed = self._late = None

    @fold.on(fold.rows(GroupTable.MEMBERS))
    def take_renewal(self, record: TraceLine) -> None:
        if record.version is not None:
            self._renewed, self._late = record.t, None

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        if self._is_out and record.new == "open":
            self.report_break(record, "a membership")

    @fold.on(fold.any_msg(Op.ADMIT, Op.XMIT))
    def take_service(self, record: TraceLine) -> None:
        if self._renewed is None or record.t - self._renewed <= GROUP_TERM + records.SLACK:
            return
        if self._late is None:
            self._late = record.t
        elif record.t - self._late > records.SLACK:
            self.report_break(
                record, f"a lease that was renewed {GROUP_TERM:g} s before, or a fence"
            )
            self._renewed = None


# --- sessions ---------------------------------------------------------------------------


@attrs.define
class _Stay:
    """Period in which one node has a session.

    Attributes:
        holder: Id and boot epoch of the node, and epoch of the session.
        revision: Revision of the row by which the shared store gave the session to the node.
        last: The last record in which the node served the session.
        known: Revision of a row that the node wrote some time before that record: earlier rows of
            the shared store had reached the node.
    """

    holder: str
    revision: int
    last: TraceLine
    known: int = _LEAST


@fold.run_claim("I-M16", key=fold.GroupKey.SESSION)
def judge_homes(items: Sequence[fold.Evidence], _whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that only one node of a group at a time serves a session (I-M16).

    A node must know that another node took over a session once it has itself written a later row,
    some time before. If it serves the session after that, it acts on an outdated epoch.
    """
    stays = sorted(items, key=_in_turn)
    for index, item in enumerate(stays):
        revision, holder, known = item.data
        following = next((stay for stay in stays[index + 1 :] if stay.data[1] != holder), None)
        if following is None:
            continue
        other_revision, other_holder, _ = following.data
        if other_revision == revision or _number(other_revision) < _number(known):
            node = records.split(str(other_holder))[0]
            yield item.breaks("I-M16", f"nothing to be served that {node} has taken up")


def _in_turn(item: fold.Evidence) -> tuple[int, str]:
    revision, holder, _ = item.data
    return _number(revision), str(holder)


def _number(revision: fold.Datum) -> int:
    return int(revision or 0)


class HomeServed(
    fold.ProcessClaim, claims=("I-M16",), place=fold.Place.NODE, across=(judge_homes,)
):
    """A node of a group serves only the sessions that the shared store assigns to it (I-M16)."""

    _stays: dict[str, _Stay]
    _written: deque[tuple[float, int]]
    _known: int = _LEAST

    @fold.on(fold.rows(GroupTable.MEMBERS))
    def take_renewal(self, record: TraceLine) -> None:
        if record.version is not None:
            self._look_known(record.t)
            self._written.append((record.t, record.version))

    def _look_known(self, now: float) -> None:
        """Update the revision up to which rows of other nodes must have arrived by now."""
        while self._written and self._written[0][0] <= now - records.SLACK:
            self._known = self._written.popleft()[1]

    @fold.on(fold.rows(GroupTable.HOMES))
    def take_home(self, record: TraceLine) -> None:
        runtime, holder = record.key or "", record.val or ""
        stay = self._stays.get(runtime)
        if stay is None or stay.holder != holder:
            self._over(runtime)
            self._stays[runtime] = _Stay(holder, record.version or 0, record)

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        if record.new not in records.LASTING:
            self._over(records.runtime_of_session(record))

    @fold.on(fold.any_msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        if self._stays and (runtime := self.process.sessions.get(record.link)) is not None:
            self._record_served(runtime, record)

    @fold.on(fold.any_msg(Op.ADMIT, Op.QUEUE))
    def take_admission(self, record: TraceLine) -> None:
        runtime = record.by if record.op == Op.ADMIT else record.listener
        if self._stays and runtime is not None:
            self._record_served(runtime, record)

    def _record_served(self, runtime: str, record: TraceLine) -> None:
        stay = self._stays.get(runtime)
        if stay is not None:
            self._look_known(record.t)
            stay.last, stay.known = record, self._known

    def _over(self, runtime: str) -> None:
        stay, group = self._stays.pop(runtime, None), self.process.group
        if stay is not None and group is not None:
            data = stay.revision, stay.holder, stay.known
            self.process.hand_over(judge_homes, f"{group} {runtime}", stay.last, *data)

    @override
    def end(self) -> None:
        for runtime in tuple(self._stays):
            self._over(runtime)


@fold.run_claim("I-M7", key=fold.GroupKey.SESSION)
def judge_subscriptions(items: Sequence[fold.Evidence], _: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a runtime gets messages only from the node at which it subscribed (I-M7).

    A session that moves has to subscribe again. Messages that waited for it at the old node are
    still its own.
    """
    subscribed: dict[fold.Datum, int] = {}
    deliveries = []
    for item in items:
        op, resource, revision = item.data
        at = _number(revision)
        if op == Op.XMIT:
            deliveries.append((item, resource, at))
        else:
            subscribed[resource] = min(at, subscribed.get(resource, at))
    for item, resource, at in deliveries:
        if subscribed.get(resource, math.inf) < at:
            yield item.breaks("I-M7", "a subscription at this node")


class SubscribedHere(
    fold.ProcessClaim, claims=("I-M7",), place=fold.Place.NODE, across=(judge_subscriptions,)
):
    """A runtime in a group gets messages only from the node at which it subscribed (I-M7)."""

    _homes: dict[str, int]
    _subscribed: set[tuple[str, str]]
    _addressed: records.Lasting[tuple[str | None, str | None], None]

    @fold.on(fold.rows(GroupTable.HOMES))
    def take_home(self, record: TraceLine) -> None:
        self._homes.setdefault(record.key or "", record.version or 0)

    @fold.on(fold.steps(records.SESSION))
    def take_step(self, record: TraceLine) -> None:
        runtime = records.runtime_of_session(record)
        if record.new not in records.LASTING and self._homes.pop(runtime, None) is not None:
            self._subscribed = {row for row in self._subscribed if row[1] != runtime}

    @fold.on(fold.steps(_SUBSCRIPTION))
    def take_subscription(self, record: TraceLine) -> None:
        resource, _, runtime = (record.key or "").rpartition("|")
        if record.new == _ACTIVE and runtime in self._homes:
            self._subscribed.add((resource, runtime))
            self._hand_over(runtime, record, resource)

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        if record.actor == MIRROR and record.listener is not None:
            self._addressed[record.mid, record.listener] = None

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        runtime, to = self.process.sessions.get(record.link), record.to or ""
        if runtime not in self._homes or records.is_answer(record):
            return
        if (to, runtime) in self._subscribed or (record.mid, runtime) in self._addressed:
            return
        if not (is_below(to, runtime) or self.process.owners.get(entity_of(to)) == runtime):
            self._hand_over(runtime, record, to)

    def _hand_over(self, runtime: str, record: TraceLine, resource: str) -> None:
        if (group := self.process.group) is not None:
            data = record.op, resource, self._homes[runtime]
            self.process.hand_over(judge_subscriptions, f"{group} {runtime}", record, *data)


# --- messages ---------------------------------------------------------------------------


@fold.run_claim("I-M17", key=fold.GroupKey.MESSAGE)
def judge_copies(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a runtime gets a message only as often as the message arrived (I-M17).

    A message arrives over a link, from a log, or from a node that has not recorded that it sent the
    message. A copy that a link did not send, and that is queued again, was not delivered. A message
    sent to another node for its subscribers may come again, from its new node, to a subscriber that
    had it and has moved. Some messages are not judged: those that a process with an incomplete
    trace handled, and those that a node made itself.
    """
    arrivals, is_published = 0, False
    carried, deliveries = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    latest: dict[tuple[str, str], fold.Evidence] = {}
    for item in items:
        op, member, link, runtime = map(str, item.data)
        if member not in whole:
            return
        is_published |= bool(link) and not runtime
        if link:
            carried[link, runtime] += 1 if op == Op.RCV else -1
        elif op == Op.RCV:
            arrivals += 1
    arrivals += sum(times for times in carried.values() if times > 0) if arrivals else 0
    for item in items:
        op, member, link, runtime = map(str, item.data)
        if link or op == Op.RCV:
            continue
        place = runtime, member if is_published else ""
        deliveries[place] += -1 if op == Op.QUEUE else 1
        if op != Op.QUEUE:
            latest[place] = max(item, latest.get(place, item), key=attrgetter("node", "ln"))
    for place, times in deliveries.items():
        if times > arrivals > 0:
            yield latest[place].breaks("I-M17", f"at most {arrivals} for {place[0]}")


class CopiesGiven(
    fold.ProcessClaim, claims=("I-M17",), place=fold.Place.NODE, across=(judge_copies,)
):
    """Evidence for I-M17: a node's arrivals of messages and their deliveries to runtimes."""

    _given: records.Lasting[tuple[str | None, str], None]

    @fold.on(fold.msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        self._hand_over(record, record.listener)

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        runtime = self.process.sessions.get(record.link)
        if _is_between(record):
            self._hand_over(record, record.listener)
        elif record.actor == records.BUS and runtime is not None:
            self._given[record.mid, runtime] = None
            self._hand_over(record, runtime)

    @fold.on(fold.msg(Op.QUEUE))
    def take_return(self, record: TraceLine) -> None:
        delivery = record.mid, record.listener or ""
        if delivery in self._given:
            del self._given[delivery]
            self._hand_over(record, record.listener)

    def _hand_over(self, record: TraceLine, runtime: str | None) -> None:
        process = self.process
        if process.group is None or is_backend(record.from_ or ""):
            return
        link = record.link if _is_between(record) else None
        data = record.op, process.member, link or "", runtime or ""
        self.process.hand_over(judge_copies, f"{process.group} {record.mid}", record, *data)


_Copy: TypeAlias = tuple[str, str]
"""Id of a message, and the runtime that is to get it; empty: the message is for several."""


@fold.run_claim("I-M18", key=fold.GroupKey.LINK)
def judge_carried(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that messages between nodes of a group arrive, in order, once (I-M18).

    A message may be lost if one of both nodes lost the shared store meanwhile, by its own clock; or
    if the sender answered it or recorded its loss; or if the receiver recorded that it came too
    late or without a lease. A receiver may have got a message before it lost the shared store and
    process it afterwards, by less than a lease. The messages that were sent last may be under way.
    Losses, and messages without a sender, are judged only if the trace of the sender is complete.
    """
    sent = [item for item in items if item.data[0] == Op.XMIT]
    arrivals = [item for item in items if item.data[0] == Op.RCV]
    outages = [item.data for item in items if item.data[0] == Op.UPD]
    answered = {item.data[1] for item in items if item.data[0] not in {Op.XMIT, Op.RCV, Op.UPD}}
    indices: defaultdict[_Copy, list[int]] = defaultdict(list)
    for place, item in enumerate(sent):
        indices[_copy_of(item)].append(place)
    is_whole = bool(sent) and sent[0].data[3] in whole
    # A message that arrived or was answered is not lost.
    settled = set(map(_copy_of, arrivals))
    last_index = -1
    former: fold.Evidence | None = None
    for item in arrivals:
        copy = _copy_of(item)
        # If a message was sent again, no record says which copy arrived.
        index = next((place for place in indices[copy] if place > last_index), None)
        if index is not None:
            is_known = former is not None and not _is_excused(outages, former, item, GROUP_LEASE)
            for lost in sent[last_index + 1 : index] if is_whole and is_known else ():
                is_settled = lost.data[1] in answered or _copy_of(lost) in settled
                if not is_settled and not _is_excused(outages, lost, sent[index]):
                    yield lost.breaks("I-M18", "it to arrive, or an answer or a drop")
            last_index, former = index, item
        elif indices[copy]:
            yield item.breaks("I-M18", "it to come once, after what was sent before it")
        elif is_whole:
            yield item.breaks("I-M18", "it to have been sent")


def _is_excused(
    outages: Iterable[Sequence[fold.Datum]],
    since: fold.Evidence,
    until: fold.Evidence,
    before: float = 0.0,
) -> bool:
    """Return whether a node lost the shared store between two of its records, or around them.

    Args:
        outages: Evidence that nodes lost the engine.
        since: The first record.
        until: The second record.
        before: Further seconds before the first record that count.
    """
    *_, member, first = since.data
    begin, end = _time(first) - before - records.SLACK, _time(until.data[-1]) + records.SLACK
    return any(node == member and begin <= _time(t) <= end for *_, node, t in outages)


def _time(t: object) -> float:
    return t if isinstance(t, float) else 0.0


def _copy_of(item: fold.Evidence) -> _Copy:
    _, mid, runtime, *_ = item.data
    return str(mid), str(runtime)


class SentBetween(
    fold.ProcessClaim, claims=("I-M18",), place=fold.Place.NODE, across=(judge_carried,)
):
    """Evidence for I-M18: the messages that a node exchanged with other nodes of its group."""

    _links: dict[str, None]
    _sent: records.Lasting[str, set[str]]
    _outage: TraceLine | None = None

    @fold.on(fold.msg(Op.XMIT, Op.RCV))
    def take_crossing(self, record: TraceLine) -> None:
        if not _is_between(record):
            return
        link = record.link or ""
        if self._outage is not None and link not in self._links:
            self._hand_over((link,), self._outage, None)
        self._links[link] = None
        if record.op == Op.XMIT:
            self._sent.setdefault(record.mid or "", set()).add(link)
        self._hand_over((link,), record, record.mid)

    @fold.on(fold.rows(GroupTable.ENGINE))
    def take_outage(self, record: TraceLine) -> None:
        self._outage = record
        self._hand_over(self._links, record, None)

    @fold.on(fold.any_msg(Op.SYNTH, Op.DROP))
    def take_answer(self, record: TraceLine) -> None:
        if _is_between(record):
            self._hand_over((record.link or "",), record, record.mid)
        elif self._sent:
            for mid in (record.mid, record.ref):
                self._hand_over(self._sent.get(mid or "", ()), record, mid)

    def _hand_over(self, links: Collection[str], record: TraceLine, mid: str | None) -> None:
        process = self.process
        for link in sorted(links):
            data = record.op, mid, record.listener or "", process.member, record.t
            self.process.hand_over(judge_carried, f"{process.group} {link}", record, *data)
