"""The comparison of a run with a scenario: one step after the other, and as a whole.

A step is matched by trace records, each name of the scenario by one of the actors' names, in an
order that keeps the precedence of the steps. Records that match no step are allowed, except
contradictions. From the first step of the scenario to its last, these are contradictions:

- a step that no table declares, of any entity;
- a step of an entity that the scenario follows, after the first of its steps in the scenario: all
  later ones are listed, up to the scenario's end; it is reported at the last listed step of the
  entity, or at a later fault or pause;
- a second final answer to one request, unless the first is lost;
- a drop of a message that is listed without a drop or denial; a second copy may be dropped, and so
  may a creator's message about a child where it comes back to its creator;
- an answer to a message that is listed as an event;
- a delivery of a message to a receiver that `deliver_to` does not name; nor may a receiver that it
  names have got nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import attrs
import orjson

from specs.child import parent_of
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.message import Message, instance_id
from specs.message_catalogue import message_kind
from specs.reply_code import FIRST_FINAL, Code, DropReason
from specs.trace import ABSENT, Fact, Kind, Op
from tests.conformance.play.names import Names, holds, says_the_same
from tests.conformance.play.order import Order
from tests.conformance.play.route import Match, Observer, Seen, follow, is_named, needs_of
from tests.conformance.play.script import LINK, LOST, Line, Scenario, read_place

_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 300
_ORDER: Final = 5
_GIVEN: Final = frozenset({Op.CALLBACK, Op.DELIVER})
_CUES: Final = frozenset({"time", "fault", "call"})
"""Steps that are not looked for."""

_LINK_STATES: Final = {Op.OPEN: (ABSENT, "open"), Op.CLOSE: ("open", "closed")}


@attrs.frozen
class Difference:
    """The first step that was not seen as the scenario has it.

    Attributes:
        number: Of the step; 0 for something that contradicts the scenario as a whole.
        expected: The step of the scenario.
        seen: What was seen instead: the nearest first; empty: nothing like it.
    """

    number: int
    expected: str
    seen: tuple[str, ...]


class Finding(NamedTuple):
    """Something that was seen, in the scenario's words.

    Attributes:
        text: What it is, and what is wrong with it; of a step of an entity that is, its key.
        likeness: How near it is to the step; larger is nearer.
        match: The records, if it can be the step.
        names: The names as they are then.
    """

    text: str
    likeness: int = 0
    match: Match | None = None
    names: Names | None = None


def show_message(message: Message, names: Names) -> str:
    """Write a message in one line, in the scenario's words, and what it is for."""
    ends = f"{names.golden(message.from_)} -> {names.golden(message.to)}"
    kind = message_kind(message)
    what = "" if kind is None else f" ({kind.name})"
    return f"#{message.id} {message.type} {ends} {_short(names.in_golden(message.body))}{what}"


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def show_step(step: Line) -> str:
    """Write a step in one line."""
    match step.word:
        case "msg":
            marks = [name for name, value in step.fields.items() if value is True]
            marks += [
                f"{name}:{step.fields[name]}" for name in ("drop", "p2p") if step.fields.get(name)
            ]
            ending = f" [{' '.join(marks)}]" if marks else ""
            return f"{step.hop.text} {show_message(step.msg, Names())}{ending}"
        case "state":
            return f"{step.machine}({'|'.join(step.key)}): {step.old or 'nothing'} -> {step.new}"
        case _:
            shown = {k: v.text if k == "at" else v for k, v in step.fields.items() if k != "norm"}
            return f"{step.word}: {_short(shown)}"


class Move(NamedTuple):
    """One step of an entity that was seen."""

    number: int
    who: str
    key: str
    old: str
    new: str


def moves(items: Iterable[Seen], machine: str) -> Iterator[Move]:
    """Yield the steps of a machine's entities; a direct link is one for both of its ends."""
    last: dict[str, Op] = {}
    for seen in items:
        fact = seen.fact
        if machine == LINK and fact.k is Kind.LINK and fact.kind == "p2p" and fact.op:
            name = fact.link or ""
            if last.get(name) is not fact.op:
                last[name] = fact.op
                yield Move(seen.number, seen.who, name, *_LINK_STATES[fact.op])
        elif fact.k is Kind.STATE and fact.op is Op.STEP and fact.machine == machine:
            yield Move(seen.number, seen.who, fact.key or "", fact.old or ABSENT, fact.new or "")


