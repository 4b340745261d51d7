"""No host calls a core while the core calls its port: a port method only queues or writes."""

import inspect
import sys
from collections import Counter
from functools import wraps

import pytest

from fsm.catalogue.foreign import ForeignCore
from fsm.group.catalogue import CatalogueCore
from fsm.group.durable import DeliverCore
from fsm.group.membership import MembershipCore
from fsm.group.moves import MovesCore
from fsm.group.policies import PoliciesCore
from fsm.group.rows import RowsCore
from fsm.p2p.link_end import LinkEnd
from fsm.registry.registration import RegistrationCore
from fsm.registry.resolve.resolve import ResolveCore
from fsm.session.node_session import NodeSessionCore
from fsm.session.stub_client import StubClientCore, StubPort
from fsm.sync.children import ChildrenCopyCore
from fsm.sync.copy import ObserverCore
from fsm.sync.reporter import ReportedObject
from fsm.sync.routes import ReportRoutes
from fsm.sync.subscriptions import ConsentCore, SubscriptionCore
from tests.simulation.judgement.judging import CHUNK, broken_by
from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.support.link_calls import RecordingPort

pytestmark = pytest.mark.timeout(240)

IN_DOMAINS = {
    ChildrenCopyCore,
    ConsentCore,
    ForeignCore,
    LinkEnd,
    NodeSessionCore,
    ObserverCore,
    RegistrationCore,
    ReportRoutes,
    ReportedObject,
    ResolveCore,
    StubClientCore,
    SubscriptionCore,
}
IN_GROUPS = {CatalogueCore, DeliverCore, MembershipCore, MovesCore, PoliciesCore, RowsCore}
"""The cores with a port that these runs reach: of one node for each domain, and of several. No run
has a global registry, so `RelayCore` is not among them."""


@pytest.fixture
def calls():
    """Note which cores are called, and calls by hosts from within a call of the same core."""
    called, reentries, running = set(), Counter(), Counter()

    def guarded(kind, name, method):
        @wraps(method)
        def call(core, *args, **named):
            caller = sys._getframe(1).f_code
            called.add(kind)
            if running[id(core)] and "/fsm/" not in caller.co_filename:
                reentries[f"{kind.__name__}.{name}", caller.co_qualname] += 1
            running[id(core)] += 1
            try:
                return method(core, *args, **named)
            finally:
                running[id(core)] -= 1

        return call

    # Not all are called, and what calls them must stand one frame above: these are no stand-ins.
    methods = [
        (kind, name, method)
        for kind in IN_DOMAINS | IN_GROUPS
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    for kind, name, method in methods:
        setattr(kind, name, guarded(kind, name, method))
    yield called, reentries
    for kind, name, method in methods:
        setattr(kind, name, method)


@pytest.mark.parametrize(
    ("plan", "reached"),
    [(plan_of, IN_DOMAINS), (group_plan_of, IN_GROUPS)],
    ids=["domains", "group"],
)
def test_no_port_calls_back(calls, plan, reached):
    called, reentries = calls
    assert broken_by(range(CHUNK), plan) == {}
    assert reentries == {}
    assert reached - called == set()


def test_a_port_that_calls_back_is_found(calls):
    port = RecordingPort(StubPort)
    core = StubClientCore("S", port, lambda: 0.0)
    port.step = lambda _step: core.deadline()
    core.begin()
    core.time_over(core.deadline())
    assert calls[1]
