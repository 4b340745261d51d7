"""A search is followed: what appears, changes and vanishes (M-26, M-29, M-30, REG-16)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from fsm.registry.discovery import Change
from specs.addresses.address import domain_registry
from specs.limits.discovery import WATCH_PERIOD
from specs.message import MessageType
from tests.actors.runtime.registry.test_registration_watch import watched
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.runtime.domain import DOMAIN, Echo, open_domain


async def following(watching, many):
    """The next changes: what, and the status of whom."""
    changes = [await anext(watching) for _ in range(many)]
    return [(one.change, one.entry.url, one.entry.status) for one in changes]


@pytest.mark.parametrize("who", ["a hyperty", "a runtime"])
async def test_entries_appear_change_and_vanish(who, autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"].runtime
        by = alice.hyperty if who == "a hyperty" else alice.runtime.discoverer
        first = await bob.deploy("clock", Echo)
        async with by.watch(name="clock") as watching:
            assert await following(watching, 1) == [(Change.APPEARED, first, "live")]
            second = await bob.deploy("clock", Echo)
            with trio.fail_after(WATCH_PERIOD + 1):
                assert await following(watching, 1) == [(Change.APPEARED, second, "live")]
            await bob.undeploy(first)
            with trio.fail_after(WATCH_PERIOD / 10):
                gone = await following(watching, 1)
            assert gone == [(Change.CHANGED, first, "disconnected")]
            renamed = {"resource": second, "attribute": "name", "value": "timer"}
            await bob.order("registry", MessageType.UPDATE, domain_registry(DOMAIN), renamed)
            with trio.fail_after(WATCH_PERIOD + 1):
                assert await following(watching, 1) == [(Change.VANISHED, second, "live")]
            assert not watching.is_partial
        await wait_all_tasks_blocked()
        assert await watched(alice.runtime) == ()


async def test_a_watcher_outlives_a_restart_of_the_node(autojump_clock):
    async with open_place() as place:
        one, other = place.members
        watching = one.hyperty.watch(name=other.runtime.url.rpartition("/")[2])
        assert await following(watching, 1) == [(Change.APPEARED, other.address, "live")]
        await place.restart_node(30)
        with trio.move_on_after(60):
            await following(watching, 99)
        await other.runtime.undeploy(other.address)
        with trio.fail_after(1):
            gone = await following(watching, 1)
        assert gone == [(Change.CHANGED, other.address, "disconnected")]
