"""Golden data of data objects: what the cores in Python do with random inputs.

Each case is a class of the browser runtime, the arguments it is made with, and calls with the
result that each must have. `objects.mjs` replays them.
"""

import math
import re
from collections.abc import Callable, Iterator
from enum import Enum
from inspect import signature
from random import Random
from typing import Any

import attrs

from fsm.bus.transactions import DeduplicationWindow, Ended, Terms, TransactionsCore
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.sync import children as kids
from fsm.sync.child_history import ChildHistory
from fsm.sync.leases import RenewalsCore, RepeatsCore
from fsm.sync.routes import Moving
from fsm.sync.value.value import (
    apply_change,
    can_be_set,
    describe_change,
    is_applicable,
    published_change,
    without_attribute,
)
from specs.bodies import object as bodies
from specs.bodies.object import Change, ChangeObject, DataObject, Snapshot
from specs.child import RESOURCES, child_name
from specs.jsonvalue import ABSENT, Json, JsonObject, value_at
from specs.limits.protocol import DEDUP_SECONDS, DEDUP_WINDOW
from specs.limits.sync import WINDOW_LEAST_BYTES
from specs.message import Message, MessageType
from tests.fsm.sync.children.children_world import lone_children, told_children
from tests.fsm.sync.observers.lone_routes import LoneReportRoutes, lone_observer_route
from tests.support import lone_report
from tests.support.lone_copy import lone_copy, told, without_steps
from transports.bodies import write_body

Case = dict[str, Any]
URL = "comm://a.example/1"
REPORTER = "hyperty://a.example/r"
OBSERVERS = [f"hyperty://b.example/{name}" for name in "abcd"]
RUNTIMES = [f"hyperty-runtime://b.example/{name}" for name in ("one", "two")]
KEYS = ("a", "b", "c", "__proto__", "x.y", "")
PATHS = ("a", "b", "a.b", "a.0", "b.1.c", "a.a.a", "c", "__proto__", "b.0.b", "b.7", "c.c")


# --- as the browser runtime writes it ---------------------------------------------------------


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def plain(one: object, tag: str = "do") -> Any:  # noqa: PLR0911 - a table
    """Return an input (`tag` is `on`) or an effect as the browser runtime has it."""
    match one:
        case Step():
            words = {name: getattr(one, name) for name in ("machine", "key", "new", "why")}
            return {"do": "step", **words, "old": one.old or "[*]", "cause": str(one.cause)}
        case Change() | ChangeObject() | DataObject() | Snapshot():
            return {k: v for k, v in write_body(one).items() if k != "resource"}
        case bodies.ChildrenSign() | bodies.ChildrenEnded() | bodies.ChildWindow():
            return {k: v for k, v in attrs.asdict(one).items() if v is not None}
        case Message():
            return _sent(one)
        case Enum():
            return one.value
        case float() if math.isinf(one):
            return "never"
        case list() | tuple():
            return [plain(each, tag) for each in one]
        case frozenset():
            return sorted(one)
        case dict():
            return {key: plain(value, tag) for key, value in one.items()}
        case None | str() | int() | float():
            return one
    fields = attrs.fields_dict(type(one))
    said = {camel(name): plain(getattr(one, name), tag) for name in fields}
    if isinstance(one, kids.ChildOp):
        return said
    return {tag: kebab(type(one).__name__), **said}


class Tape:
    """Writes down calls of a core, each with its result."""

    def __init__(self, kind: str, *args: Any) -> None:
        self.case: Case = {"kind": kind, "args": list(args), "calls": []}

    def note(self, name: str, args: list[Any], result: Any) -> None:
        self.case["calls"].append([name, plain(args, "on"), plain(result)])


def calls(done: list[Any]) -> list[tuple[Any, ...]]:
    """Return what a core has asked of its port, as a page does; a refusal is an error there."""
    found: list[tuple[Any, ...]] = []
    for one in done:
        match one:
            case Step():
                found.append(("step", one))
            case RowChanged():
                row = attrs.asdict(one)
                found.append(("row", row | {"op": str(one.op)}))
            case Refused(code, why):
                found.append(("refused", int(code), why))
            case (name, *arguments):
                found.append((camel(name), *arguments))
    return found


