"""Shows lines under the heading of their act, and keeps account of what is still to be seen."""

from collections import deque
from typing import final

from actors.demo.act import ACTS, Beat, first_act
from actors.demo.line import Line, What
from actors.demo.show import Show

__all__ = ["Director"]


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
        """Return who has not yet shown what in this act; None if nobody."""
        return next(((who, beats[0]) for who, beats in self._open if beats), None)

    def release(self) -> None:
        """Show what is kept, whatever its act: nothing more will come."""
        while self._waiting:
            self._show.line(self._waiting.popleft(), self._act + 1)

    def _is_early(self, line: Line) -> bool:
        if line.beat is None:
            return False
        act = first_act(line.who, line.beat)
        awaits_cue = self._cue not in {None, (line.who, line.beat)}
        return act > self._act or (act == self._act and awaits_cue) or self._is_ahead(line)

    def _is_ahead(self, line: Line) -> bool:
        """Say whether a process that has shown its part shows the next act's already.

        Lines of others may still be on their way: a link is lost in two acts.
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
