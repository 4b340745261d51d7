"""A stub of another domain is released when it was idle for a while (PFY-03, STB-15, STB-16)."""

import math

import pytest

from fsm.registry.resolve import resolve_io as rs
from fsm.registry.resolve.config import ResolveConfig
from fsm.registry.resolve.resolve import ResolveCore
from specs.limits.protocol import DEPLOY_TIMEOUT
from tests.support.runtime.registry_core import HB, RA, REACH, S1, S2

IDLE = 60.0
OWN = "hyperty://a.ex/other"


class Core:
    """A core with a clock, whose stubs are idle after a minute."""

    def __init__(self):
        self.core = ResolveCore(ResolveConfig(RA, "a.ex", stub_idle=IDLE))
        self.now = 0.0

    def feed(self, happened):
        kinds = rs.Route | rs.NoRoute | rs.Deploy | rs.Undeploy | rs.Release
        effects = self.core.feed(happened, self.now)
        return [effect for effect in effects if isinstance(effect, kinds)]

    def ask(self, to=HB):
        return self.feed(rs.Asked(to, REACH))

    def deployed(self, to=HB, stub=S1):
        self.ask(to)
        self.feed(rs.Deployed(stub))
        self.feed(rs.StatusSeen(stub, "live", link=f"{stub}/session/1"))

    def idle(self):
        self.now = self.core.deadline()
        return self.feed(rs.TimePassed())


@pytest.fixture
def core():
    core = Core()
    core.deployed()
    return core


def test_an_idle_stub_is_released_and_the_next_message_deploys_another_with_a_new_address(core):
    assert core.core.deadline() == IDLE
    assert core.idle() == [rs.Release(S1, "b.ex", 1)]
    assert core.core.deadline() == math.inf
    assert core.feed(rs.Released(S1, 1, is_free=True)) == [rs.Undeploy(S1)]
    assert core.core.node_stubs() == ()
    assert core.ask() == [rs.Deploy(S2, rs.NodePlan("b.ex"))]


def test_a_stub_that_is_asked_for_was_not_idle(core):
    core.now = IDLE / 2
    core.ask()
    assert core.core.deadline() == IDLE / 2 + IDLE


def test_a_message_that_comes_while_the_bus_looks_keeps_the_stub(core):
    core.idle()
    (route,) = core.ask()
    assert route.url == S1
    assert core.feed(rs.Released(S1, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1,)


def test_a_stub_in_use_is_looked_at_again_later(core):
    core.idle()
    assert core.feed(rs.Released(S1, 1, is_free=False)) == []
    assert core.core.deadline() == core.now + IDLE
    assert core.idle() == [rs.Release(S1, "b.ex", 2)]


def test_an_answer_to_an_earlier_question_does_not_count(core):
    core.idle()
    core.ask()
    assert core.idle() == [rs.Release(S1, "b.ex", 2)]
    assert core.feed(rs.Released(S1, 1, is_free=True)) == []
    assert core.feed(rs.Released(S1, 2, is_free=True)) == [rs.Undeploy(S1)]


@pytest.mark.parametrize("state", ["in-progress", "disconnected"])
def test_a_stub_that_may_hold_messages_back_is_not_released(core, state):
    core.feed(rs.StatusSeen(S1, state))
    core.idle()
    assert core.feed(rs.Released(S1, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1,)


def test_the_stub_of_the_own_domain_stays(core):
    core.deployed(OWN, S2)
    assert core.idle() == [rs.Release(S1, "b.ex", 1)]
    assert core.feed(rs.Released(S2, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1, S2)


def test_a_stub_that_is_being_deployed_is_not_idle():
    core = Core()
    core.ask()
    assert core.core.deadline() == math.inf
    core.now = 5.0
    core.feed(rs.Deployed(S1))
    assert core.core.deadline() == 5.0 + IDLE


# ---- identity providers (PFY-12, C-59)

IDP = "domain-idp://b.ex"


class Idps(Core):
    """A core of a runtime with catalogues."""

    def __init__(self):
        super().__init__()
        config = rs_config(has_catalogues=True)
        self.core = ResolveCore(config)


def rs_config(**more):
    return ResolveConfig(RA, "a.ex", stub_idle=IDLE, **more)


def test_an_identity_provider_has_a_stub_of_its_own_beside_that_of_its_domain():
    core = Idps()
    assert core.ask(IDP) == [rs.Deploy(S1, rs.NodePlan("b.ex", is_idp=True))]
    assert core.ask() == [rs.Deploy(S2, rs.NodePlan("b.ex"))]
    (route,) = core.feed(rs.Deployed(S1))
    assert (route.to, route.url) == (IDP, S1)
    core.feed(rs.StatusSeen(S1, "live", link=f"{S1}/session/1"))
    assert core.idle() == [rs.Release(S1, "b.ex", 1)]


def test_an_identity_provider_that_no_catalogue_describes_is_reached_by_the_node():
    core = Idps()
    core.ask(IDP)
    assert core.feed(rs.DeployFailed(S1, "it is not described")) == [
        rs.Deploy(S2, rs.NodePlan("b.ex"))
    ]
    (route,) = core.feed(rs.Deployed(S2))
    assert (route.to, route.url) == (IDP, S2)
    (again,) = core.ask(IDP)
    assert again.url == S2


def test_one_whose_catalogue_hung_is_refused():
    core = Idps()
    core.ask(IDP)
    core.now = DEPLOY_TIMEOUT
    (refused,) = core.feed(rs.DeployFailed(S1, "it took too long"))
    assert (refused.to, refused.code) == (IDP, 503)


@pytest.mark.parametrize("to", ["domain-idp://a.ex", "domain-idp://b.ex"])
def test_without_catalogues_and_in_the_own_domain_the_node_serves_it(to):
    core = Core() if to == IDP else Idps()
    (order,) = core.ask(to)
    assert order.plan == rs.NodePlan(to.rpartition("/")[2])