# --- random things ----------------------------------------------------------------------------


def value(random: Random, depth: int = 3) -> Json:
    kind = random.randrange(9 if depth else 6)
    match kind:
        case 0:
            return random.choice([True, False, None])
        case 1 | 2:
            return random.choice([0, 1, -7, 2.5, 1e-7, 123456789])
        case 3 | 4 | 5:
            return random.choice(["", "milk", "ä€😀", "x" * random.randrange(40)])
        case 6:
            return [value(random, depth - 1) for _ in range(random.randrange(4))]
        case _:
            return thing(random, depth - 1)


def thing(random: Random, depth: int = 3) -> JsonObject:
    return {random.choice(KEYS): value(random, depth) for _ in range(random.randrange(5))}


def change(random: Random, version: int = 1) -> Change:
    if random.random() < 0.1:
        return Change(version, value=random.choice([thing(random), value(random)]))
    path, new = random.choice(PATHS), value(random)
    if new is not None and random.random() < 0.3:
        return Change(version, path, new, "array", random.choice(["add", "remove"]))
    return Change(version, path, None if random.random() < 0.2 else new)


# --- cases ------------------------------------------------------------------------------------


def values(random: Random) -> Case:
    tape, before = Tape("value"), thing(random)
    for _ in range(8):
        one, path = change(random, random.randrange(1, 9)), random.choice(PATHS)
        after = apply_change(before, one)
        tape.note("changed", [before, one], after)
        tape.note("described", [before, after, one], _untagged(describe_change(before, after, one)))
        found = value_at(before, path)
        tape.note("valueAt", [before, path], None if found is ABSENT else [found])
        tape.note("canBeSet", [before, path], can_be_set(before, path))
        tape.note("withoutAttribute", [before, path], without_attribute(before, path))
        asked = _asked(random.choice([one, _of_list(random, before)]))
        after = apply_change(before, asked)
        published = published_change(before, after, asked, 2, REPORTER)
        said = plain(published)
        tape.note("publishedChange", [before, after, asked], _without(said, "version", "source"))
        tape.note("isApplicable", [before, published], is_applicable(before, published))
        tape.note("isApplicable", [after, published], is_applicable(after, published))
        tape.note("changed", [before, published], apply_change(before, published))
        before = after
    return tape.case


def _of_list(random: Random, before: JsonObject) -> Change:
    """Return a change that takes elements out of a list, or puts some there."""
    path = random.choice(PATHS)
    there = value_at(before, path)
    if not isinstance(there, list):
        return Change(1, "a", random.choices([1, 2, 3], k=random.randrange(1, 6)))
    some = random.sample(there, random.randrange(len(there) + 1))
    return Change(1, path, some, "array", random.choice(["add", "remove", "remove"]))


def _without(said: dict[str, Any], *names: str) -> Any:
    return {name: part for name, part in said.items() if name not in names}


def _untagged(edit: object) -> Any:
    return {key: part for key, part in plain(edit).items() if key != "do"}


