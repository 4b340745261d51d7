"""Who is in a scenario, by rules; the scenarios' page is the oracle."""

import re
from pathlib import Path

import pytest

import actors.play
from actors.play.cast import cast_of
from actors.play.roles import LinkRole, Standing
from fsm.cores.resolve import Topology
from specs.message import MessageType
from tests.support.scripts import golden, msg, scenario, state

RA, RB, RC = (f"hyperty-runtime://{d}.ex/r{d}" for d in "abc")
HA, HB, HC = (f"hyperty://{d}.ex/h{d}" for d in "abc")
OBJ = "comm://a.ex/o1"


def homes(cast):
    return {one.url: one.runtime for one in cast.hyperties if not one.is_stand_in}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("SC-01", {HA: RA, "hyperty://a.ex/ha2": RA}, id="both ends"),
        pytest.param("SC-08", {HA: RA, HB: RB}, id="who owns an allocation"),
        pytest.param("SC-09", {"hyperty://a.ex/owned-by-ra": RA}, id="what is freed was there"),
        pytest.param("SC-11", {}, id="who registers in the scenario does so there"),
        pytest.param(
            "SC-13",
            {HA: RA, "hyperty://a.ex/hx": "hyperty-runtime://a.ex/rx"},
            id="a way shows the runtime",
        ),
        pytest.param("SC-16", {HB: RB}, id="who is looked for"),
        pytest.param("SC-29", {HA: RA, HB: RB}, id="a way that is only sketched shows none"),
        pytest.param("SC-31", {HA: RA, HB: RB, HC: RC}, id="who is at an end of a way"),
        pytest.param("SC-35", {HA: RA, HB: RB, HC: RC}, id="no runtime is shown"),
        pytest.param("SC-39", {HA: RA, HB: RB}, id="forged senders are not there"),
        pytest.param("SC-40", {HA: RA, HB: RB}, id="what a search finds is there, and no more"),
    ],
)
def test_hyperties_live_where_the_scenario_shows(name, expected):
    assert homes(cast_of(golden(name))) == expected


@pytest.mark.parametrize(
    ("name", "wanting"),
    [("SC-01", set()), ("SC-05", {RB}), ("SC-16", {RA, RB}), ("SC-27", {RA, RB, RC})],
)
def test_links_are_wanted_by_whose_p2p_stubs_are_shown(name, wanting):
    assert {one.url for one in cast_of(golden(name)).runtimes if one.wants_links} == wanting


def test_a_node_with_stubs_makes_a_trapezoid_of_its_domain():
    topologies = {one.url: one.topology for one in cast_of(golden("SC-15")).runtimes}
    assert topologies == {RA: Topology.TRAPEZOID, RB: Topology.TRIANGLE}


@pytest.mark.parametrize(
    ("name", "standing"),
    [
        pytest.param("SC-16", (), id="it begins in the scenario"),
        pytest.param("SC-20", (LinkRole((RA, RB), Standing.LIVE),), id="it carries a message"),
        pytest.param("SC-24", (LinkRole((RA, RB), Standing.UNDER_WAY),), id="it was created"),
        pytest.param("SC-25", (LinkRole((RA, RB), Standing.LIVE),), id="it leaves live"),
        pytest.param("SC-26", (), id="glare"),
    ],
)
def test_links_stand_as_their_first_step_leaves_them(name, standing):
    assert cast_of(golden(name)).standing == standing


def test_links_are_known_by_the_scenarios_names():
    links = cast_of(golden("SC-27")).links
    assert (links["L1"], links["L2"]) == ((RA, RB), (RC, RB))


@pytest.mark.parametrize(
    ("name", "reporter", "observers", "version"),
    [
        pytest.param("SC-07", None, (), 6, id="nobody is shown"),
        pytest.param("SC-30", HA, (), 3, id="a snapshot shows the version"),
        pytest.param("SC-31", HA, (HB, HC), 3, id="rows without a cause"),
        pytest.param("SC-32", HA, (HB,), 8, id="an active subscription"),
        pytest.param("SC-35", HA, (HB,), 3, id="who is not refused"),
    ],
)
def test_objects_are_there_as_the_scenario_takes_for_granted(name, reporter, observers, version):
    (role,) = cast_of(golden(name)).objects
    assert (role.url, role.reporter, role.observers, role.version) == (
        OBJ,
        reporter,
        observers,
        version,
    )


def test_an_object_made_in_the_scenario_is_not_there():
    assert cast_of(golden("SC-29")).objects == ()


def test_a_denial_is_a_policy_if_its_reason_says_so():
    (denial,) = cast_of(golden("SC-39")).denials
    assert (denial.at, denial.type) == ("domain://msg-node.b.ex", MessageType.CREATE)
    assert (denial.from_, denial.to, denial.why) == (HA, HB, "blocked by target policy")


@pytest.mark.parametrize(("name", "own"), [("SC-04", True), ("SC-08", True), ("SC-09", False)])
def test_scenarios_that_show_the_opening_are_seen_from_the_beginning(name, own):
    assert cast_of(golden(name)).has_own_set_up is own


def test_a_scenario_of_other_names_is_cast_by_the_same_rules():
    home, away = "hyperty-runtime://x.test/kitchen", "hyperty-runtime://y.test/attic"
    lamp, switch = "hyperty://x.test/lamp", "hyperty://y.test/switch"
    cast = cast_of(
        scenario(
            state("p2p", f"{away}|{home}|requester", "live", "disconnected"),
            msg("switch>attic.bus>..>lamp", f"1 read {switch} {lamp}"),
        )
    )
    assert cast.domains == ("y.test", "x.test")
    assert homes(cast) == {switch: away, lamp: home}
    assert cast.standing == (LinkRole((away, home), Standing.LIVE),)


def test_no_scenario_is_known_by_its_name():
    sources = Path(actors.play.__file__).parent.glob("*.py")
    assert [one.name for one in sources if re.search(r"SC-?\d", one.read_text())] == []
