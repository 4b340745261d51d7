"""What commands say on stdout: one JSON object per line."""

import os

import click
import orjson

__all__ = ["say", "say_ready"]


def say(schema: str, **fields: object) -> None:
    """Print one object of a schema, at once."""
    line = orjson.dumps({"schema": f"protofly.{schema}/1", **fields})
    click.echo(line)


def say_ready(role: str, domain: str, **fields: object) -> None:
    """Print the ready line: the first line of a process that serves."""
    say("ready", role=role, domain=domain, **fields, pid=os.getpid())
