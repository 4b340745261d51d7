"""JSON lines from the standard input of a command."""

import os
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
import trio

from actors.cli.group import CommandError, ExitCode
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_MESSAGE_BYTES

_PIECE: Final = 65536
"""Bytes that are read at a time."""


async def for_each_line(act: Callable[[Json], Awaitable[object]]) -> None:
    """Call a function with the value of each line of the standard input, except empty ones.

    Args:
        act: The function; the next line waits for its end.

    If cancelled, a thread still waits for input until the process ends.

    Raises:
        CommandError: A line is no JSON, or too long.
    """
    number, rest = 0, b""
    # `sys.stdin` has a lock, which a thread that waits would hold at the end of the process.
    while piece := await trio.to_thread.run_sync(os.read, 0, _PIECE, abandon_on_cancel=True):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            number += 1
            if line.strip():
                await act(_value(line, number))
        if len(rest) > MAX_MESSAGE_BYTES:
            _value(rest, number + 1)
    if rest.strip():
        await act(_value(rest, number + 1))


def _value(line: bytes, number: int) -> Json:
    if len(line) > MAX_MESSAGE_BYTES:
        why = f"line {number} is longer than {MAX_MESSAGE_BYTES} bytes"
        raise CommandError(why, ExitCode.USAGE)
    try:
        value: Json = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise CommandError(f"line {number} is no JSON: {exc}", ExitCode.USAGE) from exc
    return value
