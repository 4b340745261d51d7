"""A NATS server with JetStream, as a process of its own."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.ports import free_port

PROGRAM = shutil.which("nats-server", path=str(Path(sys.executable).parent))

needs_server = pytest.mark.skipif(PROGRAM is None, reason="nats-server is not installed")


class NatsServer:
    """A server that can be killed, stopped and started again, on the same port."""

    def __init__(self, folder: Path, *options: str, has_stream: bool = True) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        streams = ("-js", "-sd", str(folder / "js")) if has_stream else ()
        self._options = (*streams, *options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Number of its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, unless it runs; it listens a moment later."""
        if self._process is None:
            command = [str(PROGRAM), "-a", "127.0.0.1", "-p", str(self.port), *self._options]
            self._process = subprocess.Popen(  # noqa: S603 - ours
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

    def pause(self) -> None:
        """Let it do nothing, from when this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Take `pause` back."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        """Remove all that it has stored."""
        shutil.rmtree(self.folder / "js", ignore_errors=True)


@contextmanager
def run_server(*options: str, has_stream: bool = True) -> Iterator[NatsServer]:
    """Run a server with command-line options, with JetStream or without."""
    with TemporaryDirectory() as folder:
        server = NatsServer(Path(folder), *options, has_stream=has_stream)
        server.start()
        try:
            yield server
        finally:
            server.kill()
