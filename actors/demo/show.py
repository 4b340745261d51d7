"""How the demonstration is shown: colours on a terminal, plain text, or JSON lines."""

import sys
from abc import ABC, abstractmethod
from importlib import import_module
from importlib.util import find_spec
from typing import Final, final

import click
import orjson
from typing_extensions import override

from actors.demo.line import SCHEMA, Line, What

__all__ = ["JsonShow", "PlainShow", "Show", "choose_show"]

_TERMINAL: Final = "actors.demo.terminal"
"""Shows colours; needs rich, which is imported only on a terminal."""


class Show(ABC):
    """Where the lines go."""

    @abstractmethod
    def line(self, line: Line, act: int) -> None:
        """Show a line of an act (the first is 1), at once."""


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
        told = {
            "who": line.who,
            "what": line.what,
            "act": act,
            "beat": line.beat,
            "text": line.text,
        }
        click.echo(orjson.dumps({"schema": f"protofly.{SCHEMA}/1", **line.fields, **told}))


def choose_show() -> Show:
    """Return how to show lines to a person: in colours if there are any."""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        return PlainShow()
    show = import_module(_TERMINAL).TerminalShow()
    return show if isinstance(show, Show) else PlainShow()