def _belongs(move: Move, step: Line, names: Names) -> bool:
    """Return whether a step that was seen can be of the entity that a scenario means.

    Each part of the scenario's key is a part of the entity's own, in this order; a node's name in
    front may also say where the entity is. What is left the scenario does not name.
    """
    golden, left = step.key, iter(move.key.split("|"))
    if step.machine == LINK:
        # Its name is the scenario's own: the actors have none for people.
        return names.bind(golden[0], move.key)
    if golden[0].startswith("MN."):
        if move.who.partition("://msg-node.")[2].partition(".")[0] != golden[0][3:]:
            return False
        golden = golden[1:]
    return all(any(_is_same(part, one, names) for one in left) for part in golden)


def _is_same(golden: str, actual: str, names: Names) -> bool:
    if "://" not in golden:
        return golden == actual
    trial = names.copy()
    is_same = trial.unify(golden, actual)
    if is_same:
        names.take(trial)
    return is_same


class Score:
    """One scenario being played, as far as it was seen.

    Attributes:
        names: What the names of the scenario stand for.
    """

    def __init__(self, scenario: Scenario, observer: Observer, names: Names) -> None:
        self.scenario = scenario
        self.observer = observer
        self.names = names
        self._matches: dict[int, Match] = {}
        self._order = Order(scenario)
        self._misses: dict[int, list[Finding]] = {}
        self._faults: dict[int, int] = {}
        self._entities: dict[tuple[str, ...], str] = {}
        self._claimed: dict[str, str] = {}
        self._instances: dict[str, list[Seen]] = {}
        self._read = 0

    @property
    def items(self) -> list[Seen]:
        """The records that belong to the scenario."""
        return self.observer.items[self.observer.start :]

    def passed(self, step: Line) -> None:
        """Note that a fault, a call or time came now; other steps must be seen."""
        now = len(self.observer.items) - 1
        if self.scenario.breaks(step):
            self._faults[step.n] = now
        if step.word in _CUES:
            self._matches[step.n] = Match(now, now)

    def seek(self, step: Line) -> bool:
        """Look for a step among all that was seen; return whether it is there."""
        if step.word in _CUES:
            return True
        if step.word == "ingest":
            return self._is_read(step)
        misses = self._misses[step.n] = []
        last_fault = max((seen for at, seen in self._faults.items() if at <= step.n), default=-1)
        for finding in getattr(self, f"_find_{step.word}")(step):
            if finding.match is None:
                misses.append(finding)
                continue
            if finding.match.first <= last_fault:
                misses.append(Finding(f"before the fault: {finding.text}", _ORDER))
                continue
            other = self._order.conflict(step.n, finding.match, self._matches)
            if other is None:
                self._take(step, finding)
                return True
            misses.append(Finding(f"on the wrong side of step {other}: {finding.text}", _ORDER))
        return False

    def _take(self, step: Line, finding: Finding) -> None:
        self.names.take(finding.names)
        self._matches[step.n] = finding.match
        if step.word == "msg":
            mid = self.observer.items[finding.match.first].fact.mid
            self._claimed[instance_id(step.msg)] = mid
        elif step.word == "state":
            self._entities[step.machine, *step.key] = finding.text

    def difference(self, step: Line) -> Difference:
        """Say what was seen instead of a step that was not found."""
        nearest = sorted(self._misses.get(step.n, ()), key=lambda miss: -miss.likeness)
        texts = [one.text for one in nearest]
        if step.is_lost or step.doubled:
            texts.insert(0, "no such message went by ~wire~, or by hops that are left out (..)")
        return Difference(step.n, show_step(step), tuple(dict.fromkeys(texts))[:_SHOWN])

    # ---- messages

    def _is_read(self, step: Line) -> bool:
        """Read a message as a peer wrote it."""
        try:
            message = normalise(step.raw)
        except BadMessageError as error:
            self._misses[step.n] = [Finding(str(error))]
            return False
        self._misses[step.n] = [Finding(f"it is read as {show_message(message, Names())}")]
        return message == step.norm

    def read(self) -> None:
        """Take in what was seen since the last time."""
        for seen in self.observer.items[self._read :]:
            if seen.fact.k is Kind.MSG and seen.fact.mid is not None:
                self._instances.setdefault(seen.fact.mid, []).append(seen)
        self._read = len(self.observer.items)

    def _instance(self, message: Message) -> list[Seen]:
        """Return what was seen of a message of the scenario."""
        return self._instances.get(self._claimed.get(instance_id(message), ""), [])

    def _find_msg(self, step: Line) -> Iterator[Finding]:
        """Yield what may be the message, the earliest first."""
        self.read()
        needs = needs_of(step, self.scenario)
        known, taken = self._instance(step.msg), set(self._claimed.values())
        for mid, seen in [("", known)] if known else self._instances.items():
            is_old = seen[-1].number < self.observer.start or mid in taken
            if known or (seen[0].fact.type == step.msg.type and not is_old):
                yield self._finding(step, seen, needs)

    def _finding(self, step: Line, seen: list[Seen], needs: list) -> Finding:
        trial = self.names.copy()
        message = _message(seen)
        text = "not seen in full" if message is None else show_message(message, self.names)
        wrong = self._wrong(step.msg, seen, trial)
        if wrong is not None:
            return Finding(f"{wrong[1]}{text}", wrong[0])
        route = follow(seen, needs, trial, self.observer.start)
        if not isinstance(route, Match):
            missing = "" if route is None else f" (no {route})"
            return Finding(f"by another route{missing}: {text}", 4)
        there = _message([one for one in seen if one.number <= route.last])
        is_via = "via" in step.msg.body and there is not None
        if is_via and not holds(list(step.msg.via), list(there.via), trial):
            return Finding(f"with another via: {text}", 4)
        return Finding(text, 0, route, trial)

    def _wrong(self, golden: Message, seen: list[Seen], trial: Names) -> tuple[int, str] | None:
        """Compare all but the route; None: it is the same."""
        fact, message = seen[0].fact, _message(seen)
        sender = golden.to if golden.is_response else golden.from_
        if fact.type != golden.type or not trial.unify(golden.to, fact.to or ""):
            return 0, ""
        if not trial.unify(golden.from_, fact.from_ or ""):
            return 1, ""
        if (fact.code or 0) != golden.code:
            return 3, ""
        if not trial.unify_id(sender, golden.id, fact.id or 0):
            return 2, "with another id: "
        if message is not None and not says_the_same(golden, message, trial):
            return 3, "with another body: "
        return None

    # ---- entities, rows, routes and rulings

    def _find_state(self, step: Line) -> Iterator[Finding]:
        """Yield steps of entities that can be the step: one, or several in a row.

        The entity may pass through states that the scenario does not have of it.
        """
        mine = [one for one in self.scenario.steps if _entity(one) == _entity(step)]
        known = {state for one in mine for state in (one.new, one.old or ABSENT)}
        bound = None if step.old is None else self._entities.get(_entity(step))
        seen = list(moves(self.items, step.machine))
        for place, move in enumerate(seen):
            trial = self.names.copy()
            if (bound is not None and bound != move.key) or not _belongs(move, step, trial):
                continue
            text = f"{step.machine}({'|'.join(step.key)}): {_shown(move.old)} -> {move.new}"
            if move.old != (step.old or ABSENT):
                yield Finding(text, 1)
                continue
            for one in seen[place:]:
                if one.key == move.key and one.new in known:
                    if one.new == step.new:
                        yield Finding(move.key, 0, Match(move.number, one.number), trial)
                    else:
                        yield Finding(text, 3)
                    break
            else:
                yield Finding(text, 3)

    def _found(self, seen: Seen, names: Names, text: str = "") -> Finding:
        return Finding(text, 0, Match(seen.number, seen.number), names)

    def _seen_at(self, step: Line) -> Iterator[tuple[Seen, Fact, Names]]:
        """Yield what was seen in the process where a step is, with names to try."""
        process = self.scenario.process(step.at)
        for seen in self.items:
            if process is None or self.names.actual(process) == seen.who:
                yield seen, seen.fact, self.names.copy()

    def _find_table(self, step: Line) -> Iterator[Finding]:
        """Yield changes of rows that can be the step.

        The content of a row in a scenario that comes may be filled in by a later change of it, and
        one change may be several in the scenario.
        """
        is_there = False
        for seen, fact, trial in self._seen_at(step):
            if fact.k is not Kind.TABLE or fact.table != step.table:
                continue
            val = " ".join(self.names.golden(word) for word in (fact.val or "").split(" "))
            text = f"{fact.table} {fact.op}: {self.names.golden(fact.key or '')} = {val}"
            if not trial.unify(step.key, fact.key or ""):
                yield Finding(text, 1)
                continue
            is_there = fact.op is Op.ADD or (is_there and fact.op is Op.UPD)
            is_it = fact.op == step.op or (step.op == "add" and is_there)
            if is_it and self._row_holds(step, fact.val or "", trial):
                yield self._found(seen, trial)
            else:
                yield Finding(text, 3)

    def _row_holds(self, step: Line, val: str, names: Names) -> bool:
        """Return whether a row has the fields of the scenario; other fields may be anything.

        Direct links have status, address and entities; a listener is a place; any other row
        names an address, perhaps behind a mark for people (`foreign@...`).
        """
        if isinstance(step.val, dict):
            return holds(step.val, _link_row(step.val, val, names), names)
        if not isinstance(step.val, str) or step.table != "listeners":
            wanted = step.val.rpartition("@")[2] if isinstance(step.val, str) else step.val
            return wanted is None or holds(wanted, val, names)
        try:
            listener = self.scenario.listener(read_place(step.val))
        except ValueError:
            # Words for people, such as the components that pass it on.
            listener = None
        return bool(val) if listener is None else is_named(listener, val, names)

    def _find_resolve(self, step: Line) -> Iterator[Finding]:
        """Yield answers of a registry that can be the step.

        A bus keeps the routes that it was given: that it gives a message to the stub says the same.
        That no route is known is seen when the search begins, or when a router answers 404 in
        place of the address.
        """
        for seen, fact, trial in self._seen_at(step):
            subject = fact.from_ if fact.op is Op.SYNTH else fact.to
            is_search = fact.k is Kind.RESOLVE
            if not (is_search or fact.op in {Op.SYNTH, Op.XMIT}) or not trial.unify(
                step.to, subject or ""
            ):
                continue
            if step.result is None:
                is_404 = fact.op is Op.SYNTH and fact.code == Code.NOT_FOUND
                is_it = is_404 or (is_search and fact.result is None)
            else:
                there = fact.result if is_search else fact.stub if fact.op is Op.XMIT else None
                is_it = trial.unify(step.result, there or "")
            if is_it:
                yield self._found(seen, trial)
            elif is_search and fact.op is Op.DONE:
                yield Finding(f"{step.to} => {self.names.golden(fact.result or 'none')}", 3)

    def _find_authz(self, step: Line) -> Iterator[Finding]:
        """Yield rulings on a message that can be the step.

        A message that is denied by a check before the policy is asked is denied, too.
        """
        mid = self._claimed.get(instance_id(self.scenario.step(step.ref).msg))
        for seen, fact, trial in self._seen_at(step):
            if mid is None or fact.mid != mid:
                continue
            is_denied = fact.k is Kind.MSG and fact.op is Op.DENY and step.decision == "deny"
            is_ruling = fact.k is Kind.AUTHZ
            if is_denied or (is_ruling and fact.decision == step.decision):
                yield self._found(seen, trial)
            elif is_ruling:
                yield Finding(f"{fact.decision}, {fact.why or 'no reason given'}", 3)

    # ---- contradictions

    def contradiction(self) -> Difference | None:
        """Find the first thing seen that the scenario rules out, though it does not have it."""
        self.read()
        number, seen = next(self._contradictions(), (0, ""))
        step = self.scenario.step(number)
        text = "nothing of the kind" if step is None else f"after {show_step(step)}: nothing else"
        return Difference(number, text, (seen,)) if seen else None

    def _contradictions(self) -> Iterator[tuple[int, str]]:
        """Yield what speaks against a scenario: the number of a step, and what was seen."""
        for seen in self.items:
            fact = seen.fact
            if fact.k is Kind.STATE and fact.op is Op.REFUSED:
                text = f"{fact.machine}({fact.key}): {fact.cause} in {fact.old} is not declared"
                yield self._step_before(seen.number), text
        for _, number, text in sorted(self._missing()):
            yield number, text
        yield from self._second_answers()
        for step in self.scenario.messages():
            if step.n in self._matches:
                for text in self._objections(step, self._instance(step.msg)):
                    yield step.n, text

    def _step_before(self, number: int) -> int:
        """Return the step that was seen last before something; 0 if none was."""
        known = [(one.last, step) for step, one in self._matches.items() if one.last <= number]
        return max(known, default=(0, 0))[1]

    def _missing(self) -> Iterator[tuple[int, int, str]]:
        """Yield steps that the scenario lacks: where they were seen, and behind which step."""
        matches, fences = self._matches, [0]
        ended = max((one.last for one in matches.values()), default=0)
        if self.scenario.steps[-1].word == "time":
            ended = len(self.observer.items)
        for entity, actual in self._entities.items():
            mine = [one.n for one in self.scenario.steps if _entity(one) == entity]
            spans = [matches[number] for number in mine if number in matches]
            for move in moves(self.items, entity[0]):
                at = move.number
                is_listed = any(span.first <= at <= span.last for span in spans)
                begun = min(span.first for span in spans)
                if move.key != actual or not begun < at < ended or is_listed:
                    continue
                before = [number for number in mine if matches[number].last < at]
                fences = [
                    one.n
                    for one in self.scenario.steps
                    if one.word in {"fault", "time"} and one.n in matches
                    if matches[one.n].last < at
                ]
                text = f"{entity[0]}({'|'.join(entity[1:])}): {move.old} -> {move.new}"
                yield at, max([0, *before[-1:], *fences]), text

    def _second_answers(self) -> Iterator[tuple[int, str]]:
        """Yield answers given to the requester although a final one was given before."""
        lost = {seen.fact.mid for seen in self.items if seen.fact.reason == LOST}
        known: dict[str, tuple[str, int]] = {}
        numbers = {actual: golden for golden, actual in self._claimed.items()}
        for seen in self.items:
            fact = seen.fact
            is_final = fact.k is Kind.MSG and (fact.code or 0) >= FIRST_FINAL
            if not is_final or fact.op not in _GIVEN or None in {fact.ref, fact.mid}:
                continue
            if fact.mid in lost:
                continue
            mid, number = known.setdefault(fact.ref, (fact.mid, seen.number))
            if mid != fact.mid and mid in numbers:
                sender = self.names.golden(fact.from_ or "")
                mine = [
                    one.n
                    for one in self.scenario.messages()
                    if instance_id(one.msg) == numbers[mid]
                ]
                at = mine[-1] if mine else self._step_before(number)
                yield at, f"a second final answer: {fact.code} from {sender}"

    def _objections(self, step: Line, instance: list[Seen]) -> Iterator[str]:
        """Yield what was seen of a message, and is not as its step says."""
        if not instance:
            return
        known = set(self._claimed.values())
        for seen in self.items if step.event else ():
            fact = seen.fact
            if fact.ref == instance[0].fact.mid and fact.op in _GIVEN and fact.mid not in known:
                yield f"it was answered: {fact.code}"
        mid = instance_id(step.msg)
        same = [one for one in self.scenario.messages() if instance_id(one.msg) == mid]
        may_drop = any(
            one.drop or one.deliver_to is not None or self.scenario.denied_at(one.n) for one in same
        )
        for seen in () if may_drop else instance:
            fact = seen.fact
            # What a creator says of its child comes back to its runtime (C-85).
            is_home = parent_of(fact.to or "") is not None and seen.who == instance[0].who
            is_echo = is_home and fact.reason == DropReason.LOOP
            if fact.op is Op.DROP and fact.reason != DropReason.DUPLICATE and not is_echo:
                yield f"it was dropped: {fact.reason}"
        if step.deliver_to is not None:
            receivers = self._receivers(instance)
            for one in receivers:
                if one not in step.deliver_to:
                    yield f"it was delivered to {one}"
            for one in step.deliver_to:
                if one not in receivers:
                    yield f"it was not delivered to {one}"

    def _receivers(self, instance: list[Seen]) -> list[str]:
        """Return to whom a message was delivered in runtimes, but for stubs that pass it on."""
        relays = {f"minibus:{seen.fact.stub}" for seen in instance if seen.fact.op is Op.XMIT}
        homes = {one for one in self.observer.processes if not one.startswith("domain://")}
        given = {
            seen.fact.listener
            for seen in instance
            if seen.fact.op is Op.DELIVER and seen.actor == "bus" and seen.who in homes
        }
        listeners = sorted(one for one in given - relays if one is not None)
        return [self.names.golden(one.removeprefix("minibus:")) for one in listeners]


def _entity(step: Line) -> tuple[str, ...]:
    return (step.machine, *step.key) if step.word == "state" else ()


def _shown(old: str) -> str:
    return "nothing" if old == ABSENT else old


def _message(seen: list[Seen]) -> Message | None:
    """Return a message as it was last seen in full; None if it never was."""
    return next((one.message for one in reversed(seen) if one.message is not None), None)


def _link_row(expected: JsonObject, val: str, names: Names) -> JsonObject:
    """Return what a row of direct links has; its entities are in the order of the scenario."""
    status, url, *entities = val.split(" ")
    order = [names.actual(one) for one in expected.get("entities") or () if isinstance(one, str)]
    entities.sort(key=lambda one: order.index(one) if one in order else len(order))
    listed = [one for one in entities if one]
    return {"status": status, "url": None if url == "None" else url, "entities": listed}
