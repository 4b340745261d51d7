"""Where a runtime that is started by a command runs its hyperties."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, unique
from functools import partial
from pathlib import Path
from typing import TypeAlias

from actors.cli.command_error import CommandError, ExitCode
from actors.commands.runtime.loading import crashed, load_hyperty
from actors.kit.supervision.crash import Crash
from actors.pipe.errors import RoomError
from actors.pipe.process import process_rooms
from actors.pipe.spawn import Spawn
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.isolation.hyperty import HypertyCode
from actors.runtime.runtime import Runtime
from specs.errors import ProtoflyError

__all__ = ["Deploy", "Housing", "housed"]

Deploy: TypeAlias = Callable[[Runtime, str], Awaitable[str]]
"""Has a hyperty run in a runtime, by a name; returns its address."""


@unique
class Housing(Enum):
    """Where hyperties run."""

    NURSERY = "nursery"
    """In this process: a crash or a wait is no matter of others, a loop without an await is."""

    PROCESS = "process"
    """Each in a sandbox process of its own."""


def housed(hyperties: Mapping[str, str], housing: Housing) -> dict[str, Deploy]:
    """Return what deploys each hyperty, given as `module:Class` by name.

    Raises:
        CommandError: One is not there; of those in processes that shows when they start.
    """
    if housing is Housing.NURSERY:
        return {
            name: partial(_deploy, where, load_hyperty(where)) for name, where in hyperties.items()
        }
    rooms = process_rooms(str(Path(one).resolve()) for one in sys.path)
    codes = {name: HypertyCode(where) for name, where in hyperties.items()}
    return {name: partial(_deploy_apart, code, rooms) for name, code in codes.items()}


async def _deploy(where: str, made: type[Hyperty], runtime: Runtime, name: str) -> str:
    url = ""
    with Crash() as crash:
        url = await runtime.deploy(name, made)
    if crash.error is None:
        return url
    if isinstance(crash.error, ProtoflyError):
        raise crash.error
    raise crashed(where, crash.error) from crash.error


async def _deploy_apart(code: HypertyCode, rooms: Spawn, runtime: Runtime, name: str) -> str:
    try:
        return await runtime.deploy_apart(name, code, rooms)
    except RoomError as exc:
        raise CommandError(
            f"cannot run {code.where} in a sandbox: {exc.reason}; correct --hyperty, or run it "
            "in this process with --sandbox nursery",
            ExitCode.CONFIGURATION,
        ) from exc
