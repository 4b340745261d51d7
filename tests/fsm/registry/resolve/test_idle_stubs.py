"""A stub of another domain is released when it was idle for a while (PFY-03, STB-15, STB-16)."""

import math

import pytest

from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.searches import NodePlan
from specs.limits.protocol import DEPLOY_TIMEOUT
from tests.support.runtime.registry_core import HB, RA, REACH, S1, S2, Registry, call, status_seen

IDLE = 60.0
OWN = "hyperty://a.ex/other"


class Core(Registry):
    """A core with a clock, whose stubs are idle after a minute."""

    def __init__(self, **more):
        super().__init__()
        self.set_config(ResolveConfig(RA, "a.ex", stub_idle=IDLE, **more))

    def feed(self, happened):
        kinds = {"route", "no_route", "deploy", "undeploy", "release"}
        return [one for one in super().feed(happened) if one.name in kinds]

    def ask(self, to=HB):
        return self.feed(call.ask(to, REACH))

    def deployed(self, to=HB, stub=S1):
        self.ask(to)
        self.feed(call.stub_deployed(stub))
        self.feed(status_seen(stub, "live", link=f"{stub}/session/1"))

    def idle(self):
        self.now = self.core.deadline()
        return self.feed(call.time_over())


@pytest.fixture
def core():
    core = Core()
    core.deployed()
    return core


def test_an_idle_stub_is_released_and_the_next_message_deploys_another_with_a_new_address(core):
    assert core.core.deadline() == IDLE
    assert core.idle() == [call.release(S1, "b.ex", 1)]
    assert core.core.deadline() == math.inf
    assert core.feed(call.stub_released(S1, 1, is_free=True)) == [call.undeploy(S1)]
    assert core.core.node_stubs() == ()
    assert core.ask() == [call.deploy(S2, NodePlan("b.ex"))]


def test_a_stub_that_is_asked_for_was_not_idle(core):
    core.now = IDLE / 2
    core.ask()
    assert core.core.deadline() == IDLE / 2 + IDLE


def test_a_message_that_comes_while_the_bus_looks_keeps_the_stub(core):
    core.idle()
    (route,) = core.ask()
    assert route.url == S1
    assert core.feed(call.stub_released(S1, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1,)


def test_a_stub_in_use_is_looked_at_again_later(core):
    core.idle()
    assert core.feed(call.stub_released(S1, 1, is_free=False)) == []
    assert core.core.deadline() == core.now + IDLE
    assert core.idle() == [call.release(S1, "b.ex", 2)]


def test_an_answer_to_an_earlier_question_does_not_count(core):
    core.idle()
    core.ask()
    assert core.idle() == [call.release(S1, "b.ex", 2)]
    assert core.feed(call.stub_released(S1, 1, is_free=True)) == []
    assert core.feed(call.stub_released(S1, 2, is_free=True)) == [call.undeploy(S1)]


@pytest.mark.parametrize("state", ["in-progress", "disconnected"])
def test_a_stub_that_may_hold_messages_back_is_not_released(core, state):
    core.feed(status_seen(S1, state))
    core.idle()
    assert core.feed(call.stub_released(S1, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1,)


def test_the_stub_of_the_own_domain_stays(core):
    core.deployed(OWN, S2)
    assert core.idle() == [call.release(S1, "b.ex", 1)]
    assert core.feed(call.stub_released(S2, 1, is_free=True)) == []
    assert core.core.node_stubs() == (S1, S2)


def test_a_stub_that_is_being_deployed_is_not_idle():
    core = Core()
    core.ask()
    assert core.core.deadline() == math.inf
    core.now = 5.0
    core.feed(call.stub_deployed(S1))
    assert core.core.deadline() == 5.0 + IDLE


# ---- identity providers (PFY-12, C-59)

IDP = "domain-idp://b.ex"


class Idps(Core):
    """A core of a runtime with catalogues."""

    def __init__(self):
        super().__init__(has_catalogues=True)


def test_an_identity_provider_has_a_stub_of_its_own_beside_that_of_its_domain():
    core = Idps()
    assert core.ask(IDP) == [call.deploy(S1, NodePlan("b.ex", is_idp=True))]
    assert core.ask() == [call.deploy(S2, NodePlan("b.ex"))]
    (route,) = core.feed(call.stub_deployed(S1))
    assert (route.to, route.url) == (IDP, S1)
    core.feed(status_seen(S1, "live", link=f"{S1}/session/1"))
    assert core.idle() == [call.release(S1, "b.ex", 1)]


def test_an_identity_provider_that_no_catalogue_describes_is_reached_by_the_node():
    core = Idps()
    core.ask(IDP)
    assert core.feed(call.stub_failed(S1, "it is not described")) == [
        call.deploy(S2, NodePlan("b.ex"))
    ]
    (route,) = core.feed(call.stub_deployed(S2))
    assert (route.to, route.url) == (IDP, S2)
    (again,) = core.ask(IDP)
    assert again.url == S2


def test_one_whose_catalogue_hung_is_refused():
    core = Idps()
    core.ask(IDP)
    core.now = DEPLOY_TIMEOUT
    (refused,) = core.feed(call.stub_failed(S1, "it took too long"))
    assert (refused.to, refused.code) == (IDP, 503)


@pytest.mark.parametrize("to", ["domain-idp://a.ex", "domain-idp://b.ex"])
def test_without_catalogues_and_in_the_own_domain_the_node_serves_it(to):
    core = Core() if to == IDP else Idps()
    (order,) = core.ask(to)
    assert order.plan == NodePlan(to.rpartition("/")[2])
