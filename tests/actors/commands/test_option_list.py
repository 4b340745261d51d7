"""All options of all commands, in files and the environment too, are those of `options.txt`.

`python -m tests.actors.commands.test_option_list` writes that file: look at what is different.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from actors.cli.group import SETTINGS, SUMMARIES, CommandGroup, command_of

FILE = Path(__file__).with_name("options.txt")


def lines(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    """Yield the help of a command, and the names of its options in a file."""
    settings = {"terminal_width": 100, "max_content_width": 100, **command.context_settings}
    ctx = click.Context(command, parent, name, **settings)
    yield from (f"## {ctx.command_path}", "", ctx.get_help(), "")
    for each in command.params:
        names = " ".join(each.opts)
        yield f"{each.name}: {names}{' repeatable' if each.multiple else ''}"
    yield ""
    if isinstance(command, click.Group):
        for inner in command.list_commands(ctx):
            yield from lines(command.get_command(ctx, inner), inner, ctx)


def page() -> str:
    """Return the page of all commands."""
    root = click.Context(CommandGroup("protofly"), info_name="protofly", **SETTINGS)
    text = "\n".join(line for name in SUMMARIES for line in lines(command_of(name), name, root))
    return f"{text}\n"


def test_the_options_of_all_commands_are_the_listed_ones():
    assert page() == FILE.read_text()


if __name__ == "__main__":
    FILE.write_text(page())
