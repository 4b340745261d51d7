"""Claims on a runtime: the states of its stubs, and its reports to others.

Claims I-S3..I-S9 are about messages that belong to state machine transitions of stubs. Claims I-C2,
I-C4, I-C6, I-P9, I-P10, I-R8 and I-S11 are about the addresses that are live in the runtime, and
about the setup of its links. They read message bodies, so they are judged if a trace has bodies.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine, body_of
from fsm.machines.stub_connection import LinkState
from specs.addresses import address
from specs.limits.protocol import STUB_QUEUE
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import ABSENT, Op

_CONNECTION: Final = "stub_connection"
_LINK: Final = "node_link"
_DEPLOYMENT: Final = "stub_deployment"

_RENEWALS: Final = frozenset({MessageType.SUBSCRIBE, MessageType.CREATE, MessageType.UPDATE})
"""Types of messages by which a runtime may renew its registrations and subscriptions."""
_STATUS: Final = "status"
_NOT_OF_A_CONNECTION: Final = frozenset({"deploying", "deployment-failed", "undeployed"})


@fold.check("I-S3", on=fold.at_bus(Op.ADMIT), place=fold.Place.RUNTIME)
def check_status_address(process: fold.Process, record: TraceLine) -> None:
    """Check that a status is announced by its owner, to the owner's status address (I-S3)."""
    place = address.status_of(record.from_ or "")
    if address.last_segment(record.to or "") == _STATUS and record.to != place:
        process.report_break("I-S3", record, f"{place} as its place")


