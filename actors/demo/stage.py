"""The demonstration from start to end: its child processes, and the verdict of both judges.

The child processes are started, listened to, and never left behind. Each line of output stands
under the heading of its act: in colours on a terminal, as plain text, or as JSON lines.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias, final

import attrs
import click
import orjson
import trio

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.echo import echo
from actors.demo.script import ACTS, SCHEMA, Beat, Line, What, first_act, read_line
from fsm.judge.manifest import Manifest, Participant
from specs.addresses.address import RUNTIME_SCHEME, message_node
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import DRAIN_TIMEOUT, GOODBYE_TIMEOUT
from specs.plain_text import visible

__all__ = [
    "Director",
    "Play",
    "Show",
    "choose_show",
    "judge",
    "judged_by_both",
    "open_children",
    "perform",
    "show_coloured",
    "show_json",
    "show_plain",
]

_COLOURS: Final = {"node": "yellow", "alice": "cyan", "bob": "magenta", "demo": "green"}
_INDENT: Final = 10
"""Columns before the text of a line."""

_NARROWEST: Final = 20
"""Columns a text has at least, however narrow the terminal."""

_BOLD: Final = frozenset({What.NOTE, What.FIGURES, What.VERDICT, What.DONE})


Show: TypeAlias = Callable[[Line, int], None]
"""Shows a line of an act (the first is 1), at once."""


def show_plain(line: Line, act: int) -> None:
    """Print one line of text, below the heading of its act.

    Args:
        line: The line.
        act: Number of the act, from 1.
    """
    if line.what is What.ACT:
        echo(f"{act}  {line.text}")
    else:
        echo(f"   {line.who:<6} {line.text}")


def show_json(line: Line, act: int) -> None:
    """Print one object.

    Args:
        line: The line.
        act: Number of the act, from 1.
    """
    fields = {"who": line.who, "what": line.what, "act": act, "beat": line.beat, "text": line.text}
    echo(orjson.dumps({"schema": f"protofly.{SCHEMA}/1", **line.fields, **fields}).decode())


def show_coloured(line: Line, act: int) -> None:
    """Print one coloured line; a long one goes on below its own beginning.

    Args:
        line: The line.
        act: Number of the act, from 1.
    """
    plain = visible(line.text)
    if line.what is What.ACT:
        echo()
        click.secho(f"{act}  {plain}", bold=True, underline=True)
        return
    who = click.style(f"{line.who:<6}", fg=_COLOURS.get(line.who))
    width = max(shutil.get_terminal_size().columns - _INDENT, _NARROWEST)
    first, *more = textwrap.wrap(plain, width, break_on_hyphens=False) or [""]
    click.echo(f"   {who} {_styled(line.what, first)}")
    for text in more:
        click.echo(" " * _INDENT + _styled(line.what, text))


def _styled(what: What, text: str) -> str:
    colour = "green" if what is What.VERDICT else None
    return click.style(text, fg=colour, bold=what in _BOLD or None, dim=what is What.DETAIL or None)


def choose_show() -> Show:
    """Return how to show lines to a person: in colours on a terminal."""
    return show_coloured if sys.stdout.isatty() else show_plain


@final
class Director:
    """Opens the acts one after the other, each when all of the one before was seen.

    The processes do not wait for each other's lines: what comes before its act is
    kept until the act opens.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._act = -1
        self._waiting: deque[Line] = deque()
        self._open: list[tuple[str, deque[Beat]]] = []
        self._cue: tuple[str, Beat] | None = None
        self._next_act()

    def line(self, line: Line) -> None:
        """Show a line now, or when its act opens."""
        if self._is_early(line):
            self._waiting.append(line)
            return
        self._show(line, self._act + 1)
        self._count(line)
        if (line.who, line.beat) == self._cue:
            self._cue = None
            self._go_on()
        while self.missing() is None and self._act < len(ACTS) - 1:
            self._next_act()

    def missing(self) -> tuple[str, Beat] | None:
        """Return a process and a line that this act still lacks; None if complete."""
        return next(((who, beats[0]) for who, beats in self._open if beats), None)

    def release(self) -> None:
        """Show what is kept, of any act: no more lines will come."""
        while self._waiting:
            self._show(self._waiting.popleft(), self._act + 1)

    def _is_early(self, line: Line) -> bool:
        if line.beat is None:
            return False
        act = first_act(line.who, line.beat)
        awaits_cue = self._cue not in {None, (line.who, line.beat)}
        return act > self._act or (act == self._act and awaits_cue) or self._is_ahead(line)

    def _is_ahead(self, line: Line) -> bool:
        """Return whether a process that has shown its part shows the next act's already.

        Lines of others may still be in transit: a link is lost in two acts.
        """
        now, *later = ACTS[self._act :]
        return (
            not any(beats for who, beats in self._open if who == line.who)
            and line.beat in now.beats.get(line.who, ())
            and any(line.beat in act.beats.get(line.who, ()) for act in later)
        )

    def _count(self, line: Line) -> None:
        for who, awaited in self._open:
            if who == line.who and awaited and awaited[0] is line.beat:
                awaited.popleft()
                return

    def _next_act(self) -> None:
        self._act += 1
        act = ACTS[self._act]
        shown = (*act.beats.items(), *act.beside.items())
        self._open = [(who, deque(beats)) for who, beats in shown]
        self._cue = act.cue
        self._show(Line("demo", What.ACT, act.title), self._act + 1)
        self._go_on()

    def _go_on(self) -> None:
        """Take up what was kept, in the order it came."""
        waiting, self._waiting = self._waiting, deque()
        for line in waiting:
            self.line(line)


