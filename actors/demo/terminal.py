"""The demonstration on a terminal, in colours."""

from typing import Final, final

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from actors.demo.line import Line, What
from actors.demo.show import Show

__all__ = ["TerminalShow"]

_COLOURS: Final = {"node": "yellow", "alice": "cyan", "bob": "magenta", "demo": "green"}
_STYLES: Final = {
    What.DETAIL: "dim",
    What.NOTE: "bold",
    What.FIGURES: "bold",
    What.VERDICT: "bold green",
    What.DONE: "bold",
}


@final
class TerminalShow(Show):
    """One coloured line for each line; a long one goes on below its own beginning."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    @override
    def line(self, line: Line, act: int) -> None:
        if line.what is What.ACT:
            self._console.print(Text(f"\n{act}  {line.text}", style="bold underline"))
            return
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_column(width=2)
        row.add_column(width=6)
        row.add_column(overflow="fold")
        who = Text(line.who, style=_COLOURS.get(line.who, ""))
        row.add_row("", who, Text(line.text, style=_STYLES.get(line.what, "")))
        self._console.print(row)
