"""A stub of another domain is released when it was idle for a while (PFY-03, STB-15, STB-16)."""

import pytest

from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.searches import NodePlan
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


# ---- identity providers (PFY-12, C-59)

IDP = "domain-idp://b.ex"


class Idps(Core):
    """A core of a runtime with catalogues."""

    def __init__(self):
        super().__init__(has_catalogues=True)


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
