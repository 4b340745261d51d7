"""What a node remembers of its decisions is what it would decide anew, whatever has changed."""

from collections import Counter
from random import Random

import pytest

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.node.tables import NodeAddresses, TableRules, Tables
from actors.node.trace import ComponentTrace
from fsm.bus.node_routing import Admitted, Refusal, RememberedRouting, Route, ToRuntimes
from fsm.registry.allocation import AddressMint
from fsm.registry.node_rights import Names, Observation, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.limits.bus import REMEMBERED
from specs.message import Message, MessageType
from tests.support.chance import examples

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
BODIES = [
    {}, {"value": 1}, {"source": OWNED[0]}, {"source": RUNTIMES[0]}, {"via": [RUNTIMES[0]]},
    {"via": [RUNTIMES[0]] * 2},
]  # fmt: skip
EXAMPLES = examples(400)


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


def ends_of(dice: Random) -> tuple[str, str, str]:
    """Return over whose session a message comes, and its ends."""
    by = dice.choice(PEERS)
    from_ = dice.choice([by, *PLACES] if dice.random() < 0.3 else [f"{by}/ua", *OWNED])
    return by, from_, dice.choice(PLACES)


@pytest.mark.chance
@pytest.mark.parametrize("names", list(Names))
@pytest.mark.parametrize("observation", list(Observation))
def test_the_same_is_decided_with_and_without_memory(names, observation):
    """MN-03, I-A3, I-B10, I-D10: sessions, owners, paths and parts of the node change meanwhile."""
    dice = Random(7)  # noqa: S311 - chance, no secret
    seen: Counter[str] = Counter()
    for _ in range(EXAMPLES):
        parts: set[str] = set()
        abroad = dice.choice((frozenset[str](), frozenset({"b.ex"})))
        tables = tables_of(RightsRules(observation, abroad, names), parts)
        for runtime in RUNTIMES:
            tables.came(runtime, dice.choice(list(PeerForm)))
        tables.allocation.allocate(RUNTIMES[0], tuple(OWNED[:2]))
        several = [ends_of(dice) for _ in range(2)]
        types = dice.choices(list(MessageType), k=2)
        for _ in range(25):
            if dice.random() < 0.7:
                change(dice, tables, parts)
            type_, (by, from_, to) = dice.choice(types), dice.choice(several)
            by = by if dice.random() < 0.8 else dice.choice(PEERS)
            if dice.random() < 0.3:
                _, _, to = dice.choice(several)
            body = dice.choice(BODIES[:2] if dice.random() < 0.6 else BODIES)
            if "/children/" in to and dice.random() < 0.5:
                body = {**body, "resource": f"{from_}#1"}
            if type_ is MessageType.RESPONSE:
                body = {**body, "code": 200}
            message = Message(dice.randrange(1, 9), type_, from_, to, body)
            admission = tables.remembered.admit(message, by)
            assert admission == tables.routing.admit(message, by), (message, by)
            origin = dice.choice((by, by, None))
            route = tables.remembered.route(message, origin)
            assert route == tables.routing.route(message, origin), (message, origin)
            seen["admitted" if isinstance(admission, Admitted) else "refused"] += 1
            seen[type(route).__name__] += 1
    assert min(seen.values()) > EXAMPLES / 10, seen


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


class Asked:
    """Routing that counts how often it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def admit(self, message: Message, by: str) -> Admitted | Refusal:
        """Admit everything."""
        self.count += 1
        return Admitted()

    def is_own(self, address: str, by: str) -> bool:
        """Let a session have all addresses."""
        return True

    def route(self, message: Message, by: str | None) -> Route:
        """Find a route to one runtime."""
        self.count += 1
        several = message.to.endswith("/changes")
        return ToRuntimes((message.to,) * (2 if several else 1))


def test_a_sender_and_a_receiver_are_looked_up_once_each_until_something_changes():
    """Who has written to whom before does not count; the memory is bounded."""
    asked = Asked()
    remembered = RememberedRouting(asked, ())  # type: ignore[arg-type]

    def pass_on(from_: int | str, to: int | str) -> int:
        before = asked.count
        ends = f"hyperty://a.ex/{from_}", f"hyperty://a.ex/{to}"
        message = Message(2, MessageType.CREATE, *ends, {"value": 2})
        remembered.admit(message, RUNTIMES[0])
        remembered.route(message, RUNTIMES[0])
        return asked.count - before

    assert [pass_on(1, 1), pass_on(2, 2), pass_on(3, 3)] == [2, 2, 2]
    assert {pass_on(one, other) for one in (1, 2, 3) for other in (1, 2, 3)} == {0}
    assert [pass_on(1, "7/changes"), pass_on(1, "7/changes")] == [2, 1]
    assert [pass_on(4, 1), pass_on(4, 1)] == [1, 0]
    remembered.forget()
    assert [pass_on(1, 1), pass_on(1, 1)] == [2, 0]
    for number in range(REMEMBERED - 1):
        assert pass_on(1, f"{number}/x") == 2
    assert pass_on(1, 1) == 0
    assert [pass_on(1, "one-more"), pass_on(1, "one-more"), pass_on(1, 1)] == [2, 0, 2]