CONFORMANT: Final = "conformant"
_WORST_FIRST: Final = ("violations", "incomplete", CONFORMANT)
_SHOWN: Final = 3
"""Edges named per machine; the report names all."""

_STEPS: Final = "protofly.verdict/1"
_MESSAGES: Final = "protofly.judgement/1"
_BROKEN: Final = "protofly.broken-claim/1"
_FLAW: Final = "protofly.flaw/1"
_WATCHED: Final = (sys.executable, "-m", "actors.demo.child", "run", sys.executable, "-m")


async def judge(
    runs: Sequence[Path], manifest: Path, report: Path, director: Director
) -> JsonObject:
    """Have the runs judged by Spark and by `fsm judge`, each in a process of its own.

    Args:
        runs: The runs.
        manifest: The participants of the runs.
        report: Directory for the report.
        director: Shows what the judges say.

    Returns:
        `verdict`, the worse of both; `steps` and `messages`, what each of them said last.

    Raises:
        CommandError: There came no verdict.
    """
    places = [str(run) for run in runs]
    options = ("--json", "--manifest", str(manifest))
    steps = await _said("spark", "validate", *options, "--report", str(report), *places)
    messages = await _said("fsm", "judge", *options, *places)
    return judged_by_both(steps, messages, director)


def judged_by_both(
    steps: list[JsonObject], messages: list[JsonObject], director: Director
) -> JsonObject:
    """Show what both judges printed.

    Args:
        steps: Objects that `spark validate --json` printed.
        messages: Objects that `fsm judge --json` printed.
        director: Shows what the judges say.

    Returns:
        As of `judge`.

    Raises:
        CommandError: One of them is no verdict.
    """
    both = _last(steps, _STEPS), _last(messages, _MESSAGES)
    verdict = next(word for word in _WORST_FIRST if word in {one["verdict"] for one in both})
    for line in [*_heads(verdict, *both), *map(_line, _found(messages)), *_lines(both[0])]:
        director.line(line)
    return {"verdict": verdict, "steps": both[0], "messages": both[1]}


async def _said(*command: str) -> list[JsonObject]:
    """Run a judge; return the objects that it printed."""
    with _lifeline() as stdin:
        done = await trio.run_process(
            (*_WATCHED, *command), capture_stdout=True, check=False, stdin=stdin
        )
    try:
        said: list[Json] = [orjson.loads(line) for line in done.stdout.splitlines()]
    except orjson.JSONDecodeError:
        said = []
    return [one for one in said if isinstance(one, dict)]


def _last(said: list[JsonObject], schema: str) -> JsonObject:
    """Return the last object, which has to be a verdict.

    Raises:
        CommandError: It is none.
    """
    if not said or said[-1].get("schema") != schema:
        raise CommandError(
            "the traces could not be judged; the messages above say why", ExitCode.FAILED
        )
    return said[-1]


