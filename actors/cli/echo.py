"""The output of commands: nothing that others chose commands the terminal that shows it."""

import click

from specs.plain_text import visible

__all__ = ["echo"]


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, in which others may have chosen parts; all output of commands goes here.

    Args:
        text: The text; line breaks in it are ours.
        err: Whether it goes to standard error.
        nl: Whether the line ends with it.
    """
    click.echo(visible(text), err=err, nl=nl)
