"""A message node as a process of its own, for tests that look at it from outside only."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.support.warm import WarmProcess, fork_warm

ROOT = Path(__file__).parents[3]
DOMAIN = "a.ex"
STOP_WITHIN = 10.0

UNHURRIED = (
    "--message-rate", "none", "--identity-rate", "none", "--handshake-rate", "none",
    "--max-malformed", "none", "--max-failed-opens", "none",
    "--max-unauthenticated-per-host", "none",
)  # fmt: skip
"""Options for tests that are quicker than any honest peer, and all come from one host."""


EVERY_FORM = ("--allow-legacy", "--http", "127.0.0.1:0", "--rest")
"""Options for nodes that serve every wire form."""


@attrs.define
class NodeProcess:
    """A node that runs.

    Attributes:
        ready: What it said when it was ready.
        log: What it writes to stderr, as a file.
    """

    process: WarmProcess
    ready: dict[str, str]
    log: Path

    @property
    def urls(self) -> dict[str, str]:
        return self.ready

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def complaints(self) -> list[str]:
        """Lines of the log that must never be there."""
        words = ("Traceback", "Error", "monitor violation", "crashed", "restart")
        return [line for line in self.log.read_text().splitlines() if any(w in line for w in words)]

    @property
    def resident(self) -> int:
        """Bytes of memory it has."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        if self.is_alive:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_WITHIN)


@contextmanager
def node_process(
    log: Path, *options: str, launcher: tuple[str, ...] = ("-m", "actors")
) -> Iterator[NodeProcess]:
    """Run `python -m actors node` from its ready line on; it is gone afterwards."""
    outer, inner = os.pipe()
    with open(outer, "rb") as stdout, log.open("ab") as stderr:  # noqa: PTH123 - a descriptor
        process = fork_warm([*launcher, "node", *options], (None, inner, stderr.fileno()))
        try:
            os.close(inner)
            line = stdout.readline()
            assert line, f"it ended before it was ready:\n{log.read_text()}"
            yield NodeProcess(process, json.loads(line), log)
        finally:
            process.kill()
            process.wait()