@contextmanager
def _lifeline() -> Iterator[int]:
    """Make a stdin that ends when we do."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _heads(verdict: str, steps: JsonObject, messages: JsonObject) -> list[Line]:
    """Print the verdict, the claims that each judge checked, and those that none did."""
    unchecked = steps.get("not_checked")
    nobody = unchecked.get("by_nobody") if isinstance(unchecked, dict) else None
    return [
        Line("demo", What.VERDICT, f"verdict {verdict}: both judges have to say so"),
        _line(
            f"steps {steps['verdict']}: {len(_names(steps.get('checked')))} claims checked, "
            f"{steps['violations']} violations; {steps['events']:,} events of "
            f"{steps['entities']:,} entities (python -m spark validate)"
        ),
        _line(
            f"messages {messages['verdict']}: {messages['claims']} claims on messages, tables "
            f"and links checked, {messages['findings']} violations (python -m fsm judge)"
        ),
        _line(f"not checked: {len(_names(nobody))} claims that no trace can decide"),
    ]


def _names(names: Json) -> list[Json]:
    return names if isinstance(names, list) else []


def _found(messages: list[JsonObject]) -> Iterator[str]:
    """Return the broken claims and the missing records that `fsm judge` reports."""
    for one in messages:
        if one.get("schema") == _BROKEN:
            yield f"broken: {one['text']}; {one['about']}: expected {one['expected']}"
        elif one.get("schema") == _FLAW:
            where = f"{one['file']}:{one['line']}" if "file" in one else one.get("node")
            yield f"incomplete: {where}: {one['reason']}"


def _lines(verdict: JsonObject) -> list[Line]:
    lines = [_line(f"trace of {one['node']}: {one['line']}") for one in _rows(verdict, "nodes")]
    machines = [("machine", "steps", "entities", "declared, but never exercised")]
    machines += [_machine(one) for one in _rows(verdict, "machines")]
    width = max(len(name) for name, *_ in machines)
    lines += [
        _line(f"{name:<{width}}{steps:>8}{entities:>10}  {never}")
        for name, steps, entities, never in machines
    ]
    return lines + [_line(f"see {place}") for place in _places(verdict)]


def _line(text: str) -> Line:
    return Line("demo", What.ROW, text)


def _machine(one: JsonObject) -> tuple[str, str, str, str]:
    """Return what was seen of a machine, as the columns of a table."""
    never = list(dict.fromkeys(f"{row['old']} -> {row['new']}" for row in _rows(one, "never")))
    more = len(never) - _SHOWN
    shown = ", ".join(never[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return str(one["machine"]), str(one["steps"]), str(one["entities"]), shown or "-"


def _rows(verdict: JsonObject, key: str) -> list[JsonObject]:
    rows = verdict.get(key)
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []


def _places(verdict: JsonObject) -> list[str]:
    report = verdict.get("report")
    if not isinstance(report, dict):
        return []
    drawings = report.get("drawings")
    count = len(drawings) if isinstance(drawings, dict) else 0
    return [f"{report.get('html')}, and {count} drawings beside it"]


_READ: Final = 65_536
"""Bytes read from a child's stdout at once (ours)."""


@final
@attrs.frozen
class _Ended:
    """A child's stdout came to its end."""

    who: str


@final
class Children:
    """The children that are running, and what they say."""

    def __init__(self, nursery: trio.Nursery, director: Director) -> None:
        self._nursery = nursery
        self._director = director
        self._processes: dict[str, trio.Process] = {}
        self._said, self._heard = trio.open_memory_channel[Line | _Ended](0)

    async def start(self, who: str, command: Sequence[str]) -> None:
        """Start a child in a session of its own, so that Ctrl-C reaches only us.

        Its stdin is a pipe that ends when we do: by that it knows that we are gone.

        Args:
            who: Name of the process.
            command: Program and arguments.
        """
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._processes[who] = process
        self._nursery.start_soon(self._listen, who, process)

    async def _listen(self, who: str, process: trio.Process) -> None:
        if process.stdout is None:
            return
        rest = b""
        async for piece in process.stdout:
            *lines, rest = (rest + piece).split(b"\n")
            for raw in lines:
                line = read_line(who, raw)
                if line is not None:
                    await self._said.send(line)
        await self._said.send(_Ended(who))

    async def expect(self, who: str, what: What) -> Line:
        """Show what the children say until one says what is expected.

        Args:
            who: Name of the process.
            what: Kind of the expected line.

        Raises:
            CommandError: A child ended before.
        """
        while True:
            heard = await self._heard.receive()
            if isinstance(heard, _Ended):
                raise await self._died(heard.who)
            self._director.line(heard)
            if (heard.who, heard.what) == (who, what):
                return heard

    async def _died(self, who: str) -> CommandError:
        status = await self._processes[who].wait()
        return CommandError(
            f"{who} ended with status {status} before its time; its own messages say why",
            ExitCode.FAILED,
        )

    async def stop(self, who: str) -> None:
        """Stop a child, and show its output until it has ended.

        Raises:
            CommandError: It did not go in good order.
        """
        process = self._processes[who]
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        await self.ended(who)

    async def ended(self, who: str) -> None:
        """Show what the children say until one has gone by itself.

        Raises:
            CommandError: It did not go in good order, or another one went.
        """
        while True:
            heard = await self._heard.receive()
            if isinstance(heard, Line):
                self._director.line(heard)
            elif heard.who == who:
                break
            else:
                raise await self._died(heard.who)
        if await self._processes[who].wait() != 0:
            raise await self._died(who)

    async def end_all(self) -> None:
        """Leave no child behind: ask, wait in bounded time, then kill."""
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self._send(signal.SIGTERM)
        await self._send(signal.SIGKILL)

    async def _send(self, number: signal.Signals) -> None:
        running = [one for one in self._processes.values() if one.poll() is None]
        for process in running:
            process.send_signal(number)
        for process in running:
            await process.wait()


