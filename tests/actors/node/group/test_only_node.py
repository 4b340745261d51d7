"""A node without an engine has no code of one."""

import subprocess
import sys

PROGRAM = """
import sys
import trio
from actors.node.app import open_node
from actors.node.config import NodeConfig
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

async def main():
    async with open_node(NodeConfig(domain="a.ex"), MemoryNetwork(), MemoryTracer()):
        pass

trio.run(main)
names = ("transports.engine", "transports.nats", "actors.node.group", "fsm.group")
print(*[one for one in sys.modules if one.startswith(names)])
"""


def test_a_node_without_an_engine_imports_none_of_it():
    command = (sys.executable, "-c", PROGRAM)
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    assert ended.stdout.split() == []
