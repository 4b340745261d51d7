"""The play of the demonstration: its processes, what Alice does, and what the judges say.

The message node and Bob are processes of `python -m actors`; Alice is this process. What is shown
of all three is read from their traces while they write them.
"""

import contextlib
import heapq
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

import actors
from actors.hyperties import Caller
from examples.demo.story import Line, Narrator, Record, Story

DOMAIN = "a.example"
NODE = f"node.{DOMAIN}"
_LEASH = (sys.executable, "-m", "examples.demo.leash", sys.executable, "-m")

_OPEN = ("--allow-legacy", "--message-rate", "1000000", "--identity-rate", "1000000")

_PATIENCE = 60.0
"""Seconds for an act."""

_TRACED = 0.5
"""Seconds after which a record is in its file: it is written every 0.2 s."""

_LOOK = 0.1
_WARM_UP = 50
_IN_FLIGHT = 200
"""Requests before the link is cut, and after it is back."""

_WORKERS = 8


class DemoError(Exception):
    """The demonstration did not go as it should."""


class Traces:
    """Reads what the processes write, and tells it in the order of time."""

    def __init__(self, folder: Path, story: Story, narrators: dict[str, Narrator]) -> None:
        self._folder = folder
        self._story = story
        self._narrators = narrators
        self._others = set(folder.glob("run=*"))
        self._read: dict[Path, int] = {}
        self._waiting: list[tuple[int, int, Line]] = []
        self._count = 0
        self.sent = Counter[bool]()
        """Requests of Alice to Bob: by a direct link (True), and by the node."""
        self.seen = Counter[tuple[str, str]]()
        """Processes and events that were read."""
        self.is_paused = False

    @property
    def runs(self) -> list[Path]:
        """The runs of this demonstration."""
        return sorted(set(self._folder.glob("run=*")) - self._others)

    def note(self, text: str, event: str = "", style: str = "note", who: str = "alice") -> None:
        """Tell something that is in no trace."""
        self._keep(time.time_ns(), Line(who, text, event, style))

    def _keep(self, when: int, line: Line) -> None:
        self._count += 1
        heapq.heappush(self._waiting, (when, self._count, line))

    async def tell_on(self) -> None:
        """Tell what is written, until cancelled; nothing while it is paused."""
        while True:
            await trio.sleep(_LOOK)
            if not self.is_paused:
                self.tell(time.time_ns() - int(_TRACED * 1e9))

    def tell(self, until: int | None = None) -> None:
        """Tell what happened until a time (nanoseconds); None: all that is known."""
        self.read()
        while self._waiting and (until is None or self._waiting[0][0] < until):
            self._story.take(heapq.heappop(self._waiting)[2])

    def read(self) -> None:
        """Read what was written since the last time."""
        for run in self.runs:
            for part in sorted(run.glob("node=*/part-*.jsonl")):
                for record in self._records(part):
                    self._note(record)

    def _records(self, part: Path) -> Iterator[Record]:
        with part.open("rb") as file:
            file.seek(self._read.get(part, 0))
            *lines, rest = file.read().split(b"\n")
            self._read[part] = file.tell() - len(rest)
        for line in lines:
            yield json.loads(line)

    def _note(self, record: Record) -> None:
        narrator = self._narrators[record["node"]]
        if record["k"] == "msg" and record["op"] == "xmit" and record["to"] == narrator.target:
            self.sent["/p2p" in record["stub"]] += 1
        line = narrator.line(record)
        if line is not None:
            self.seen[line.who, line.event] += 1
            self._keep(record["wall_ns"], line)