@asynccontextmanager
async def open_children(director: Director) -> AsyncIterator[Children]:
    """Run children while inside; on leaving, however that happens, all are gone."""
    async with trio.open_nursery() as nursery:
        children = Children(nursery, director)
        try:
            yield children
        finally:
            with trio.move_on_after(DRAIN_TIMEOUT + GOODBYE_TIMEOUT, shield=True):
                await children.end_all()
        nursery.cancel_scope.cancel()


DOMAIN: Final = "a.example"

_MANIFEST: Final = Manifest(
    (
        Participant(message_node(DOMAIN), f"node.{DOMAIN}"),
        *(Participant(f"{RUNTIME_SCHEME}://{DOMAIN}/{who}", who) for who in ("bob", "alice")),
    )
)
"""The participants of the demonstration."""

_CHILD: Final = (sys.executable, "-m", "actors.demo.child")

_ENVELOPE: Final = frozenset({"schema", "who", "what", "text", "beat"})
"""Fields of a line that are no figures."""


@final
@attrs.frozen(kw_only=True)
class Play:
    """The settings of a demonstration.

    Attributes:
        kinds: Transports the link may use, best first, as on the command line.
        monitor: Whether the processes judge themselves while they run.
    """

    kinds: str
    requests: int
    traces: Path
    monitor: bool = False


async def perform(play: Play, show: Show) -> tuple[ExitCode, JsonObject]:
    """Act all parts; return how it ended, and every figure.

    Args:
        play: The parts to perform.
        show: Prints the lines.

    Raises:
        CommandError: A child ended before its time, or did not do what it should.
    """
    director = Director(show)
    before = _runs(play)
    manifest = play.traces / "manifest.json"
    await trio.Path(manifest).write_text(_MANIFEST.text())
    try:
        with TemporaryDirectory(prefix="protofly-registry-") as registry:
            async with open_children(director) as children:
                figures = await _acts(play, children, Path(registry) / "registry.sqlite")
        _check(director)
    finally:
        director.release()
    runs = sorted(_runs(play) - before)
    verdict = await judge(runs, manifest, play.traces / "report", director)
    code = ExitCode.OK if verdict.get("verdict") == CONFORMANT else ExitCode.FAILED
    return code, {"figures": figures, "verdict": verdict, "traces": str(play.traces)}


def _runs(play: Play) -> set[Path]:
    """Return the runs that are traced so far, of this demonstration and of others."""
    return set(play.traces.glob("run=*"))


async def _acts(play: Play, children: Children, registry: Path) -> JsonObject:
    trace = ("--trace", str(play.traces), *(("--monitor",) if play.monitor else ()))
    domain = ("--domain", DOMAIN)
    kept = ("--registry", str(registry))
    await children.start("node", (*_CHILD, "node", *domain, *kept, *trace))
    url = str((await children.expect("node", What.READY)).fields["url"])

    common = (*domain, "--node", url, "--p2p", play.kinds, *trace)
    await children.start("bob", (*_CHILD, "bob", *common))
    bob = str((await children.expect("bob", What.READY)).fields["url"])

    asked = ("--to", bob, "--requests", str(play.requests))
    await children.start("alice", (*_CHILD, "alice", *common, *asked))
    figures = await children.expect("alice", What.FIGURES)
    await children.expect("alice", What.DONE)
    await children.ended("alice")
    await children.stop("bob")
    await children.stop("node")
    return {k: v for k, v in figures.fields.items() if k not in _ENVELOPE}


def _check(director: Director) -> None:
    """Everything before the verdict must have been seen.

    Raises:
        CommandError: Something was not.
    """
    missing = director.missing()
    if missing is not None:
        who, beat = missing
        raise CommandError(
            f"the demonstration failed: {who} never showed {beat!r}, or not when it should; "
            "run it again with --trace DIR and look there",
            ExitCode.FAILED,
        )
