"""How the demonstration is shown: colours on a terminal, plain text, or JSON lines."""

import sys
from abc import ABC, abstractmethod
from importlib import import_module
from importlib.util import find_spec
from typing import Final, final

import click
import orjson
from typing_extensions import override

from actors.demo.line import Line

__all__ = ["JsonShow", "PlainShow", "Show", "choose_show"]

_TERMINAL: Final = "actors.demo.terminal"
"""Shows colours; needs rich, which is imported only on a terminal."""


class Show(ABC):
    """Where the lines go."""

    @abstractmethod
    def line(self, line: Line) -> None:
        """Show a line, at once."""


@final
class PlainShow(Show):
    """One line of text for each line."""

    @override
    def line(self, line: Line) -> None:
        click.echo(f"{line.who:<6} {line.text}")


@final
class JsonShow(Show):
    """One object for each line."""

    @override
    def line(self, line: Line) -> None:
        click.echo(orjson.dumps({**line.fields, "who": line.who, "text": line.text}))


def choose_show() -> Show:
    """Return how to show lines to a person: in colours if there are any."""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        return PlainShow()
    show = import_module(_TERMINAL).TerminalShow()
    return show if isinstance(show, Show) else PlainShow()