async def _start(*command: str) -> trio.Process:
    """Start a program of the package; it ends when its stdin does, so it never outlives us."""
    return await trio.lowlevel.open_process(
        (*_LEASH, *command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for this process, which ends the others in order
    )


async def _end(process: trio.Process) -> int:
    """End a program in order, or else by force; return its exit status."""
    assert process.stdin is not None
    with trio.move_on_after(_PATIENCE, shield=True):
        await process.stdin.aclose()
        return await process.wait()
    os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()


@contextlib.asynccontextmanager
async def open_child(who: str, *command: str) -> AsyncIterator[dict[str, Any]]:
    """Run a command of `python -m actors` while inside; yield what it says when it is ready.

    Raises:
        DemoError: It ended before its time, or with an error.
    """
    process = await _start("actors", *command)

    async def watch() -> None:
        raise _ended(who, await process.wait())

    async with trio.open_nursery() as nursery:
        try:
            ready = await _first_line(process)
            if not ready:
                raise _ended(who, await process.wait())
            nursery.start_soon(watch)
            yield json.loads(ready)
        finally:
            nursery.cancel_scope.cancel()
            status = await _end(process)
    if status:
        raise _ended(who, status)


def _ended(who: str, status: int) -> DemoError:
    return DemoError(f"{who} ended with status {status}; its own messages say why")


async def _first_line(process: trio.Process) -> bytes:
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n") and (piece := await process.stdout.receive_some()):
        line += piece
    return line


def cut_links(node: str) -> int:
    """Shut down the sockets of this process that lead to other runtimes; return how many.

    Args:
        node: URL of the node: the connection to it stays.
    """
    port, count = urlsplit(node).port, 0
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as copy:
                name, here = copy.getpeername(), copy.getsockname()
                is_unix = copy.family == socket.AF_UNIX
                # Neither the connection to the node, nor the unnamed pairs of this program.
                if (name or here) if is_unix else name[1] != port:
                    copy.shutdown(socket.SHUT_RDWR)
                    count += 1
    return count


@attrs.frozen
class Latencies:
    """What requests took, in microseconds, and how many a second brought."""

    count: int
    p50: float
    p99: float
    per_second: float


class Alice:
    """Sends numbered requests to Bob, by any route or by the node only.

    Args:
        caller: The hyperty that sends.
        bob: Address of the hyperty that counts them.
        traces: Says by which route they went.
    """

    def __init__(self, caller: Caller, bob: str, traces: Traces) -> None:
        self._caller = caller
        self._bob = bob
        self.traces = traces
        self.numbered = 0
        self.answered = 0
        self._refused = Counter[int]()

    async def ask(self) -> None:
        """Send a numbered request by any route."""
        self.numbered += 1
        self._answered(await self._caller.request(self._bob, {"number": self.numbered}))

    async def ask_by_node(self) -> None:
        """Send a numbered request by the message node, link or no link."""
        self.numbered += 1
        body: actors.JsonObject = {"value": {"number": self.numbered}, "p2p": False}
        self._answered(await self._caller.ask(self._bob, actors.MessageType.CREATE, body))

    def _answered(self, answer: actors.Message) -> None:
        if answer.code == actors.Code.OK:
            self.answered += 1
        else:
            self._refused[answer.code] += 1

    async def sent(self) -> Counter[bool]:
        """Return by which routes all requests so far went, once the trace says so."""

        def are_traced() -> bool:
            self.traces.read()
            return self.traces.sent.total() >= self.numbered

        await until(are_traced, "requests are missing in the trace")
        return self.traces.sent.copy()

    async def measure(self, ask: Callable[[], Awaitable[None]], count: int) -> Latencies:
        """Send requests one after the other."""
        for _ in range(_WARM_UP):
            await ask()
        self.traces.is_paused = True
        times, began = [], time.perf_counter()
        for _ in range(count):
            start = time.perf_counter()
            await ask()
            times.append((time.perf_counter() - start) * 1e6)
        total = time.perf_counter() - began
        self.traces.is_paused = False
        times.sort()
        return Latencies(count, times[count // 2], times[count * 99 // 100], count / total)

    async def ask_until(self, enough: Callable[[], bool]) -> None:
        """Ask from several tasks at once until it is enough; all answers are awaited."""

        async def work() -> None:
            while not enough():
                await self.ask()

        async with trio.open_nursery() as nursery:
            for _ in range(_WORKERS):
                nursery.start_soon(work)

    async def reckon(self) -> None:
        """Compare what Bob counted with what was sent.

        Raises:
            DemoError: A request was lost, doubled or refused.
        """
        counted = (await self._caller.request(self._bob, "report")).value
        if self._refused or counted != {"distinct": self.numbered, "doubled": 0}:
            raise DemoError(
                f"{self.numbered} requests were sent and bob counted {counted}; "
                f"refused by code: {dict(self._refused)}"
            )


@attrs.frozen
class Play:
    """A performance.

    Attributes:
        kinds: Transports that the link may use, best first.
        requests: Requests to measure by each route.
        folder: For traces and report.
        story: Shows what happens.
    """

    kinds: tuple[actors.Kind, ...]
    requests: int
    folder: Path
    story: Story

    async def perform(self) -> dict[str, Any]:
        """Act all parts; return all figures and the verdict of the judges.

        Raises:
            DemoError: Something was otherwise than the story says.
        """
        names = {NODE: "node", "bob": "bob", "alice": "alice"}
        narrators = {node: Narrator(who) for node, who in names.items()}
        traces = Traces(self.folder, self.story, narrators)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(traces.tell_on)
                figures = await self._act(traces, narrators["alice"])
                nursery.cancel_scope.cancel()
        finally:
            traces.tell()
        verdict = await judge(traces.runs, self.folder, self.story)
        return {"figures": figures, "verdict": verdict, "traces": str(self.folder)}

    async def _act_over(self) -> None:
        with trio.move_on_after(_PATIENCE):
            await self.story.act_over()
            return
        raise DemoError(f"this act lacks, after {_PATIENCE:.0f} seconds: {self.story.missing}")

    async def _act(self, traces: Traces, narrator: Narrator) -> dict[str, Any]:
        """Act all but the verdict; the stack holds what runs, the node lowest."""
        note, folder = traces.note, str(self.folder)
        traced = ("--domain", DOMAIN, "--trace", folder, "--trace-bodies")
        async with contextlib.AsyncExitStack() as stack:
            self.story.begin()
            kept = stack.enter_context(TemporaryDirectory(prefix="protofly-registry-"))
            node = ("node", *traced, "--registry", f"{kept}/registry.sqlite", *_OPEN)
            url = (await stack.enter_async_context(open_child("node", *node)))["url"]
            note(f"ready: {url}", "ready", who="node")
            linked = ("--name", "bob", "--node", url, "--p2p", ",".join(self.kinds))
            bob = ("runtime", *traced, *linked, "--hyperty", "counter=actors.hyperties:Counter")
            ready = await stack.enter_async_context(open_child("bob", *bob))
            narrator.target = ready["hyperties"]["counter"]
            note(f"ready: {narrator.target}", "ready", who="bob")
            config = actors.RuntimeConfig(domain=DOMAIN, name="alice", node=url, kinds=self.kinds)
            opened = actors.open_trace(self.folder, "alice", bodies=True)
            trace = await stack.enter_async_context(opened)
            runtime = await stack.enter_async_context(actors.open_runtime(config, trace=trace))
            caller = Caller()
            await runtime.deploy(lambda: caller, "caller")
            note(f"ready: {caller.url}", "ready")
            await self._act_over()
            figures = await self._talk(Alice(caller, narrator.target, traces), url, note)
            self.story.begin()
            note("unregisters, takes its routes down, closes its session", "leaves")
        await self._act_over()
        return figures

    async def _talk(self, alice: Alice, node: str, note: Callable[..., None]) -> dict[str, Any]:
        self.story.begin()
        await alice.ask()
        _check(alice.answered, "bob did not answer the first request")
        note("the first request is answered by the node", "answered")
        await self._act_over()
        self.story.begin()
        _check((await alice.sent())[False], "the first request did not go by the node")
        await self._act_over()
        self.story.begin()
        by_node, by_link = await self._compare(alice, note)
        await self._act_over()
        self.story.begin()
        fell_back = await _cut(alice, node, note)
        await alice.reckon()
        note(f"{alice.numbered:,} numbered requests: none lost, none doubled", "reckoned")
        await self._act_over()
        return {
            "node": attrs.asdict(by_node),
            "link": attrs.asdict(by_link),
            "numbered": alice.numbered,
            "fell_back": fell_back,
        }

    async def _compare(
        self, alice: Alice, note: Callable[..., None]
    ) -> tuple[Latencies, Latencies]:
        before = await alice.sent()
        by_node = await alice.measure(alice.ask_by_node, self.requests)
        between = await alice.sent()
        _check(between[True] == before[True], "not all requests went by the node")
        note(f"{self.requests:,} requests by the node are measured", "measured-by-node")
        by_link = await alice.measure(alice.ask, self.requests)
        _check((await alice.sent())[False] == between[False], "not all requests went by the link")
        note(f"{self.requests:,} requests by the link are measured", "measured-by-link")
        note(f"{'requests':>20} {'p50':>11} {'p99':>11}  per second", style="row")
        for name, figures in (("by the node", by_node), ("by the link", by_link)):
            row = f"{name}  {figures.count:>7,} {figures.p50:>8,.0f} us {figures.p99:>8,.0f} us"
            note(f"{row} {figures.per_second:>11,.0f}", style="row")
        p50, p99 = by_link.p50 / by_node.p50, by_link.p99 / by_node.p99
        rate = by_link.per_second / by_node.per_second
        note(f"link / node {p50:>20.2f} {p99:>11.2f} {rate:>11.2f}", "compared", "row")
        return by_node, by_link


async def _cut(alice: Alice, node: str, note: Callable[..., None]) -> int:
    """Cut the link while requests are under way; return how many went by the node meanwhile."""
    traces, enough = alice.traces, trio.Event()
    before = await alice.sent()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alice.ask_until, enough.is_set)
        goal = before.total() + _IN_FLIGHT
        await until(lambda: alice.answered >= goal, "bob does not answer")
        note("cuts the socket under the link, requests under way", "cut")
        _check(cut_links(node), "there was no socket")
        await until(lambda: traces.seen["alice", "link-back"], "the link did not come back")
        live = traces.sent[True]
        goal = live + _IN_FLIGHT
        await until(lambda: traces.sent[True] >= goal, "no request went by the link again")
        enough.set()
    fell_back = (await alice.sent())[False] - before[False]
    _check(fell_back, "no request fell back to the node")
    note(
        f"{fell_back} requests went by the node meanwhile; traffic is back on the link", "caught-up"
    )
    return fell_back


async def until(reached: Callable[[], object], complaint: str) -> None:
    """Wait for what others write in files. DemoError: it does not come."""
    with trio.move_on_after(_PATIENCE):
        while not reached():  # noqa: ASYNC110 - what others write in files sets no event
            await trio.sleep(_LOOK)
        return
    raise DemoError(complaint)


def _check(holds: object, complaint: str) -> None:
    if not holds:
        raise DemoError(complaint)


_WORST_FIRST = ("violations", "incomplete", "conformant")


async def judge(runs: Sequence[Path], folder: Path, story: Story) -> dict[str, Any]:
    """Have the traces judged by Spark and by `fsm judge`, and show what they say.

    Returns:
        `verdict`, the worse of both; `steps` and `messages`, what each of them said last.

    Raises:
        DemoError: One of them gave no verdict.
    """
    manifest = folder / "manifest.json"
    names = {f"domain://msg-node.{DOMAIN}": NODE}
    names |= {f"hyperty-runtime://{DOMAIN}/{who}": who for who in ("bob", "alice")}
    parties = [{"address": address, "node": node} for address, node in names.items()]
    manifest.write_text(json.dumps({"schema": "protofly.manifest/1", "participants": parties}))
    common = ("--json", "--manifest", str(manifest), *map(str, runs))
    output = await _run_json("spark", "validate", "--report", str(folder / "report"), *common)
    steps = _last(output, "protofly.verdict/1")
    output = await _run_json("fsm", "judge", *common)
    messages = _last(output, "protofly.judgement/1")
    verdict = next(word for word in _WORST_FIRST if word in {steps["verdict"], messages["verdict"]})
    story.begin("The verdict on the three traces")
    text = f"verdict {verdict}: both judges have to say so"
    story.take(Line("demo", text, style="verdict"))
    for text in (*_summary(steps, messages), *_violation_lines(output), *_machines(steps)):
        story.take(Line("demo", text, style="row"))
    return {"verdict": verdict, "steps": steps, "messages": messages}


async def _run_json(*command: str) -> list[dict[str, Any]]:
    """Run a judge; return the objects that it printed."""
    process = await _start(*command)
    assert process.stdout is not None
    try:
        text = b"".join([piece async for piece in process.stdout])
    finally:
        await _end(process)
    return [json.loads(line) for line in text.splitlines()]


def _last(output: list[dict[str, Any]], schema: str) -> dict[str, Any]:
    if not output or output[-1]["schema"] != schema:
        raise DemoError("the traces could not be judged; the messages above say why")
    return output[-1]


def _summary(steps: dict[str, Any], messages: dict[str, Any]) -> Iterator[str]:
    yield (
        f"steps {steps['verdict']}: {len(steps['checked'])} claims checked, "
        f"{steps['violations']} violations; {steps['events']:,} events of "
        f"{steps['entities']:,} entities (python -m spark validate)"
    )
    yield (
        f"messages {messages['verdict']}: {messages['claims']} claims on messages, tables "
        f"and links checked, {messages['findings']} violations (python -m fsm judge)"
    )
    nobody = steps["not_checked"]["by_nobody"]
    yield f"not checked: {len(nobody)} claims that no trace can decide"
    for node in steps["nodes"]:
        yield f"trace of {node['node']}: {node['line']}"


def _violation_lines(output: list[dict[str, Any]]) -> Iterator[str]:
    for finding in output:
        if finding["schema"] == "protofly.broken-claim/1":
            yield f"broken: {finding['text']}; {finding['about']}: expected {finding['expected']}"
        elif finding["schema"] == "protofly.flaw/1":
            yield f"incomplete: {finding.get('file') or finding.get('node')}: {finding['reason']}"


_SHOWN = 3
"""Rows named for each machine; the report names all."""


def _machines(steps: dict[str, Any]) -> Iterator[str]:
    rows = [("machine", "steps", "entities", "declared, but never exercised")]
    for use in steps["machines"]:
        never = list(dict.fromkeys(f"{row['old']} -> {row['new']}" for row in use["never"]))
        more = f" and {len(never) - _SHOWN} more" if len(never) > _SHOWN else ""
        unused = ", ".join(never[:_SHOWN]) + more
        rows.append((use["machine"], str(use["steps"]), str(use["entities"]), unused or "-"))
    width = max(len(name) for name, *_ in rows)
    for name, count, entities, unseen in rows:
        yield f"{name:<{width}}{count:>8}{entities:>10}  {unseen}"
    report = steps["report"]
    yield f"see {report['html']}, and {len(report['drawings'])} drawings beside it"
