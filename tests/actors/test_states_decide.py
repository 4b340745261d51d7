"""What a state forbids, the state decides: a changed table changes what parts of a domain do."""

import attrs
import pytest
import trio

from actors.runtime.objects.participant import ObjectError
from actors.runtime.stubs import loader
from fsm.machines import p2p_connection as connection
from fsm.machines import session
from fsm.machines import stub_deployment as deployment
from fsm.machines.sync import node_subscription as path
from fsm.machines.sync import object_subscription as subscription
from fsm.machines.sync import observer_copy
from fsm.p2p import link_end
from fsm.session import node_session
from fsm.sync import copy as copies
from fsm.sync import reporter, subscriptions
from specs.limits.protocol import P2P_TIMEOUT
from tests.actors.node.sync.test_consent import answered, hears, watched
from tests.support.node.node_peer import ALLOCATION, RA, open_world
from tests.support.runtime.domain import open_domain


@pytest.fixture
def leading(monkeypatch):
    """Let a trigger of a machine lead elsewhere, where a module makes entities of it."""

    def change(module, table, trigger, target):
        rows = [
            attrs.evolve(row, target=target) if row.trigger is trigger else row
            for row in table.rows
        ]
        [name] = [name for name, value in vars(module).items() if value is table]
        monkeypatch.setattr(module, name, attrs.evolve(table, rows=tuple(rows)))

    return change


async def test_a_path_brings_what_its_state_permits(autojump_clock, leading):
    leading(subscriptions, path.NODE_SUBSCRIPTION, path.Trigger.HOLD, path.State.ACTIVE)
    async with watched() as (_, ra, rb, obj):
        assert await hears(ra, rb, obj)  # without a consent


async def test_a_consent_counts_by_the_state_that_it_leads_to(autojump_clock, leading):
    leading(subscriptions, path.NODE_SUBSCRIPTION, path.Trigger.CONSENT, path.State.HELD)
    async with watched() as (_, ra, rb, obj):
        await answered((ra, rb, obj))
        assert not await hears(ra, rb, obj)


async def written(copy):
    """Return whether an observer may write a child."""
    try:
        await copy.children.create("text")
    except ObjectError as refused:
        return refused.code != 403
    return True


@pytest.mark.parametrize("is_changed", [False, True])
async def test_who_writes_children_as_an_observer_is_said_by_its_subscription(
    is_changed, autojump_clock, leading
):
    if is_changed:
        accept, requested = subscription.Trigger.ACCEPT, subscription.State.REQUESTED
        leading(reporter, subscription.OBJECT_SUBSCRIPTION, accept, requested)
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        async with (
            alice.hyperty.report("comm", {"n": 1}, public=True) as reported,
            bob.hyperty.observe(reported.url) as copy,
        ):
            assert (await written(copy)) is not is_changed


ESTABLISHED = connection.Trigger.ESTABLISHED, connection.State.IN_PROGRESS
LOADED = deployment.Trigger.LOADED, deployment.State.DEPLOYMENT_FAILED


@pytest.mark.parametrize(
    ("changed", "is_direct"),
    [
        ((), True),
        ((link_end, connection.P2P_CONNECTION, *ESTABLISHED), False),
        ((loader, deployment.STUB_DEPLOYMENT, *LOADED), False),
    ],
    ids=["as they are", "no link is live", "no stub is deployed"],
)
async def test_messages_go_by_a_link_if_its_state_and_that_of_its_stub_permit_it(
    changed, is_direct, autojump_clock, leading
):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        if changed:
            leading(*changed)
        await alice.ask(bob, 1)
        await trio.sleep(P2P_TIMEOUT / 2)
        answer = await alice.ask(bob, 2)
        assert answer.code == 200
        assert any("/p2phandler/" in stub for stub in answer.via) is is_direct


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_session_serves_requests_in_the_states_that_have_a_link(
    is_changed, autojump_clock, leading
):
    if is_changed:
        opened, detached = session.Trigger.OPENED, session.State.DETACHED
        leading(node_session, session.SESSION, opened, detached)
    async with open_world() as world:
        peer = await world.peer(RA)
        asked = {"scheme": "hyperty", "value": {"number": 1}}
        answer = await peer.ask("create", f"{RA}/registry", ALLOCATION, **asked)
        assert answer.code == (401 if is_changed else 200)


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_copy_follows_changes_in_the_state_in_which_it_is_live(
    is_changed, autojump_clock, leading
):
    if is_changed:
        snapshot, stale = observer_copy.Trigger.SNAPSHOT, observer_copy.State.STALE
        leading(copies, observer_copy.OBSERVER_COPY, snapshot, stale)
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        async with (
            alice.hyperty.report("comm", {"n": 1}, public=True) as reported,
            bob.hyperty.observe(reported.url) as copy,
        ):
            await reported.set("n", 2)
            await trio.sleep(1)
            assert copy.value == {"n": 1 if is_changed else 2}
