"""`python -m actors token key`: the thumbprint of a runtime's key."""

from pathlib import Path

import click

from actors.cli.group import CommandError, echo
from actors.cli.options import FILE
from actors.keys.key_file import KeyFileError, open_key_file


@click.command("key")
@click.argument("file", type=FILE)
def command(*, file: Path) -> None:
    """Show the thumbprint of the key in FILE, which `runtime --identity FILE` uses.

    A file that does not exist is made, with a new key, and only you can read it. A token that is
    bound to the thumbprint, by `token issue --for-key`, opens sessions for the holder of the key
    only.
    """
    try:
        echo(open_key_file(file).thumbprint)
    except KeyFileError as exc:
        raise CommandError(f"{exc}; name another FILE") from exc
