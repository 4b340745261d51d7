"""One part that breaks does not take the node with it."""

import pytest
import trio
import trio.testing

from actors.node.links.acceptor import Acceptor, LinkAcceptor
from actors.node.registry.record_file import MemoryRecords
from fsm.session.node_session_io import Liveness
from specs.message import Message, MessageType
from tests.support.node.node_peer import DR, RA, RB, open_world
from transports.codec import encode
from transports.errors import LinkBrokenError


async def test_a_crashing_connection_affects_no_other_connection(autojump_clock, monkeypatch):
    read = LinkAcceptor.read
    monkeypatch.setattr(LinkAcceptor, "read", lambda door, f: 1 / 0 if f == b"!" else read(door, f))
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)

        await ra.raw(b"!")

        with pytest.raises(LinkBrokenError):
            await ra.hear()
        assert await world.states() == {RA: "detached", RB: "open"}
        assert (await rb.control("ping")).code == 200


async def test_a_crashing_registry_is_started_again_and_sessions_stay(autojump_clock, monkeypatch):
    async with open_world() as world:
        ra = await world.peer(RA)
        commit = MemoryRecords.commit
        (url,) = await ra.allocate()
        record = {"url": url, "runtime": RA}
        monkeypatch.setattr(MemoryRecords, "commit", broken)
        await ra.post("create", f"{RA}/registry", DR, value=record)
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(MemoryRecords, "commit", commit)

        assert (await ra.ask("read", f"{RA}/registry", DR, resource=url)).code == 404
        assert (await ra.ask("create", f"{RA}/registry", DR, value=record)).code == 200
        assert await world.states() == {RA: "open"}


async def broken(records, changes):
    raise OSError("disk full")


async def test_searches_that_wait_in_a_crashing_registry_are_refused(autojump_clock, monkeypatch):
    """The one that it makes when it crashes has no answer, as the change has none."""
    async with open_world() as world:
        ra = await world.peer(RA)
        (url,) = await ra.allocate()
        monkeypatch.setattr(MemoryRecords, "commit", broken)
        asker, search = f"{RA}/registry", {"resource": "/hyperty/name/room"}
        asked = [Message(number, MessageType.READ, asker, DR, search) for number in range(100, 105)]
        record = {"value": {"url": url, "runtime": RA}}
        change = Message(99, MessageType.CREATE, asker, DR, record)
        await ra.raw(b"\n".join(map(encode, [*asked, change])))
        answers = [await ra.hear() for _ in asked[1:]]
        assert [(one.id, one.code) for one in answers] == [(one.id, 503) for one in asked[1:]]
        await trio.testing.wait_all_tasks_blocked()
        assert (await ra.ask("read", asker, DR, **search)).code == 404


def test_an_acceptor_publishes_no_extra_facts_by_default():
    class Silent(Acceptor):
        liveness = Liveness.BY_LINK

        def read(self, frame):
            return ()

        def write(self, entries):
            return ()

    assert Silent().greeting() == ()