def copies(random: Random) -> Case:
    """An observer's copy, while changes are lost, doubled, and come in another order."""
    tape, core = Tape("ObserverCore", URL, OBSERVERS[0]), lone_copy(URL, OBSERVERS[0])
    data, version, now = thing(random), 1, 0.0
    sent: list[Change] = []

    def feed(name: str, *arguments: Any) -> None:
        core.port.changes.clear()
        done = told(core, (name, *arguments), now=now)
        changes = iter(core.port.changes)
        asked = [(*one, next(changes)) if one[0] == "show" else one for one in calls(done)]
        tape.note(camel(name), [*arguments, now], asked)
        reads.extend(one[1] for one in without_steps(done) if one[0] == "read")
        tape.note("deadline", [], core.deadline())
        tape.note("state", [], core.state)
        tape.note("version", [], core.version)
        tape.note("data", [], core.data)

    reads: list[int] = []
    feed("begin")
    for _ in range(30):
        now += random.choice([0.0, 0.01, 0.5, 2.0, 20.0])
        match random.randrange(12):
            case 0 | 1 | 2 | 3:
                version += 1
                sent.append(change(random, version))
                data = apply_change(data, sent[-1])
                if random.random() < 0.7:
                    feed("change", sent[-1])
            case 4 | 5:
                if sent:
                    feed("change", random.choice(sent))
            case 6 | 7:
                feed("become", Snapshot(URL, version, data))
            case 8:
                read = random.choice([*reads[-2:], 1])
                feed(random.choice(["read_failed", "not_found"]), read, "away")
            case 9 if random.random() < 0.1:
                feed(*random.choice([("give_up", "no"), ("delete",)]))
            case _:
                now = min(max(now, core.deadline()), now + 300.0)
                feed("time_over")
    return tape.case


def reporters(random: Random) -> Case:
    """A reporter's end: observers come and go, changes and decisions are made."""
    created = DataObject(REPORTER, "hyperty-runtime://a.example/r", thing(random), URL)
    allowed, public = tuple(random.sample(OBSERVERS, random.randrange(3))), random.random() < 0.2
    tape = Tape("ReporterCore", plain(created), list(allowed), public)
    core = lone_report.lone_report(created, *allowed, is_public=public)
    questions = [1]
    for _ in range(60):
        core.now += random.choice([0.0, 1.0, 20.0, 200.0])
        name, *arguments = _reporter_input(random, questions)
        core.port.done = done = []
        method = getattr(core.core, name)
        timed = [core.now] if "now" in signature(method).parameters else []
        refusal = method(*arguments, *timed)
        done += [] if refusal is None else [refusal]
        given = [sorted(one) if isinstance(one, set) else one for one in [*arguments, *timed]]
        tape.note(camel(name), given, [_without_object(one) for one in calls(done)])
        questions += [one[3] for one in done if lone_report.kinds([one]) == ["ask"]]
        tape.note("observers", [], core.observers)
        tape.note("runtimes", [], core.runtimes)
        tape.note("asking", [], core.asking)
        who = random.choice([*OBSERVERS, REPORTER])
        tape.note("leaseOf", [who], core.lease_of(who))
        tape.note("mayRead", [who], core.may_read(who))
        tape.note("isDeleted", [], core.is_deleted)
        tape.note("deadline", [], core.deadline())
    return tape.case


