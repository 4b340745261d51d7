"""Make a scenario file from the trace of a run, which the player can play.

RUN is a directory or file that `--trace` wrote. It must have the traces of all nodes and runtimes
that took part. The scenario has the requests, events and answers of hyperties, their observations,
and the changes of their data objects, each with the way that it took. Traces have no bodies of
hyperties: a request has none in the scenario, an answer has its code, and the nth change sets `t`
to n + 1. A run is refused if it has what no line of a scenario can express: direct links, links
that broke, policies that denied a message, requests to parts of the framework, children,
invitations, several nodes of one domain. Exits with 0, with 1 if the replay differs, with 2 if RUN
is refused.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import attrs
import click
import orjson

from fsm.judge.claims.records import expects_answer, is_answer
from fsm.judge.trace_files import BadLine, Gaps, TraceFileError, parts_in
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import (
    domain_of,
    is_below,
    last_segment,
    message_node,
    runtime_of,
    scheme_of,
)
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.reply_code import FIRST_FINAL, DropReason
from specs.trace import ABSENT, Kind, Op
from tests.conformance.play.__main__ import passes
from tests.conformance.play.script import MACROS, ScriptError, read_script

_HYPERTY: Final = "hyperty"
_RUNTIME: Final = "hyperty-runtime"
_OBSERVING: Final = frozenset({"subscribe", "unsubscribe"})
_OF_OBJECTS: Final = frozenset({*_OBSERVING, "forward", "response", "update", "delete"})
_PARTS: Final = {"sm": "sm", "address-allocation": "alloc", "registry": "registry", "ua": "ua"}


class RecordError(ProtoflyError):
    """A run cannot be written as a scenario; `str` says what of it cannot."""


@attrs.define(eq=False)
class _Process:
    """What one node or runtime recorded.

    Attributes:
        address: The runtime, or the message node.
        stubs: The nodes to which its stubs lead.
        links: The runtimes to which the links of a node lead.
        messages: Records of messages, by instance.
    """

    address: str
    lines: list[TraceLine]
    stubs: dict[str, str] = attrs.field(factory=dict)
    links: dict[str, str] = attrs.field(factory=dict)
    messages: defaultdict[str, list[TraceLine]] = attrs.field(
        factory=lambda: defaultdict[str, list[TraceLine]](list)
    )


class _Leg(NamedTuple):
    """A place on the way of a message, and what carried the message there."""

    carrier: str
    place: str


_Way = tuple[_Leg, ...]


# ---- what was recorded


def read_run(run: Path) -> list[_Process]:
    """Read the traces of all processes of a run.

    Raises:
        RecordError: They are damaged, or have what a scenario cannot express.
        TraceFileError: There is no trace.
    """
    lines: defaultdict[tuple[str, str], list[TraceLine]] = defaultdict(list)
    for part in parts_in([run]):
        for line in part.lines():
            if isinstance(line, BadLine):
                raise RecordError(f"{line.file}, line {line.line}: {line.reason}")
            lines[line.run, line.node].append(line)
    processes: dict[str, _Process] = {}
    for (run_id, node), mine in lines.items():
        mine.sort(key=lambda line: line.ln)
        gaps = Gaps(run_id, node)
        for line in mine:
            gaps.take(line)
        gap = next((gap for gap in gaps.missing() if not gap.is_end), None)
        if gap is not None:
            raise RecordError(f"the trace of {node} is damaged at record {gap.ln}: {gap.reason}")
        process = _process(node, mine)
        if process.address in processes:
            raise RecordError(f"{process.address} has several runs here: name the traces of one")
        processes[process.address] = process
    return list(processes.values())


def _process(node: str, lines: list[TraceLine]) -> _Process:
    rows = [line for line in lines if line.k == Kind.TABLE]
    components = (line.key or "" for line in rows if line.table == "components")
    first = next(components, "")
    is_runtime = scheme_of(first) == _RUNTIME
    if not is_runtime and scheme_of(first) != "domain":
        raise RecordError(f"{node} is neither a node nor a runtime: it has no components")
    process = _Process(runtime_of(first) if is_runtime else message_node(domain_of(first)), lines)
    if any(line.table in {"members", "homes"} for line in rows):
        raise RecordError(f"{process.address} is one of several nodes of its domain")
    for line in rows:
        if line.table == "stubs" and line.val:
            process.stubs[line.val.split(" ")[0]] = message_node(line.key or "")
    for line in lines:
        if line.k == Kind.LINK and line.kind == "p2p":
            raise RecordError(f"{process.address} had a direct link: record a run without them")
        if line.k == Kind.SESSION:
            process.links[line.link or ""] = line.b or ""
        if line.k == Kind.STATE and line.machine == "session" and line.new == "detached":
            raise RecordError(f"the link of a session broke ({line.key}): write that by hand")
        if line.k == Kind.MSG:
            process.messages[line.mid or ""].append(line)
    return process


@attrs.frozen(eq=False)
class _Message:
    """A message of the run, with the way to each receiver; `start` orders the messages."""

    first: TraceLine
    home: _Process
    start: tuple[int, int]
    ways: tuple[_Way, ...]


class _Run:
    """The processes of a run, and the messages of its hyperties and objects."""

    def __init__(self, processes: Sequence[_Process]) -> None:
        self.processes = {one.address: one for one in processes}
        self.homes = dict(self._find_homes())
        self.objects: dict[str, str] = {}
        for process in processes:
            for line in process.lines:
                if line.k == Kind.OBJ and line.op == Op.WRITE and line.by in self.homes:
                    self.objects.setdefault(line.key or "", line.by or "")

    def _find_homes(self) -> Iterator[tuple[str, str]]:
        for process in self.processes.values():
            for line in process.lines:
                is_row = line.k == Kind.TABLE and line.table == "components" and line.op == Op.ADD
                if is_row and scheme_of(line.key or "") == _HYPERTY and line.key == line.val:
                    yield line.key or "", process.address

    def object_of(self, address: str) -> str:
        """Return the data object that an address belongs to; empty: none of the run."""
        return next((one for one in self.objects if is_below(address, one)), "")

    def messages(self) -> list[_Message]:
        """Return the messages that a scenario expresses, in their order."""
        starts: dict[str, tuple[int, int]] = {}
        found = []
        for home, first in self._firsts():
            mid, start = first.mid or "", (first.wall_ns, 0)
            if first.ref in starts:
                # An answer comes after its request, whatever the clocks say.
                after, number = starts[first.ref]
                start = max(start, (after, number + 1))
            starts[mid] = start
            if self._is_told(first, home):
                ways = () if self._is_for_manager(first, home) else self._ways(mid, home)
                found.append(_Message(first, home, start, ways))
        return list(self._without_departures(sorted(found, key=lambda message: message.start)))

    def _without_departures(self, messages: Iterable[_Message]) -> Iterator[_Message]:
        """Leave out what sync managers end by themselves, as when a runtime leaves."""
        ended: set[tuple[str, str | None]] = set()
        left_out: set[str | None] = set()
        for message in messages:
            first, what = message.first, (message.home.address, message.first.type)
            if first.by in self.homes:
                ended.add(what)
            elif first.ref is not None and first.ref in left_out:
                continue
            elif first.type in {"unsubscribe", "delete"} and what not in ended:
                left_out.add(first.mid)
                continue
            yield message

    def _firsts(self) -> list[tuple[_Process, TraceLine]]:
        """Return where each message began, requests before answers."""
        found = []
        for process in self.processes.values():
            for lines in process.messages.values():
                is_first = lines[0].op in {Op.SUBMIT, Op.SYNTH}
                if is_first and lines[0].by not in process.stubs:
                    found.append((process, lines[0]))
        return sorted(found, key=lambda one: (is_answer(one[1]), one[1].wall_ns, one[1].ln))

    def _is_told(self, first: TraceLine, home: _Process) -> bool:
        """Return whether a message is one of hyperties or of a data object."""
        from_, to = first.from_ or "", first.to or ""
        hyperties = (scheme_of(from_) == _HYPERTY, scheme_of(to) == _HYPERTY)
        objects = (self.object_of(from_), self.object_of(to))
        if "/children/" in from_ + to and any(objects) and first.by in self.homes:
            raise RecordError(f"{first.by} writes a child of {max(objects)}")
        if all(hyperties) and last_segment(to) != "registration":
            return True
        if any(objects):
            ends = {"/observers", "/registration", "/children/resources"}
            is_other = any(f"/{last_segment(one)}" in ends for one in (from_, to))
            is_framework = {scheme_of(from_), scheme_of(to)} & {"domain"}
            return first.type in _OF_OBJECTS and not is_other and not is_framework
        return first.by in self.homes and not is_answer(first) and self._is_act(first, home)

    def _is_act(self, first: TraceLine, home: _Process) -> bool:
        if first.to != f"{home.address}/sm":
            what = f"{first.by} sends {first.type} to {first.to}"
            raise RecordError(f"{what}: no line of a scenario says that of a hyperty")
        created = (lines[0] for lines in home.messages.values() if lines[0].by == first.by)
        creations = [one for one in created if (one.type, one.to) == ("create", first.to)]
        if len(creations) > sum(by == first.by for by in self.objects.values()):
            raise RecordError(f"{first.by} invites an observer, or an object was refused")
        return first.type in _OBSERVING | {"update", "delete"}

    def _is_for_manager(self, first: TraceLine, home: _Process) -> bool:
        return first.type == "update" and first.to == f"{home.address}/sm"

    # ---- ways

    def _ways(self, mid: str, home: _Process) -> tuple[_Way, ...]:
        first = home.messages[mid][0]
        bus = _Leg(
            "", f"{home.address} bus" if scheme_of(home.address) == _RUNTIME else home.address
        )
        if first.op == Op.SYNTH:
            start: _Way = (bus,)
        else:
            start = (_Leg("", first.by or ""), bus._replace(carrier=">"))
        return tuple(self._follow(mid, home, start, {home.address}))

    def _follow(self, mid: str, at: _Process, way: _Way, known: set[str]) -> Iterator[_Way]:
        """Yield the ways from a process to all receivers behind it."""
        lines = at.messages[mid]
        for line in lines:
            is_refused = line.op == Op.DENY or (
                line.op == Op.DROP and line.reason not in {DropReason.DUPLICATE, DropReason.LOOP}
            )
            if is_refused:
                raise RecordError(f"{at.address} gave up {mid}: {line.reason or 'denied'}")
        ends = list(self._ends(at, lines))
        hyperties = [one for one in ends if one in self.homes]
        yield from ((*way, _Leg(">", one)) for one in hyperties or ends)
        for line in lines:
            if line.op == Op.XMIT:
                yield from self._cross(mid, at, line, way, known)
        if not ends and all(line.op != Op.XMIT for line in lines) and known != {at.address}:
            yield way

    def _ends(self, at: _Process, lines: Sequence[TraceLine]) -> Iterator[str]:
        """Yield the receivers of a message in a runtime."""
        for line in lines:
            listener = (line.listener or "").removeprefix("minibus:")
            if line.actor != "bus" or listener in at.stubs:
                continue
            if line.op == Op.CALLBACK:
                owner = self.object_of(line.to or "")
                yield f"{at.address}/sm" if owner else line.to or ""
            elif line.op == Op.DELIVER:
                yield f"{at.address}/sm" if listener == "sync-manager" else listener

    def _cross(
        self, mid: str, at: _Process, line: TraceLine, way: _Way, known: set[str]
    ) -> Iterator[_Way]:
        """Yield the ways over one link between a runtime and a node."""
        is_node = scheme_of(at.address) != _RUNTIME
        address = at.links.get(line.link or "") if is_node else at.stubs.get(line.stub or "")
        if address is None:
            by = line.stub or line.link
            raise RecordError(f"{at.address} passes {mid} on to another node, by {by}")
        other = self.processes.get(address)
        if other is None:
            raise RecordError(f"{mid} goes from {at.address} to {address}, which has no trace here")
        if other.address in known:
            return
        known.add(other.address)
        if is_node:
            stubs = (one.stub or "" for one in other.messages[mid] if one.op == Op.RCV)
            legs = (_Leg("~wire~", next(stubs, "")), _Leg(">", f"{other.address} bus"))
        else:
            way = (*way, _Leg(">", line.stub or ""))
            legs = (_Leg("~wire~", other.address),)
        yield from self._follow(mid, other, (*way, *legs), known)


# ---- what is written


class _Writer:
    """Writes the lines of a scenario; places have macros, or names that count (`h1`, `r2`)."""

    def __init__(self, run: _Run, name: str) -> None:
        self._run = run
        self._name = name
        self._macros = {url: macro for macro, url in MACROS.items()}
        self._names: dict[str, str] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self._changes: dict[str, int] = {}
        self._open: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._count = 0

    def lines(self) -> Iterator[JsonObject]:
        """Yield all lines; those of what is given come first."""
        messages = self._run.messages()
        if not messages:
            raise RecordError("no hyperty of this run sent anything to a hyperty")
        self._number_messages(messages)
        for line in (*self._given(), *(line for one in messages for line in self._steps(one))):
            yield {"sc": self._name, **line}

    def _number_messages(self, messages: Sequence[_Message]) -> None:
        requests = [one.first for one in messages if not is_answer(one.first)]
        for sender in {one.from_ or "" for one in requests}:
            numbers = sorted({one.id or 0 for one in requests if one.from_ == sender})
            self._ids |= {(sender, one): rank for rank, one in enumerate(numbers, start=1)}

    def _given(self) -> list[JsonObject]:
        run, lines = self._run, list[JsonObject]()
        runtimes = [one for one in run.processes if scheme_of(one) == _RUNTIME]
        nodes = [domain_of(one) for one in run.processes if one not in runtimes]
        if len({domain.partition(".")[0] for domain in nodes}) < len(nodes):
            raise RecordError("two domains begin with the same word, by which places name nodes")
        lines += ({"given": "node", "domain": domain} for domain in nodes)
        kinds = {"r": runtimes, "h": list(run.homes), "o": list(run.objects)}
        for letter, addresses in kinds.items():
            for number, address in enumerate(addresses, start=1):
                if address not in self._macros:
                    self._names[address] = f"{letter}{number}"
        for runtime in runtimes:
            if message_node(domain_of(runtime)) not in run.processes:
                raise RecordError(f"there is no trace of the node of {domain_of(runtime)}")
            lines.append({"given": "runtime", "is": runtime})
        for hyperty, home in run.homes.items():
            lines.append({"given": "hyperty", "is": hyperty, "in": self._place(home)})
        for object_, reporter in run.objects.items():
            by, schema = self._place(reporter), scheme_of(object_)
            lines.append({"given": "object", "is": object_, "by": by, "schema": schema})
        lines += ({"given": "name", "is": name, "for": url} for url, name in self._names.items())
        return lines

    def _place(self, place: str) -> str:
        """Return the name of a place, which is an address, perhaps with the word `bus`."""
        address, _, part = place.partition(" ")
        if part:
            return f"{self._place(address)}.{part}"
        if address in self._macros and scheme_of(address) != "domain":
            return self._macros[address]
        if address in self._names:
            return self._names[address]
        if scheme_of(address) == "domain":
            return f"MN.{domain_of(address).partition('.')[0]}"
        above, _, last = address.rpartition("/")
        if not above or above.endswith("/"):
            raise RecordError(f"{address} is no participant of which there is a trace")
        dot = "." if last in _PARTS and scheme_of(above) == _RUNTIME else "/"
        return f"{self._place(above)}{dot}{_PARTS.get(last, last) if dot == '.' else last}"

    def _steps(self, message: _Message) -> Iterator[JsonObject]:
        first, home = message.first, message.home
        manager = f"{home.address}/sm"
        if first.to == manager and first.type == "update":
            self._changes[first.by or ""] = self._changes.get(first.by or "", 0) + 1
            return
        yield from self._act(first, manager)
        if first.type == "forward":
            # The subscription in its body is not recorded; the answer shows that it came.
            return
        before: _Way = ()
        for number, way in enumerate(message.ways):
            shared = 0
            while number and shared < len(way) - 2 and way[: shared + 1] == before[: shared + 1]:
                shared += 1
            legs = way[max(shared - 1, 0) :]
            hop = "".join(
                (leg.carrier if place else "") + self._place(leg.place)
                for place, leg in enumerate(legs)
            )
            self._count += 1
            marks = {"dup": True} if number else {}
            if not is_answer(first) and not expects_answer(first):
                marks["event"] = True
            if first.op == Op.SYNTH:
                marks["synthetic"] = True
            words = self._message(first, home)
            yield {"n": self._count, "k": "msg", "hop": hop, "msg": words, **marks}
            before = way

    def _act(self, first: TraceLine, manager: str) -> Iterator[JsonObject]:
        """Yield what an application does that makes a message."""
        from_, to, by = first.from_ or "", first.to or "", first.by or ""
        reporter = self._run.objects.get(from_)
        if by in self._run.homes and is_answer(first):
            waiting = self._open[to, from_]
            if waiting[:1] != [first.ref or ""]:
                raise RecordError(f"{from_} answers {first.ref} before an older request of {to}")
            if (first.code or 0) >= FIRST_FINAL:
                waiting.pop(0)
            yield {"do": "answer", "by": self._place(by)}
        elif by in self._run.homes and to == manager and first.type == "subscribe":
            object_ = self._place(self._object(first))
            yield {"do": "observe", "by": self._place(by), "object": object_}
        elif by in self._run.homes:
            yield {"do": "send", "by": self._place(by)}
        elif first.type == "update" and reporter is not None:
            yield {"do": "change", "by": self._place(reporter)}
        if not is_answer(first) and scheme_of(to) == _HYPERTY and expects_answer(first):
            self._open[from_, to].append(first.mid or "")

    def _message(self, first: TraceLine, home: _Process) -> JsonObject:
        from_, to, body = first.from_ or "", first.to or "", dict[str, object]()
        sender = to if is_answer(first) else from_
        if is_answer(first):
            body = {"code": first.code}
        elif to == f"{home.address}/sm":
            body = {"resource": self._object(first)}
        elif first.type == "update" and from_ in self._run.objects:
            body = {"attribute": "t", "value": self._changes[self._run.objects[from_]] + 1}
        number = self._ids.get((sender, first.id or 0), first.id)
        return {"id": number, "type": first.type, "from": from_, "to": to, "body": body}

    def _object(self, first: TraceLine) -> str:
        """Return the object that a request of a hyperty to its sync manager is about."""
        lines = self._run.processes[self._run.homes[first.by or ""]].lines
        for line in reversed(lines[: lines.index(first)]):
            object_, _, observer = (line.key or "").partition("|")
            is_copy = line.machine == "observer_copy" and observer == first.by
            begins_or_ends = (
                line.old == ABSENT if first.type == "subscribe" else line.new == "deleted"
            )
            if is_copy and begins_or_ends:
                return object_
        for line in lines[lines.index(first) + 1 :]:
            object_ = self._run.object_of(line.to or "") if line.op == Op.SUBMIT else ""
            if object_ and line.from_ == first.to and line.type == first.type:
                return object_
            is_deleted = line.k == Kind.OBJ and line.op == Op.DEL and line.by == first.by
            if is_deleted and first.type == "delete":
                return line.key or ""
        raise RecordError(f"the trace does not say which object {first.by} means ({first.type})")


def scenario_lines(run: Path, name: str) -> list[bytes]:
    """Return the lines of a scenario that does what was done in a run.

    Raises:
        RecordError: The run has what a scenario cannot express.
        TraceFileError: There is no trace.
    """
    return [orjson.dumps(line) for line in _Writer(_Run(read_run(run)), name).lines()]


@click.command(help=__doc__)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file.")
@click.option("--name", default="recorded", show_default=True, help="Name of the scenario.")
@click.option("--replay", is_flag=True, help="Play the scenario; say where it differs.")
def main(run: Path, output: Path, name: str, *, replay: bool) -> None:
    try:
        output.write_bytes(b"\n".join([*scenario_lines(run, name), b""]))
        (scenario,) = read_script(output)
    except (RecordError, TraceFileError, ScriptError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{output}: {len(scenario.steps)} steps")
    sys.exit(replay and not passes(scenario))


if __name__ == "__main__":
    main()
