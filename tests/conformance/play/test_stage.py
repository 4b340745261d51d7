"""The world of a scenario: how it is before the first step, and how it is left."""

import pytest

from specs.trace import Kind, Op
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.player import play
from tests.conformance.play.scripts import TWO, done, golden, msg, scenario, state, time
from tests.conformance.play.stage.participants import StageError
from tests.conformance.play.stage.stage import open_stage
from tests.conformance.play.stage.world import open_world

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
OBJ = "comm://a.ex/o1"


def ends(observer, machine):
    """Return the state each entity of a machine was left in."""
    steps = [one.fact for one in observer.items if one.fact.machine == machine]
    return {fact.key: fact.new for fact in steps}


async def test_names_stand_for_the_addresses_hyperties_got(autojump_clock):
    names = Names()
    async with open_stage(golden("SC-14"), Observer(), names):
        for address in (HA, HB):
            assert names.actual(address) != address
            assert names.golden(names.actual(address)) == address


async def test_a_live_link_is_live_at_both_ends_before_the_scenario_begins(autojump_clock):
    observer = Observer()
    async with open_stage(golden("SC-25"), observer, Names()):
        before = [one.fact for one in observer.items[: observer.start]]
        rows = [fact.key for fact in before if fact.table == "p2p" and "live" in (fact.val or "")]
        assert set(rows) == {RA, RB}


async def test_a_link_under_way_begins_with_the_scenario(autojump_clock):
    observer = Observer()
    async with open_stage(golden("SC-24"), observer, Names()):
        before = [one.fact.machine for one in observer.items[: observer.start]]
        assert "p2p_connection" not in before


async def test_an_object_is_at_its_version_with_its_observers(autojump_clock):
    observer, names = Observer(), Names()
    async with open_stage(golden("SC-31"), observer, names):
        written = [
            (one.fact.key, one.fact.version)
            for one in observer.items
            if one.fact.k is Kind.OBJ and one.fact.op is Op.WRITE
        ]
        assert written[-1] == (names.actual(OBJ), 3)
        assert sorted(ends(observer, "object_subscription").values()) == ["active", "active"]


async def test_rows_that_a_scenario_begins_with_belong_to_it(autojump_clock):
    observer, names = Observer(), Names()
    async with open_stage(golden("SC-31"), observer, names):
        changes = f"{names.actual(OBJ)}/changes"
        rows = [one.number for one in observer.items if one.fact.key == changes]
        assert min(rows) >= observer.start


async def test_a_record_is_disconnected_if_its_first_step_leaves_that(autojump_clock):
    observer, names = Observer(), Names()
    async with open_stage(golden("SC-12"), observer, names):
        assert ends(observer, "registration")[names.actual(HB)] == "disconnected"


async def test_all_participants_leave_in_good_order(autojump_clock):
    observer = Observer()
    async with open_world(golden("SC-25"), observer, Names()) as world:
        for hyperty in world.setting.hyperties:
            await world.deploy(hyperty.is_, "some")
        network, runtime, node = world.network, RA, "domain://msg-node.a.ex"
        assert network.wire(runtime, node) is not None
    assert network.wire(runtime, node) is None
    assert set(ends(observer, "session").values()) == {"closed"}
    assert set(ends(observer, "address").values()) == {"released"}


async def test_an_impossible_set_up_is_one_sentence_and_leaves_nothing(autojump_clock):
    """An object that nobody may create cannot be there."""
    given = (
        *TWO,
        {"given": "object", "is": "OBJ", "by": "HA", "schema": "SCM"},
        {
            "given": "denial",
            "at": "RA",
            "type": "create",
            "from": "HA",
            "to": "RA/sm",
            "why": "no objects here",
        },
    )
    script, observer = scenario(time(1), given=given), Observer()
    with pytest.raises(StageError, match="refused a precondition"):
        async with open_stage(script, observer, Names()):
            pass
    assert set(ends(observer, "session").values()) == {"closed"}


OTHERS = (
    {"given": "node", "domain": "x.test"},
    {"given": "node", "domain": "y.test"},
    {"given": "runtime", "is": "hyperty-runtime://x.test/kitchen"},
    {"given": "runtime", "is": "hyperty-runtime://y.test/attic"},
    {"given": "hyperty", "is": "hyperty://x.test/lamp", "in": "hyperty-runtime://x.test/kitchen"},
    {"given": "hyperty", "is": "hyperty://y.test/switch", "in": "hyperty-runtime://y.test/attic"},
)
UNSEEN = (
    *done(
        "hyperty://x.test/lamp",
        msg(
            "lamp>kitchen.bus>..>attic.bus>switch",
            "5 read hyperty://x.test/lamp hyperty://y.test/switch",
            {
                "via": [
                    "hyperty-runtime://x.test/kitchen/protostub/2",
                    "hyperty-runtime://y.test/attic/protostub/1",
                ]
            },
        ),
    ),
    *done(
        "hyperty://y.test/switch",
        msg(
            "switch>attic.bus>..>lamp",
            "5 response hyperty://y.test/switch hyperty://x.test/lamp",
            {"code": 200, "value": "on"},
        ),
    ),
)


async def test_a_scenario_of_other_names_is_played(autojump_clock):
    """What did not exist when the player was written must run."""
    outcome = await play(scenario(*UNSEEN, given=OTHERS))
    assert outcome.difference is None


def link(state):
    ends = {"from": "RA", "to": "RB", "asking": ["HA"], "asked": ["HB"]}
    return {"given": "link", "state": state, **ends}


@pytest.mark.parametrize(
    ("more", "step"),
    [
        pytest.param(
            link("broken"),
            state("p2p", f"{RA}|{RB}|requester", "disconnected", "live"),
            id="a broken link comes back",
        ),
        pytest.param(
            link("connecting"),
            state("p2p", f"{RA}|{RB}|requester", "in-progress", "live"),
            id="a link begins with the scenario",
        ),
        pytest.param(
            {"given": "session", "of": "RA", "at": "MNA", "state": "detached"},
            state("session", f"MN.a|{RA}", "detached", "open"),
            id="a detached session comes back",
        ),
    ],
)
async def test_given_states_change_as_the_scenario_begins(more, step, autojump_clock):
    outcome = await play(scenario(step, given=(*TWO, more)))
    assert outcome.difference is None


async def test_a_session_at_a_foreign_node_is_open_if_it_is_given(autojump_clock):
    session = {"given": "session", "of": "RA", "at": "MNB"}
    cut = {"fault": "link cut", "between": ["RA", "MNB"]}
    lost = state("session", f"MN.b|{RA}", "open", "detached")
    assert (await play(scenario(cut, lost, given=(*TWO, session)))).difference is None
    outcome = await play(scenario(cut, lost))
    assert outcome.difference is not None
    assert "have no link that could be cut" in outcome.difference.seen[0]


async def test_an_address_is_allocated_if_it_is_given(autojump_clock):
    freed = msg(
        "RA.alloc>RA.bus>SA~wire~MN.a",
        f"1 delete {RA}/address-allocation domain://msg-node.a.ex/address-allocation",
        {"childrenResources": ["connection://a.ex/c7"]},
    )
    order = {"do": "order", "by": "RA/address-allocation"}
    released = state("alloc", "MN.a|connection://a.ex/c7", "allocated", "released")
    address = {"given": "address", "is": "connection://a.ex/c7", "of": "RA"}
    outcome = await play(scenario(order, freed, released, given=(*TWO, address)))
    assert outcome.difference is None
