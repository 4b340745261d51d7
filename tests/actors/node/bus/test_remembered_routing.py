"""What a node remembers of its decisions is what it would decide anew, whatever has changed."""

from random import Random

import pytest

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.node.tables import NodeAddresses, TableRules, Tables
from actors.node.trace import ComponentTrace
from fsm.bus.node_routing import Admitted, Refusal, ToRuntimes
from fsm.registry.allocation import AddressMint
from fsm.registry.node_rights import RightsRules
from fsm.session.node_session_io import PeerForm
from specs.message import Message, MessageType

DOMAIN = "a.ex"
RUNTIMES = [f"hyperty-runtime://{DOMAIN}/{name}" for name in ("ra", "rb")]
PEERS = [*RUNTIMES, "domain://msg-node.b.ex"]
OWNED = ["hyperty://a.ex/1", "comm://a.ex/1", "hyperty://b.ex/1"]
PARTS = ["", "/changes", "/events", "/children/resources", "/children"]
PLACES = [
    *[f"{root}{part}" for root in OWNED for part in PARTS],
    *[f"{RUNTIMES[0]}/ua", f"{RUNTIMES[1]}/status", "hyperty-runtime://a.ex/registry/1"],
    "global://registry",
]


def tables_of(rules: RightsRules, parts: set[str]) -> Tables:
    """Return the tables of a node without sessions."""
    trace = ComponentTrace(NULL_TRACER, "bus", Counters())
    table_rules = TableRules(AddressMint(bytes(32)), rules)
    return Tables(NodeAddresses(DOMAIN), table_rules, parts, trace)


def change(dice: Random, tables: Tables, parts: set[str]) -> None:
    """Change something in one of the tables, if that is allowed."""
    runtime, address = dice.choice(PEERS), dice.choice(OWNED)
    place = f"{address}{dice.choice(PARTS)}"
    form, observer = dice.choice(list(PeerForm)), dice.choice(PLACES)
    asking = dice.choice((frozenset[str](), frozenset({place})))
    paths = tables.subscriptions
    verdict = dice.choice((paths.consent, paths.decline, paths.withdraw))
    table = tables.allocation
    take = dice.choice((table.bind, lambda runtime, address: table.allocate(runtime, (address,))))
    changes = (
        lambda: tables.came(runtime, form),
        lambda: tables.came(runtime, form),
        lambda: tables.release(runtime, "gone"),
        lambda: take(runtime, address),
        lambda: tables.allocation.claim(runtime, (address,)),
        lambda: tables.allocation.free(runtime, (address,)),
        lambda: paths.subscribe(runtime, (place,), asking),
        lambda: paths.subscribe(runtime, (place,), asking),
        lambda: paths.unsubscribe(runtime, (place,)),
        lambda: verdict(address, runtime, observer),
        lambda: parts.symmetric_difference_update({observer}),
        lambda: parts.symmetric_difference_update({PLACES[-1]}),
    )
    dice.choice(changes)()


def test_what_a_node_of_another_domain_may_send_depends_on_the_parts_of_this_one():
    """S14: they may change without a change of a table."""
    parts = {"global://registry"}
    tables = tables_of(RightsRules(), parts)
    by = PEERS[-1]
    tables.came(by, PeerForm.OWN)
    message = Message(1, MessageType.READ, f"{by}/sm", "global://registry")

    assert isinstance(tables.remembered.admit(message, by), Admitted)
    parts.clear()
    assert isinstance(tables.remembered.admit(message, by), Refusal)


RA, RB = RUNTIMES
THING, CHANGES = OWNED[1], f"{OWNED[1]}/changes"
OBSERVER = f"{RB}/sm"
BETWEEN = {
    "ownership": (
        Message(1, MessageType.CREATE, OWNED[0], f"{RB}/ua", {"value": 1}),
        lambda tables: tables.allocation.free(RA, (OWNED[0],)),
    ),
    "session of the sender": (
        Message(1, MessageType.CREATE, OWNED[0], f"{RB}/ua", {"value": 1}),
        lambda tables: tables.release(RA, "gone"),
    ),
    "session of the receiver": (
        Message(1, MessageType.CREATE, f"{RA}/ua", f"{RB}/ua", {"value": 1}),
        lambda tables: tables.release(RB, "gone"),
    ),
    "consent": (
        Message(1, MessageType.UPDATE, THING, CHANGES, {"value": 1}),
        lambda tables: tables.subscriptions.withdraw(THING, RB, OBSERVER),
    ),
}


@pytest.mark.parametrize("changed", BETWEEN)
def test_of_two_equal_messages_the_second_goes_nowhere_if_something_has_changed(changed):
    """I-A3, I-M4, S3: what allowed the first is over."""
    message, change = BETWEEN[changed]
    tables = tables_of(RightsRules(), set())
    for runtime in RUNTIMES:
        tables.came(runtime, PeerForm.OWN)
    tables.allocation.allocate(RA, tuple(OWNED[:2]))
    tables.subscriptions.subscribe(RB, (CHANGES,), {CHANGES})
    tables.subscriptions.consent(THING, RB, OBSERVER)

    def is_delivered() -> bool:
        is_admitted = isinstance(tables.remembered.admit(message, RA), Admitted)
        return is_admitted and tables.remembered.route(message, RA) == ToRuntimes(
            (RB,), is_published=message.is_event
        )

    assert [is_delivered() for _ in range(3)] == [True] * 3
    change(tables)
    assert not is_delivered()
