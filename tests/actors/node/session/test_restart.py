"""A node that starts again knows its sessions: runtimes come back, whatever ended it (R14)."""

import sqlite3

import pytest

from tests.support.node.node_peer import RA, SM, open_world


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.sqlite"


async def test_a_file_that_cannot_be_written_stops_no_session(path):
    async with open_world(state=path) as world:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        peer = await world.peer()
        assert (await peer.ask("subscribe", peer.runtime, SM, resources=[peer.runtime])).code == 200
        blocker.execute("ROLLBACK")
        blocker.close()
    async with open_world(state=path) as world:
        assert await world.states() == {RA: "detached"}