class EventForChange(fold.ProcessClaim, claims=("I-S4",)):
    """Each change of a stub's state is announced once, and no other event is announced (I-S4)."""

    _steps: dict[str | None, list[TraceLine]]
    _events: Counter[str | None]

    @fold.on(fold.steps(_CONNECTION))
    def take_connection(self, record: TraceLine) -> None:
        if record.key is not None:
            self._steps.setdefault(record.key, []).append(record)

    @fold.on(fold.steps(records.LINK_MACHINE))
    def take_link(self, record: TraceLine) -> None:
        # A handler announces the states of all its links under its own address.
        end = records.split(record.key)[-1].partition("/conn/")[0]
        self._steps.setdefault(end, []).append(record)

    @fold.on(fold.any_msg(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        from_ = record.from_ or ""
        if (
            from_ not in self._steps
            or record.actor != records.BUS
            or record.to != address.status_of(from_)
        ):
            return
        self._events[from_] += 1
        if self._events[from_] > len(self._steps[from_]):
            self.report_break(record, "a step of the stub before each of its events")

    @override
    def end(self) -> None:
        for stub, changes in self._steps.items() if self.process.home is not None else ():
            silent = changes[self._events[stub] :]
            if silent and self.process.is_over_since(silent[0].t + records.SLACK):
                self.report_break(silent[0], "an event of this step")


class TableAgrees(fold.ProcessClaim, claims=("I-S5",)):
    """The registry's table has the states of each stub that its events report, in order (I-S5)."""

    _states: defaultdict[str, list[str]]
    _reached: Counter[str]

    @fold.on(fold.steps(_CONNECTION))
    def take_step(self, record: TraceLine) -> None:
        self._states[record.key or ""].append(record.new or "")

    @fold.on(fold.rows("stubs"))
    def take_stub(self, record: TraceLine) -> None:
        stub, _, status = (record.val or "").partition(" ")
        if record.op == Op.DEL or stub not in self._states or status in _NOT_OF_A_CONNECTION:
            return
        known, since = self._states[stub], self._reached[stub]
        if status not in known[since:]:
            self.report_break(record, f"{stub} as it was last reported")
        else:
            self._reached[stub] = known.index(status, since)


class DeployBeforeRun(fold.ProcessClaim, claims=("I-S7",), place=fold.Place.RUNTIME):
    """A stub is deployed, and the registry listens to its status, before it starts (I-S7)."""

    _heard: set[str]

    @fold.on(fold.rows(records.LISTENERS))
    def take_listener(self, record: TraceLine) -> None:
        if record.actor == records.BUS:
            self._heard.add(record.key or "")

    @fold.on(fold.steps(_CONNECTION))
    def take_connection(self, record: TraceLine) -> None:
        stub = record.key or ""
        if record.old != ABSENT:
            return
        if self.process.state(_DEPLOYMENT, stub) != "deploying":
            self.report_break(record, "a stub that is being deployed")
        elif address.status_of(stub) not in self._heard:
            self.report_break(record, f"a listener of {address.status_of(stub)} before")


@fold.check("I-S8", on=fold.any_msg(Op.XMIT))
def check_session_is_open(process: fold.Process, record: TraceLine) -> None:
    """Check that a node's stub sends only over an open session (I-S8)."""
    if process.state(_CONNECTION, record.stub) not in {None, records.LIVE}:
        process.report_break("I-S8", record, f"{record.stub} to be live")


class QueueOrder(fold.ProcessClaim, claims=("I-S9",)):
    """Messages that wait for a stub leave in order, and their number is limited (I-S9).

    If the node has opened an empty session, renewals are sent first: requests of the runtime to
    components of its node. The other messages follow, in order.
    """

    _waiting: defaultdict[str, dict[str, bool]]
    _renewing: set[str]

    @fold.on(fold.steps(_LINK))
    def take_step(self, record: TraceLine) -> None:
        if record.new == LinkState.RENEWING:
            self._renewing.add(record.actor)
            self._renewals_first(record.actor)
        else:
            self._renewing.discard(record.actor)

    def _renewals_first(self, stub: str) -> None:
        queue = self._waiting[stub]
        self._waiting[stub] = dict(sorted(queue.items(), key=lambda entry: not entry[1]))

    @fold.on(fold.msg(Op.QUEUE))
    def take_queueing(self, record: TraceLine) -> None:
        if record.actor.startswith("stub:"):
            queue = self._waiting[record.actor]
            queue[record.mid or ""] = self._may_renew(record)
            if len(queue) > STUB_QUEUE:
                self.report_break(record, f"at most {STUB_QUEUE} to wait")
            if record.actor in self._renewing:
                self._renewals_first(record.actor)

    def _may_renew(self, record: TraceLine) -> bool:
        home = self.process.home
        is_own = home is not None and address.is_below(record.from_ or "", home)
        return is_own and record.type in _RENEWALS and address.is_backend(record.to or "")

    @fold.on(fold.msg(Op.FLUSH))
    def take_release(self, record: TraceLine) -> None:
        queue, mid = self._waiting.get(record.actor), record.mid or ""
        if queue and mid in queue:
            is_renewing = record.actor in self._renewing
            # A message that waits too long for renewals is released and refused before they end.
            alike = (name for name in queue if not is_renewing or queue[name] == queue[mid])
            first = next(alike)
            if first != mid:
                self.report_break(record, f"{first} to leave first")
            del queue[mid]

    @fold.on(fold.msg(Op.SYNTH, Op.DROP))
    def take_end(self, record: TraceLine) -> None:
        queue = self._waiting.get(record.actor)
        if queue:
            queue.pop(record.mid or "", None)
            queue.pop(record.ref or "", None)


# --- bodies -----------------------------------------------------------------------------


_REGISTRY: Final = "/registry"
_CHANGES: Final = "/registry/changes"


class Published(fold.ProcessClaim, claims=("I-C2", "I-C4"), place=fold.Place.RUNTIME):
    """A runtime reports all addresses that are live in it (I-C2), and no others (I-C4)."""

    _own: set[str]
    _ever: set[str]
    _published: set[str]
    _missing: dict[str, TraceLine]
    # For each request that the registry has got, the digest of its answer.
    _asked: records.Recent[str, str]

    @fold.on(fold.rows("components"))
    def take_component(self, record: TraceLine) -> None:
        key = record.key or ""
        if record.writer != "local":
            return
        snapshot = self._missing.pop(key, None)
        if snapshot is not None and record.t > snapshot.t + records.SLACK:
            # A component whose row is removed soon after the snapshot was about to leave.
            self._incomplete(snapshot, key)
        self._ever.add(key)
        change = self._own.add if record.op == Op.ADD else self._own.discard
        change(key)

    @fold.on(fold.bodies_at_bus(Op.DELIVER))
    def take_request(self, record: TraceLine) -> None:
        if record.type == MessageType.SUBSCRIBE and record.to == self.process.part("registry"):
            self._asked[record.mid or ""] = ""

    @fold.on(fold.bodies_at_bus(Op.SUBMIT))
    def take_report(self, record: TraceLine) -> None:
        if record.from_ != self.process.part("registry"):
            return
        body = body_of(record)
        if record.to == self.process.part("registry/changes"):
            self._change(
                record, records.addresses_in(body.get("value")), str(body.get("operation"))
            )
        elif (asked := record.ref or "") in self._asked and record.code == Code.OK:
            # A request that arrives again gets its earlier answer, however old.
            if self._asked[asked] != record.digest:
                self._snapshot(record, records.addresses_in(body.get("value")))
            self._asked[asked] = record.digest or ""

    def _change(self, record: TraceLine, addresses: Iterable[str], operation: str) -> None:
        for url in addresses:
            if url not in self._ever:
                self.report_break(record, "addresses of this runtime only", url, claim="I-C4")
            change = self._published.add if operation == "add" else self._published.discard
            change(url)

    def _snapshot(self, record: TraceLine, addresses: list[str]) -> None:
        for url in addresses:
            if url not in self._own:
                self.report_break(record, "addresses of this runtime only", url, claim="I-C4")
        # The departure of addresses was not announced while there were no followers.
        for url in (self._published & self._own) - set(addresses):
            self._missing.setdefault(url, record)
        self._published.update(addresses)

    def _incomplete(self, snapshot: TraceLine, url: str) -> None:
        self.report_break(snapshot, f"{url} in the snapshot", claim="I-C2")

    @override
    def end(self) -> None:
        for url, snapshot in self._missing.items() if self.process.end is not None else ():
            self._incomplete(snapshot, url)


class Announced(fold.ProcessClaim, claims=("I-C6",), place=fold.Place.RUNTIME):
    """Another runtime reports arrival and departure of an address alternately (I-C6).

    A report may arrive before a list that was requested earlier, and then overrides the list.
    """

    _asked: dict[str, tuple[str, dict[str, bool]]]
    _live: dict[str, set[str]]

    @fold.on(fold.bodies_at_bus(Op.SUBMIT))
    def take_request(self, record: TraceLine) -> None:
        if record.from_ == self.process.part("registry"):
            to = record.to or ""
            if record.type == MessageType.SUBSCRIBE and to.endswith(_REGISTRY):
                self._asked[record.mid or ""] = to, {}

    @fold.on(fold.bodies_at_bus(Op.CALLBACK))
    def take_list(self, record: TraceLine) -> None:
        registry, since = self._asked.pop(record.ref or "", ("", {}))
        if registry and record.code == Code.OK:
            listed = set(records.addresses_in(body_of(record).get("value"))) - since.keys()
            self._live[registry] = listed | {url for url, is_live in since.items() if is_live}

    @fold.on(fold.bodies_at_bus(Op.DELIVER))
    def take_change(self, record: TraceLine) -> None:
        if not (record.to or "").endswith(_CHANGES):
            return
        body, live = body_of(record), self._live.get(record.from_ or "")
        is_add = body.get("operation") == "add"
        changed = records.addresses_in(body.get("value"))
        for registry, since in self._asked.values():
            if registry == record.from_:
                since.update(dict.fromkeys(changed, is_add))
        if live is None:
            return
        for url in changed:
            if (url in live) is is_add:
                self.report_break(record, "add and remove in turn", url)
            change = live.add if is_add else live.discard
            change(url)


class PathsFirst(fold.ProcessClaim, claims=("I-P9", "I-P10"), place=fold.Place.RUNTIME):
    """A stub is reachable before a registry record (I-P9) or an invitation (I-P10) names it."""

    _asked: dict[str, list[str]]
    _paths: set[str]

    @fold.on(fold.bodies_at_bus(Op.SUBMIT))
    def take_request(self, record: TraceLine) -> None:
        body = body_of(record)
        if record.type == MessageType.SUBSCRIBE and (record.to or "").endswith("/sm"):
            self._asked[record.mid or ""] = records.addresses_in(body.get("resources"))
        value = body.get("value")
        handler = value.get("p2pHandler") if isinstance(value, dict) else None
        is_record = (record.to or "").startswith("domain://registry.")
        if is_record and isinstance(handler, str) and not self._is_there(handler):
            self.report_break(record, f"{handler} to be deployed, and its path set", claim="I-P9")

    def _is_there(self, handler: str) -> bool:
        is_deployed = self.process.state(_DEPLOYMENT, handler) == "deployed"
        return is_deployed and handler in self._paths

    @fold.on(fold.bodies_at_bus(Op.CALLBACK))
    def take_answer(self, record: TraceLine) -> None:
        resources = self._asked.pop(record.ref or "", [])
        if record.code == Code.OK:
            self._paths.update(resources)

    @fold.on(fold.with_body(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        if (
            record.type != MessageType.CREATE
            or address.last_segment(record.from_ or "") != "subscription"
        ):
            return
        source = body_of(record).get("source")
        is_own = isinstance(source, str) and address.runtime_of(source) == self.process.home
        if is_own and "/p2prequester/" in str(source) and source not in self._paths:
            self.report_break(record, f"the path of {source} to be set", claim="I-P10")


class Bound(fold.ProcessClaim, claims=("I-R8",), place=fold.Place.RUNTIME):
    """An entity bound to a link was reported by a registry record or over the link (I-R8)."""

    _known: defaultdict[str, set[str]]

    @fold.on(fold.with_body(Op.RCV))
    def take_record(self, record: TraceLine) -> None:
        value = body_of(record).get("value")
        for row in value if isinstance(value, list) else [value]:
            if isinstance(row, dict):
                self._known[str(row.get("runtime"))].add(str(row.get("url")))
        runtime = address.runtime_of(record.from_ or "")
        if runtime is not None:
            self._known[runtime].update(records.addresses_in(value))

    @fold.on(fold.any_msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        if records.is_p2p_end(record.stub or ""):
            self._known[record.stub or ""].add(record.from_ or "")

    @fold.on(fold.rows("p2p"))
    def take_binding(self, record: TraceLine) -> None:
        if not self.process.has_bodies or record.op == Op.DEL:
            return
        _, end, *addresses = [*(record.val or "").split(), "", ""]
        known = self._known[record.key or ""] | self._known[end]
        for url in addresses:
            if url and url not in known:
                self.report_break(record, f"{url} to be said to be there", url)


@fold.check("I-S11", on=fold.bodies_at_bus(Op.SUBMIT), place=fold.Place.RUNTIME)
def check_status_names_runtime(process: fold.Process, record: TraceLine) -> None:
    """Check that exactly the status events of direct links name a remote runtime (I-S11)."""
    stub = record.from_ or ""
    if record.to != f"{stub}/status":
        return
    remote = body_of(record).get("resource")
    is_link = records.is_p2p_end(stub)
    if remote is None:
        if record.type == MessageType.CREATE and is_link:
            process.report_break("I-S11", record, "the runtime at the other end")
    elif not is_link or address.scheme_of(str(remote)) != "hyperty-runtime":
        process.report_break("I-S11", record, "no runtime, or that at the other end of a link")
    elif remote == process.home:
        process.report_break("I-S11", record, "another runtime than this")
