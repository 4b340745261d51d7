"""Programs that embed nodes and runtimes find our lines in their log, not a library's."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging
import trio
import actors

logging.basicConfig(level=logging.INFO)
{more}

class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")

async def main():
    async with actors.open_node(domain="a.example") as node:
        async with actors.open_runtime(domain="a.example", name="r", node=node.url) as runtime:
            await runtime.deploy(Echo)

trio.run(main)
"""


@pytest.mark.parametrize(
    ("more", "is_shown"),
    [("", False), ("logging.getLogger('transitions').setLevel(logging.INFO)", True)],
    ids=["usual", "wanted"],
)
def test_the_library_of_machines_logs_warnings_only_unless_asked(more, is_shown):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM.format(more=more)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ("transitions.core" in done.stderr) is is_shown
