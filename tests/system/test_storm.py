"""A domain whose processes are killed, stopped and ended by chance, judged by its traces.

`STORM_SEED` and `STORM_SECONDS` say which storm it is, and for how long.
"""

import os
import random
import signal
import subprocess
import sys

import orjson
import pytest
import trio

from tests.support.command import PYTHON, ROOT, serving
from tests.support.node.node_process import UNHURRIED

SEED = os.environ.get("STORM_SEED", "1")
SECONDS = float(os.environ.get("STORM_SECONDS", "60"))
NAMES = ("ra", "rb", "rc", "rd")
ENDS = (signal.SIGKILL, signal.SIGTERM)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(6 * SECONDS + 240)]


class Storm:
    """A node and parties, each of which comes back after its end."""

    def __init__(self, folder, chance):
        self.folder, self.chance = folder, chance
        self.running = {}

    async def party(self, name, node):
        """Keep one party running."""
        place = (name, node.url, str(self.folder), SEED)
        while True:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "tests.system.storm_party", *place],
                cwd=ROOT,
                stderr=subprocess.DEVNULL,
            )
            self.running[name] = process
            try:
                await process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    with trio.CancelScope(shield=True):
                        await process.wait()

    async def rage(self):
        """Do something to somebody, again and again."""
        while True:
            await trio.sleep(self.chance.random() * 2)  # real time: any moment will do
            name, how = self.chance.choice(NAMES), self.chance.choice((*ENDS, signal.SIGSTOP))
            process = self.running.get(name)
            if process is None:
                continue
            if process.poll() is None:
                process.send_signal(how)
            if how is signal.SIGSTOP:
                await trio.sleep(self.chance.random() * 3)  # real time: any moment will do
                process.send_signal(signal.SIGCONT)


async def judged(folder):
    """Return how many records there are, and the claims that they break."""
    done = await trio.run_process(
        [*PYTHON, "fsm", "judge", "--json", str(folder)], capture_stdout=True, check=False, cwd=ROOT
    )
    reported = [orjson.loads(line) for line in done.stdout.splitlines()]
    return reported[-1]["records"], {one["claim"]: one for one in reported if "claim" in one}


async def test_traces_of_a_storm_break_no_claim(tmp_path):
    """I-T7, I-D1..I-D12: what was cut short is incomplete, and nothing in it is wrong."""
    storm = Storm(tmp_path, random.Random(SEED))  # noqa: S311 - by chance, to be had again
    place = ("--domain", "a.ex", "--allow-legacy", *UNHURRIED, "--trace", str(tmp_path / "trace"))
    async with serving("node", *place) as node:
        async with trio.open_nursery() as nursery:
            for name in NAMES:
                nursery.start_soon(storm.party, name, node)
            nursery.start_soon(storm.rage)
            await trio.sleep(SECONDS)  # real time: any moment will do
            nursery.cancel_scope.cancel()
        assert await node.stop() == 0
    records, broken = await judged(tmp_path / "trace")
    assert records > 100 * SECONDS
    assert broken == {}
