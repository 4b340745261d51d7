"""A node process for all, and peers of every wire form.

A test that asks for `join` runs once for each wire form; `@needs(...)` leaves out those
that cannot do what the test is about, by the table in `tests.support.wire.wire_forms`.
"""

import pytest

from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_forms import forms_for
from tests.support.wire.wire_guests import Joining


def pytest_generate_tests(metafunc):
    if "form" in metafunc.fixturenames:
        wanted = getattr(metafunc.function, "needs", frozenset())
        metafunc.parametrize("form", forms_for(wanted))


@pytest.fixture(scope="session")
def the_node(tmp_path_factory):
    """The node that all tests share that need no other."""
    log = tmp_path_factory.mktemp("node") / "stderr"
    with node_process(log, "--domain", DOMAIN, *EVERY_FORM, *UNHURRIED) as node:
        yield node
        assert node.is_alive
        assert node.stop() == 0
        assert node.complaints == []


@pytest.fixture
def node(the_node):
    """The node under test; a module that needs another one overrides this."""
    return the_node


@pytest.fixture
async def guests(node):
    """For tests that say themselves which form is spoken."""
    joining = Joining(node, "link")
    async with joining.stack:
        yield joining
    assert node.is_alive


@pytest.fixture
async def join(guests, form):
    """Peers that speak the form this run is about."""
    guests.form = form
    return guests
