"""`python -m actors completion`: the script by which a shell completes the commands."""

import click
from click.shell_completion import get_completion_class

from actors.cli.group import echo


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options of protofly in SHELL.

    For bash: protofly completion bash > ~/.local/share/bash-completion/completions/protofly
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"there is no completion for {shell}")
    root = ctx.find_root()
    script = completion(root.command, {}, "protofly", "_PROTOFLY_COMPLETE").source()
    echo(*script.splitlines())
