"""The demonstration on a terminal, in colours."""

from typing import Final, final

from rich.console import Console
from rich.text import Text
from typing_extensions import override

from actors.demo.line import Line, What
from actors.demo.show import Show

__all__ = ["TerminalShow"]

_COLOURS: Final = {"node": "yellow", "alice": "cyan", "bob": "magenta", "demo": "green"}
_STYLES: Final = {What.STEP: "dim", What.FIGURES: "bold", What.VERDICT: "bold", What.DONE: "bold"}


@final
class TerminalShow(Show):
    """One coloured line for each line."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    @override
    def line(self, line: Line) -> None:
        told = Text(f"{line.who:<6} ", style=_COLOURS.get(line.who, ""))
        told.append(line.text, style=_STYLES.get(line.what, ""))
        self._console.print(told)
