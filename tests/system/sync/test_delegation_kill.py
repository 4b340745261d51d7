"""A process is killed at each stage of a hand-over: never two write, and one goes on if it can.

Real processes and sockets, `kill -9` (SYN-26, I-D1).
"""

import os

import pytest
import trio

from actors.hyperties import Caller
from actors.kit.ids import IdSource
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from tests.support.command import serving
from tests.support.trace.memory import MemoryTracer
from tests.system.sync.delegating import STAGES
from transports.system import open_system_network

DOMAIN = ("--domain", "a.example")
PARTY = ("runtime", *DOMAIN, "--hyperty", "party=tests.system.sync.delegating:Party")
GOES_ON = {
    "old, before the offer": False,
    "old, offered": False,
    "old, handed over": True,
    "new, before it takes": True,
    "new, taken at the node": False,
}
"""Whether the one that is left reports the object then."""

NEVER_CAME = {"old, before the offer", "old, offered"}
"""Stages at which whoever is left has never had the object: there is nothing to wait for."""

pytestmark = pytest.mark.timeout(180)


class Left:
    """What the party that is left can do, and what an observer sees of it."""

    def __init__(self, caller, party):
        self.caller, self.party = caller, party

    async def ask(self, *what):
        return (await self.caller.request(self.party, [*what])).body.get("value")

    async def reported(self):
        """Return the address of what it reports, once it does."""
        url = None
        while url is None:
            await trio.sleep(0.05)
            url = await self.ask("where")
        return url

    async def writes(self, number):
        """Write until it is taken, or refused for good."""
        while True:
            said = await self.ask("write", number)
            if isinstance(said, int) or said in {"refused: 410", "refused: 404"}:
                return said
            await trio.sleep(0.5)


@pytest.mark.parametrize("stage", STAGES)
async def test_after_a_kill_of_either_end_the_other_writes_if_the_node_permits(stage):
    env = {**os.environ, "KILLED_AT": stage}
    old_env, new_env = (env, None) if stage.startswith("old") else (None, env)
    async with (
        serving("node", *DOMAIN, "--allow-legacy") as node,
        serving(*PARTY, "--name", "old", "--node", node.url, env=old_env) as old,
        serving(*PARTY, "--name", "new", "--node", node.url, env=new_env) as new,
        open_system_network() as network,
    ):
        config = RuntimeConfig(domain="a.example", name="eye", node=node.url, ids=IdSource())
        async with open_runtime(config, network, MemoryTracer()) as eye:
            caller = Caller()
            await eye.deploy("caller", lambda: caller)
            first, second = (Left(caller, each.ready["hyperties"]["party"]) for each in (old, new))
            killed, left = (old, second) if stage.startswith("old") else (new, first)
            await first.ask("report", {"n": 0})
            url = await first.reported()
            async with caller.observe(url) as copy:
                await first.ask("delegate", second.party)
                await killed.process.ended()
                said = "nothing"
                with trio.move_on_after(5 if stage in NEVER_CAME else 60):
                    said = await left.writes(7)
                assert isinstance(said, int) is GOES_ON[stage], said
                if GOES_ON[stage]:
                    await copy.wait_for(lambda value: value["n"] == 7)
