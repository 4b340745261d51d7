"""The output of commands: nothing that others chose commands the terminal that shows it."""

import click

from specs.plain_text import one_line


def echo(*lines: str, err: bool = False) -> None:
    """Print lines, in which others may have chosen parts; all output of commands goes here.

    Args:
        lines: The lines; a line break in one of them is spelt out.
        err: Whether they go to standard error.
    """
    click.echo("\n".join(map(one_line, lines)), err=err)
