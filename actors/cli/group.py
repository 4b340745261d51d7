"""Groups of commands: they know names and summaries, and import the command that is called."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

import click
from typing_extensions import override

from actors.modules import import_name
from fsm.commands.parameters import HELP_OPTIONS
from specs.errors import ProtoflyError
from specs.jsonvalue import one_line

# The exit statuses of commands, and the error that ends one with a sentence.


class ExitCode(IntEnum):
    """Exit statuses, the same for all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    REFUSED = 4
    CANNOT_CONNECT = 5
    TIMEOUT = 6
    INTERRUPTED = 130


class CommandError(ProtoflyError):
    """A sentence for the user of a command: the failure, its cause, and what to do."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.CONFIGURATION) -> None:
        super().__init__(sentence)
        self.code = code


@contextmanager
def advise_on(
    *kinds: type[Exception], advice: str, what: str = "", code: ExitCode = ExitCode.CONFIGURATION
) -> Iterator[None]:
    """Turn errors into a sentence with advice.

    Args:
        kinds: The errors.
        advice: What to do.
        what: What cannot be done, before the reason alone; empty: the error says it.
        code: The exit status.

    Raises:
        CommandError: It was one of these errors.
    """
    try:
        yield
    except kinds as exc:
        if what:
            reason = getattr(exc, "strerror", None) or getattr(exc, "reason", None)
            what = f"{what}: {reason or exc}"
        raise CommandError(f"{what or exc}; {advice}", code) from exc


# The output of commands: nothing that others chose commands the terminal that shows it.


def echo(*lines: str, err: bool = False) -> None:
    """Print lines, in which others may have chosen parts; all output of commands goes here.

    Args:
        lines: The lines; a line break in one of them is spelt out.
        err: Whether they go to standard error.
    """
    click.echo("\n".join(map(one_line, lines)), err=err)


SUMMARIES: Final[Mapping[str, str]] = {
    "bench": "Measure requests between two runtimes by a node.",
    "completion": "Print the script by which a shell completes commands and options.",
    "config": "Show the options in force and where they come from; check a file.",
    "dev": "Run a node, two runtimes and hyperties under development, reloaded on change.",
    "find": "Find hyperties and data objects, and follow what is found.",
    "fsm": "Look at the declared state machines, and judge runs by them.",
    "node": "Run the message node of a domain.",
    "observe": "Follow a data object: its value and changes as JSON lines.",
    "policy": "Check policy files, and explain their decisions.",
    "release": "Give names of runtimes back to a node.",
    "report": "Report a data object that lines of the standard input change.",
    "request": "Send one request to an address or a user's hyperty and print the answer.",
    "runtime": "Run a hyperty runtime.",
    "send": "Send events to a hyperty.",
    "spark": "Judge traces of any size by all claims, with Spark.",
    "stub": "Sign, publish and check descriptors of stubs.",
    "token": "Make keys and login tokens for development.",
    "top": "Show sessions, messages a second, drops and queues of a node.",
}
"""Commands and what `--help` says of them."""

_ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "fsm": ("fsm.__main__", "cli"),
    "node": ("actors.commands.node.command", "command"),
    "spark": ("spark.__main__", "main"),
}
"""Commands that are not the `command` of the module with their name; two are programs, too."""


def command_of(name: str) -> click.Command:
    """Import a command that there is."""
    module, name = _ELSEWHERE.get(name, (f"actors.commands.{name}", "command"))
    command = import_name(module, name)
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}:{name} is no command")
    return command


SETTINGS: Final = {
    "auto_envvar_prefix": "PROTOFLY",
    **HELP_OPTIONS,
    "show_default": True,
}
"""The settings of `click` for all commands."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question about the known word that is most like another; empty: none is like it.

    Args:
        word: The unknown word.
        known: The known words.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for what is wrong

    close = get_close_matches(word, [*known], 1)
    return f"did you mean {close[0]!r}?" if close else ""


class OrderedGroup(click.Group):
    """Lists its commands in the order of their declaration, and suggests one for a wrong name."""

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name in known or name.startswith("-"):
            return super().resolve_command(ctx, args)
        asked = did_you_mean(name, known)
        why = f"No such command {name!r}. {asked[:1].upper()}{asked[1:]}"
        raise click.UsageError(why.rstrip(), ctx)

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class CommandGroup(OrderedGroup):
    """Finds a command by its name, in the module that `command_of` imports."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(cmd_name) if cmd_name in SUMMARIES else None

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