def _without_object(call: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a call of the port; that of `grant` says whether it is with the object."""
    match call:
        case ("grant", requests, snapshot, terms):
            return "grant", requests, terms, snapshot is not None
        case _:
            return call


def _reporter_input(random: Random, questions: list[int]) -> tuple[Any, ...]:
    who, manager = random.choice(OBSERVERS), f"{random.choice(RUNTIMES)}/sm"
    by = random.choice([REPORTER] * 5 + [who])
    question = random.choice(questions[-3:])
    makers: list[Callable[[], tuple[Any, ...]]] = [
        *[lambda: ("invite", lone_report.invitation(by), who)] * 2,
        *[lambda: ("take_answer", who, random.choice([100, 183, 200, 403, 408]), "so")] * 2,
        lambda: ("allow", by, who),
        lambda: ("expel", by, who),
        *[
            lambda: (
                *("subscribe", lone_report.subscription(who, manager), who),
                random.choice([None, 60, 600]),
                random.choice([None, None, 1, 2, 3]),
            )
        ]
        * 4,
        *[lambda: ("accept", who, question)] * 2,
        lambda: ("refuse", who, "no", question),
        lambda: ("unsubscribe", who, manager),
        *[lambda: ("time_over",)] * 3,
        *[lambda: ("change", by, _asked(change(random)))] * 2,
        lambda: ("remove", by, random.choice(PATHS)),
        lambda: ("notified", {random.choice(RUNTIMES)}),
    ]
    if random.random() < 0.03:
        return random.choice([("delete", by), ("notified",)])
    return random.choice(makers)()


def _asked(one: Change) -> ChangeObject:
    return ChangeObject(URL, one.attribute, one.value, one.attribute_type, one.operation)


def _window(random: Random) -> bodies.ChildWindow | None:
    """Return a window that few children exceed; None: the object has none."""
    return random.choice(
        [
            None,
            bodies.ChildWindow(last=3),
            bodies.ChildWindow(last=7, seconds=random.choice([2, 9])),
            bodies.ChildWindow(bytes=WINDOW_LEAST_BYTES),
        ]
    )


def child_sets(random: Random) -> Case:
    window, ops = _window(random), list[kids.ChildOp]()
    tape, core = Tape("ChildSet", plain(window)), kids.ChildSet(window)
    for number in range(60):
        op = _op(random, number, 3)
        ops.append(op)
        op = random.choice([op, op, op, random.choice(ops)])
        taken = core.take(op)
        refused = isinstance(taken, Refused)
        tape.note("take", [op], calls([taken])[0] if refused else bool(taken))
        if number % 20 == 19:
            shown = core.shown()
            some = {name: shown[name] for name in shown if random.random() < 0.8}
            tape.note("become", [some], core.become(kids.children_in(some, window)))
        match random.randrange(6):
            case 0:
                tape.note("trim", [*(more := (random.randrange(3), 100))], core.trim(*more))
            case 1:
                ended = random.choice(ops).name
                tape.note("end", [ended], core.end(ended))
        tape.note("sign", [], core.sign)
        tape.note("fitsBeside", [{"a": "x" * 40_000}], core.fits_beside({"a": "x" * 40_000}))
    tape.note("shown", [], core.shown())
    return tape.case


def child_histories(random: Random) -> Case:
    """The children at a reporter's end: what leaves, what it reports, and pages of them."""
    window, epoch, now = _window(random), random.choice([0.0, 1000.5]), 0.0
    tape, core = Tape("ChildHistory", plain(window), epoch), ChildHistory(window, epoch)
    is_many = random.random() < 0.3
    for number in range(300 if is_many else 60):
        now += random.choice([0.0, 0.25, 1.5])
        op = _op(random, number, 3)
        if is_many:
            op = attrs.evolve(op, act=MessageType.CREATE, value="x" * 10, removes=None)
        taken = core.take(op, now)
        refused = isinstance(taken, Refused)
        tape.note("take", [op, now], calls([taken])[0] if refused else bool(taken))
        match random.randrange(10):
            case 0 | 1 if not is_many:
                tape.note("trim", [now], core.trim(now))
            case 2:
                ended = op.name
                tape.note("end", [ended, now], core.end(ended, now))
            case 3 | 4:
                tape.note("report", [], core.report())
            case 5 if window is not None:
                after = random.randrange(number + 1)
                tape.note("page", [after], core.page(after))
            case 6:
                tape.note("snapshot", [], core.snapshot())
        tape.note("deadline", [], core.deadline())
        tape.note("isReportDue", [now], core.is_report_due(now))
        tape.note("sign", [], core.children.sign)
    tape.note("trim", [now], core.trim(now))
    tape.note("isReportDue", [now], core.is_report_due(now))
    for _ in range(3):
        tape.note("report", [], core.report())
    return tape.case


def _op(random: Random, number: int, creators: int) -> kids.ChildOp:
    creator = random.choice(OBSERVERS[:creators])
    nth = random.choice([number + 1, random.randrange(1, number + 2)])
    act = MessageType(random.choice(["create", "create", "update", "delete"]))
    said = None if act is MessageType.DELETE else random.choice([value(random), "x" * 2_000])
    removes = random.choice(PATHS) if act is MessageType.UPDATE and random.random() < 0.2 else None
    base = 100 + random.randrange(1, number + 2)
    name = child_name(creator, nth)
    return kids.ChildOp(act, name, creator, nth, 101 + number, said, removes, base)


def _keep(random: Random, there: ChildHistory, op: kids.ChildOp, now: float) -> None:
    """Apply an operation at the reporter's end, unless it is lost; or delete its child."""
    if random.random() < 0.85:
        there.take(op, now)
        there.trim(now)
    if random.random() < 0.1:
        there.end(op.name, now)


def child_copies(random: Random) -> Case:
    """A copy of children, while messages of creators and reports of the object are lost."""
    keeper, window, now = OBSERVERS[0], _window(random), 0.0
    there = ChildHistory(window)
    tape, core = Tape("ChildrenCopyCore", keeper), lone_children(keeper)
    core.children.window = window
    tape.note("window", [window], None)
    reads = 0

    def feed(name: str, *arguments: Any, is_reported: bool = False) -> None:
        nonlocal reads
        terms = {"is_reported": True} if is_reported else {}
        done = told_children(core, name, *arguments, now, **terms)
        # The value is read when it is sent.
        done = [one[:3] if one[0] == "say_again" else one for one in done]
        tape.note(camel(name), [*arguments, now, *terms.values()], calls(done))
        reads = max(reads, *(number for what, number, *_ in done if what == "read"), 0)
        tape.note("deadline", [], core.deadline())
        tape.note("sign", [], core.children.sign)
        tape.note("missed", [], core.missed)
        tape.note("names", [], list(core.children))

    feed("become", there.snapshot())
    for number in range(50):
        now += random.choice([0.0, 0.1, 1.5])
        op = _op(random, number, 2)
        _keep(random, there, op, now)
        if random.random() < 0.85:
            feed("take", op, is_reported=random.choice([False, False, True]))
        match random.randrange(8):
            case 0 | 1 | 2:
                report = there.report()
                is_ended = isinstance(report, bodies.ChildrenEnded)
                if random.random() < 0.9:
                    feed("take_ended" if is_ended else "hear_sign", report)
            case 3:
                whole = there.snapshot()
                bare = {RESOURCES: {name: {"value": "bare"} for name in there.children}}
                feed("become", random.choice([None, {}, bare, whole, whole]))
            case 4:
                feed("read_failed", random.choice([reads, 1]))
            case 5 if random.random() < 0.3:
                feed("doubt")
            case _:
                if core.deadline() < math.inf:
                    now = max(now, core.deadline())
                feed("time_over")
    return tape.case


def renewals(random: Random) -> Case:
    tape, core, now = Tape("RenewalsCore"), RenewalsCore(), 0.0
    for _ in range(40):
        now += random.choice([0.0, 1.0, 7.0, 100.0])
        who, chance = random.choice(OBSERVERS), random.choice([0.0, 0.5, 1.0])
        key = f"{URL}|{who}"
        match random.randrange(5):
            case 0 | 1:
                life = random.choice([60.0, 600.0])
                core.granted(URL, who, life, (now, chance))
                tape.note("granted", [key, life, now, chance], None)
            case 2:
                core.unanswered(URL, who, (now, chance))
                tape.note("unanswered", [key, now, chance], None)
            case 3 if random.random() < 0.3:
                core.ended(URL, who)
                tape.note("ended", [key], None)
            case _:
                tape.note("due", [now], ["|".join(pair) for pair in core.due(now)])
        tape.note("deadline", [], core.deadline())
    return tape.case


def repeats(random: Random) -> Case:
    tape, core, now = Tape("RepeatsCore"), RepeatsCore(), 0.0
    urls = [f"comm://a.example/{n}" for n in range(3)]
    for version in range(1, 50):
        now += random.choice([0.0, 0.5, 2.0, 30.0])
        url, is_of_part = random.choice(urls), random.random() < 0.3
        match random.randrange(5):
            case 0:
                reporter = "hyperty-runtime://a.example/r/p2p" if is_of_part else REPORTER
                thing_ = DataObject(reporter, "hyperty-runtime://a.example/r", {}, url)
                one = Change(version, "a", version)
                core.published(thing_, one, now)
                tape.note("published", [url, one, is_of_part, now], None)
            case 1:
                core.observed(url, now)
                tape.note("observed", [url, now], None)
            case 2 if random.random() < 0.2:
                core.forget(url)
                tape.note("forget", [url], None)
            case _:
                observed = random.sample(urls, random.randrange(1, 4))
                found = core.due_change(now, lambda one, all_=observed: one in all_)
                said = found and {"url": found[0], "change": plain(found[1])}
                tape.note("repeated", [now, observed], said)
        tape.note("deadline", [], core.deadline())
    return tape.case


def observer_routes(random: Random) -> Case:
    tape, core = Tape("ObserverRoute"), lone_observer_route()
    links = [None, "link/1", "link/2"]
    moves: list[Any] = []
    for number in range(40):
        link, who = random.choice(links), random.choice(OBSERVERS)
        found: list[Any] = []
        match random.randrange(7):
            case 0 | 1:
                p2p = random.choice([True, False, None, None])
                found = core.prefer(who, p2p=p2p)
                tape.note("prefer", [who, p2p], [("moveTo", one) for one in found])
            case 2:
                found = core.left(who)
                tape.note("left", [who], [("moveTo", one) for one in found])
            case 3 if number < 10:
                barred = random.choice(links)
                found = core.opened(link, barred)
                tape.note("opened", [link, barred], [("moveTo", one) for one in found])
            case 4:
                found = core.asked(link)
                tape.note("asked", [link], [("moveTo", one) for one in found])
            case 5:
                found = core.link_is(link)
                tape.note("linkIs", [link], [("moveTo", one) for one in found])
            case _ if moves:
                aim, how = moves.pop(), random.choice(list(Moving))
                found = core.moved(aim, how)
                tape.note("moved", [aim, how.name.lower()], [("moveTo", one) for one in found])
            case _:
                pass
        moves += found
        tape.note("used", [], core.used)
        tape.note("mayUseLinks", [], core.may_use_links)
        tape.note("isWantedBy", [who], core.is_wanted_by(who))
    return tape.case


def runtime_routes(random: Random) -> Case:
    tape, links = Tape("RuntimeRoutes"), [None, "link/1", "link/2"]
    cores = {url: LoneReportRoutes() for url in (URL, "comm://a.example/2")}
    for _ in range(40):
        url, runtime, link = random.choice([*cores]), random.choice(RUNTIMES), random.choice(links)
        core = cores[url]
        match random.randrange(4):
            case 0:
                tape.note("asked", [url, runtime, link], _of_url(url, core.ask(runtime, link)))
                continue
            case 1:
                tape.note("counts", [url, runtime], _of_url(url, core.counts(runtime)))
            case 2:
                active, asking = (random.sample(RUNTIMES, random.randrange(3)) for _ in range(2))
                done = _of_url(url, core.left(active, asking))
                tape.note("left", [url, active, asking], done)
            case _:
                done = []
                for each, routes in cores.items():
                    done += _of_url(each, routes.link_is(runtime, link))
                tape.note("linkIs", [runtime, link], done)
        tape.note("direct", [url], core.direct)
        tape.note("isUsed", [url], core.is_used)
    return tape.case


def _of_url(url: str, done: list[Any]) -> list[Any]:
    return [(name, url, link) for name, link in calls(done) if name.endswith("Link")]


def open_requests(random: Random) -> Case:
    """The open requests of a bus: answers that are late, provisional, of several, of nobody."""
    tape, core, now = Tape("Transactions"), TransactionsCore[str](), 0.0
    requests = [
        Message(id_, MessageType.CREATE, OBSERVERS[0], to, {"value": id_})
        for id_ in range(1, 5)
        for to in OBSERVERS[1:3]
    ]
    for _ in range(60):
        now += random.choice([0.0, 0.1, 5.0])
        one = random.choice(requests)
        match random.randrange(7):
            case 0 | 1 if core.find(one) is None:
                awaited = frozenset(random.sample(RUNTIMES, random.choice([0, 0, 1, 2])))
                step = core.open(one, "waiter", now, Terms(awaited))
                tape.note("open", [_sent(one), "waiter", now, sorted(awaited)], step)
            case 2 | 3 | 4:
                body: JsonObject = {"code": random.choice([100, 200, 200, 404])}
                if random.random() < 0.6:
                    body["source"] = random.choice([*RUNTIMES, "hyperty-runtime://b.example/no", 7])
                answer = Message(one.id, MessageType.RESPONSE, one.to, one.from_, body)
                found = core.answered(answer, now)
                taken = found.transaction and _sent(found.transaction.request)
                said = {"request": taken, "drop": found.drop, "step": found.step}
                tape.note("answered", [_sent(answer), now], said | {"isLast": found.is_last})
            case 5:
                tape.note("giveUp", [_sent(one), "no"], _ended(core.give_up(one, "no")))
            case _:
                now = max(now, min(core.deadline(), now + random.choice([0.0, 20.0])))
                tape.note("overdue", [now], [_ended(it) for it in core.overdue(now)])
        tape.note("deadline", [], core.deadline())
        tape.note("size", [], len(core))
    if random.random() < 0.2:
        # What is remembered of requests that have ended has a bound.
        for id_ in range(10, 4110):
            many = Message(id_, MessageType.CREATE, OBSERVERS[0], OBSERVERS[3], {})
            core.open(many, "waiter", now)
            core.give_up(many, "no")
        first, last = Message(10, MessageType.CREATE, OBSERVERS[0], OBSERVERS[3], {}), many
        tape.note("crowd", [_sent(first), last.id, now], None)
        for id_ in (10, 15, 40, last.id):
            late = Message(id_, MessageType.RESPONSE, OBSERVERS[3], OBSERVERS[0], {"code": 200})
            found = core.answered(late, now)
            said = {"request": None, "drop": found.drop, "step": None, "isLast": False}
            tape.note("answered", [_sent(late), now], said)
    return tape.case


def _sent(one: Message) -> Json:
    body = dict(one.body)
    return {"id": one.id, "type": one.type.value, "from": one.from_, "to": one.to, "body": body}


def _ended(one: Ended[str] | None) -> Json:
    if one is None:
        return None
    return {"request": _sent(one.request), "waiter": one.waiter, "step": plain(one.step)}


def duplicates(random: Random) -> Case:
    """Messages that two paths bring twice, soon or late, few or many."""
    tape, core, now = Tape("DeduplicationWindow"), DeduplicationWindow(), 0.0
    for _ in range(60):
        now += random.choice([0.0, 1.0, DEDUP_SECONDS / 2, DEDUP_SECONDS])
        kind = random.choice([MessageType.CREATE, MessageType.RESPONSE])
        body: JsonObject = {}
        if kind is MessageType.RESPONSE:
            body = {"code": random.choice([100, 200, 404])}
            body |= random.choice([{}, {"source": RUNTIMES[0]}, {"source": 7}, {"sequence": 1}])
            body |= random.choice([{}, {"sequence": 2}, {"sequence": "2"}])
        who, id_ = random.choice(OBSERVERS[:2]), random.randrange(1, 3)
        one = Message(id_, kind, who, OBSERVERS[3], body)
        tape.note("isNew", [_sent(one), now], core.is_new(one, now))
        if random.random() < 0.05:
            count = DEDUP_WINDOW - random.choice([4, 1, 0])
            many = [Message(id_, MessageType.CREATE, who, REPORTER, {}) for id_ in range(count)]
            new = [core.is_new(one, now) for one in many]
            tape.note("crowd", [_sent(many[0]), count, now], sum(new))
    return tape.case


MAKERS = (
    open_requests,
    duplicates,
    values,
    copies,
    reporters,
    child_sets,
    child_histories,
    child_copies,
    renewals,
    repeats,
    observer_routes,
    runtime_routes,
)


def cases(seed: int, count: int) -> Iterator[Case]:
    """Return as many cases of each kind."""
    for make in MAKERS:
        for number in range(count):
            yield make(Random(f"{make.__name__} {seed} {number}"))  # noqa: S311 - repeatable
