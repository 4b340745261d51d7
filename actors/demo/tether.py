"""Runs a command that ends when whoever started this is gone.

`python -m actors.demo.tether COMMAND...` exits with the command's status; the end of
stdin, or SIGTERM, ends the command first.
"""

import sys
from functools import partial

import trio

from actors.cli.failure import run
from actors.demo.leash import leashed, until_told

__all__ = ["main"]


def main(command: list[str]) -> int:
    """Run the command; return its status."""
    statuses: list[int] = []

    async def work() -> None:
        ended = await trio.run_process(command, stdin=b"", check=False)
        statuses.append(ended.returncode)

    code = run(partial(leashed, partial(until_told, work)))
    return statuses[0] if statuses else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
