"""The output of the demonstration: each line under the heading of its act.

In colours on a terminal, as plain text, or as JSON lines.
"""

import shutil
import sys
import textwrap
from abc import ABC, abstractmethod
from collections import deque
from typing import Final, final

import click
import orjson
from typing_extensions import override

from actors.demo.script import ACTS, SCHEMA, Beat, Line, What, first_act

__all__ = ["Director", "JsonShow", "PlainShow", "Show", "TerminalShow", "choose_show"]

_COLOURS: Final = {"node": "yellow", "alice": "cyan", "bob": "magenta", "demo": "green"}
_INDENT: Final = 10
"""Columns before the text of a line."""

_NARROWEST: Final = 20
"""Columns a text has at least, however narrow the terminal."""

_BOLD: Final = frozenset({What.NOTE, What.FIGURES, What.VERDICT, What.DONE})


class Show(ABC):
    """A form of output."""

    @abstractmethod
    def line(self, line: Line, act: int) -> None:
        """Show a line of an act (the first is 1), at once.

        Args:
            line: The line.
            act: Number of the act, from 1.
        """


@final
class PlainShow(Show):
    """One line of text for each line, below the headings of the acts."""

    @override
    def line(self, line: Line, act: int) -> None:
        if line.what is What.ACT:
            click.echo(f"{act}  {line.text}")
        else:
            click.echo(f"   {line.who:<6} {line.text}")


@final
class JsonShow(Show):
    """One object for each line."""

    @override
    def line(self, line: Line, act: int) -> None:
        fields = {
            "who": line.who,
            "what": line.what,
            "act": act,
            "beat": line.beat,
            "text": line.text,
        }
        click.echo(orjson.dumps({"schema": f"protofly.{SCHEMA}/1", **line.fields, **fields}))


@final
class TerminalShow(Show):
    """One coloured line for each line; a long one goes on below its own beginning."""

    @override
    def line(self, line: Line, act: int) -> None:
        if line.what is What.ACT:
            click.echo()
            click.secho(f"{act}  {line.text}", bold=True, underline=True)
            return
        who = click.style(f"{line.who:<6}", fg=_COLOURS.get(line.who))
        width = max(shutil.get_terminal_size().columns - _INDENT, _NARROWEST)
        first, *more = textwrap.wrap(line.text, width, break_on_hyphens=False) or [""]
        click.echo(f"   {who} {_styled(line.what, first)}")
        for text in more:
            click.echo(" " * _INDENT + _styled(line.what, text))


def _styled(what: What, text: str) -> str:
    colour = "green" if what is What.VERDICT else None
    return click.style(text, fg=colour, bold=what in _BOLD or None, dim=what is What.DETAIL or None)


def choose_show() -> Show:
    """Return how to show lines to a person: in colours on a terminal."""
    return TerminalShow() if sys.stdout.isatty() else PlainShow()


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
        self._show.line(line, self._act + 1)
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
            self._show.line(self._waiting.popleft(), self._act + 1)

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
        self._show.line(Line("demo", What.ACT, act.title), self._act + 1)
        self._go_on()

    def _go_on(self) -> None:
        """Take up what was kept, in the order it came."""
        waiting, self._waiting = self._waiting, deque()
        for line in waiting:
            self.line(line)
