"""No host calls a core while the core calls its port: a port method only queues or writes."""

import inspect
import sys
from collections import Counter
from functools import wraps

import pytest

from fsm.catalogue.foreign import ForeignCore
from fsm.p2p.link_end import LinkEnd
from fsm.registry.relay import RelayCore
from fsm.registry.resolve.resolve import ResolveCore
from fsm.session.node_session import NodeSessionCore
from fsm.session.stub_client import StubClientCore
from fsm.sync.copy import ObserverCore
from fsm.sync.reporter import ReportedObject
from fsm.sync.subscriptions import SubscriptionCore
from tests.simulation.judgement.judging import CHUNK, broken_by

pytestmark = pytest.mark.timeout(240)

CORES = (
    ForeignCore,
    LinkEnd,
    NodeSessionCore,
    ObserverCore,
    RelayCore,
    ReportedObject,
    ResolveCore,
    StubClientCore,
    SubscriptionCore,
)


@pytest.fixture
def reentries():
    """Count the calls of cores by their hosts from within a call of the same core."""
    found, running = Counter(), Counter()

    def guarded(name, method):
        @wraps(method)
        def call(core, *args, **named):
            caller = sys._getframe(1).f_code
            if running[id(core)] and "/fsm/" not in caller.co_filename:
                found[name, caller.co_qualname] += 1
            running[id(core)] += 1
            try:
                return method(core, *args, **named)
            finally:
                running[id(core)] -= 1

        return call

    # Not all are called, and what calls them must stand one frame above: these are no stand-ins.
    methods = [
        (core, name, method)
        for core in CORES
        for name, method in inspect.getmembers(core, inspect.isfunction)
        if not name.startswith("_")
    ]
    for core, name, method in methods:
        setattr(core, name, guarded(f"{core.__name__}.{name}", method))
    yield found
    for core, name, method in methods:
        setattr(core, name, method)


def test_no_port_calls_back(reentries):
    assert broken_by(range(CHUNK)) == {}
    assert reentries == {}


def test_a_port_that_calls_back_is_found(reentries, monkeypatch):
    dial = StubClientCore._dial

    def hasty(core, now):
        dial(core, now)
        core._port.step = lambda _step: core.deadline()

    monkeypatch.setattr(StubClientCore, "_dial", hasty)
    broken_by(range(1))
    assert reentries
