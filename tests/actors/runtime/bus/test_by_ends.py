"""What has passed the first checks of a Message BUS once is not checked again, until it would not.

The same grants and messages go to two buses' checks. One of them remembers nothing.
"""

from random import Random

import pytest

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.runtime.bus.admission import Admission
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.pipeline import Pipelines
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy import Policy, Refusal
from specs.message import Message, MessageType
from tests.support.chance import examples
from tests.support.runtime.runtime_parts import R

STUB = f"{R}/protostub/1"
LINK = f"{R}/p2phandler/1/2"
ALICE, BOB, FAR = "hyperty://a.example/1", "hyperty://a.example/2", "hyperty://b.example/9"
THING = "comm://a.example/3"
ADDRESSES = (
    R, f"{R}/sm", f"{R}/registry", STUB, f"{STUB}/status", LINK, ALICE, f"{ALICE}/status", BOB, FAR,
    THING, f"{THING}/changes", f"{THING}/status", f"{THING}/children/chat",
    "domain://msg-node.a.example/sm", "domain://registry.a.example", f"{ALICE}/registration",
)  # fmt: skip
COMPONENTS = (ALICE, BOB, STUB, LINK, f"{R}/sm", f"{ALICE}/part")
BODIES = (
    {"value": 1}, {"value": 1, "via": [STUB]}, {"via": [STUB, STUB]}, {"source": BOB},
    {"code": 200, "source": R}, {"resource": f"{ALICE}#1"}, {"via": [LINK]},
)  # fmt: skip


class Switch(Policy):
    """A policy that denies everything from some moment on."""

    def __init__(self) -> None:
        self.why: str | None = None

    def refusal(self, message: Message, by: str) -> str | None:
        return self.why


class Checks:
    """The checks of one bus."""

    def __init__(self) -> None:
        hops = HopTrace(NULL_TRACER, "bus", Counters())
        self.policy = Switch()
        self.admission = Admission(R, self.policy, hops)
        self.pipelines = Pipelines(self.admission, lambda *_: None)

    def passed(self, message: Message, by: str) -> Message | Refusal:
        origin = self.admission.origin(by) or Origin.LOCAL
        direction = self.admission.direction(message, origin)
        return self.pipelines.pass_through(message, by, direction)


def change(dice: Random, both: list[Admission]) -> None:
    """Grant or revoke an address, or let events come by a link."""
    owner, address = dice.choice(COMPONENTS), dice.choice(ADDRESSES)
    owner, address = dice.choice([(owner, address), (owner, owner)])
    origin = {STUB: Origin.NODE_STUB, LINK: Origin.P2P_STUB}.get(owner, Origin.LOCAL)
    kind = dice.random()
    for admission in both:
        if kind < 0.6:
            admission.grant(owner, address, origin)
        elif kind < 0.8:
            admission.revoke(owner, address)
        else:
            admission.allow_events(address, LINK if kind < 0.9 else None)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_messages_pass_as_if_each_had_been_checked(seed):
    dice = Random(seed)  # noqa: S311 - a simulation
    quick, slow = Checks(), Checks()
    known = refused = 0
    for _ in range(4000):
        if dice.random() < 0.01:
            change(dice, [quick.admission, slow.admission])
        by, from_, to = dice.choice(COMPONENTS), dice.choice(ADDRESSES), dice.choice(ADDRESSES)
        if dice.random() < 0.7:
            by = from_ = dice.choice((ALICE, BOB, f"{R}/sm"))
        ends = from_, to
        body = dice.choice(BODIES) if dice.random() < 0.3 else {"value": 1}
        message = Message(1, dice.choice(tuple(MessageType)), *ends, body)
        slow.pipelines._known.clear()
        known += (by, message.type, *ends) in quick.pipelines._known
        passed = quick.passed(message, by)
        refused += isinstance(passed, Refusal)
        assert passed == slow.passed(message, by)
    assert known > 20
    assert refused > 20


BETWEEN = {
    "policy": (
        ALICE,
        Message(1, MessageType.CREATE, ALICE, BOB, {"value": 1}),
        lambda checks: setattr(checks.policy, "why", "not now"),
    ),
    "ownership": (
        ALICE,
        Message(1, MessageType.CREATE, THING, BOB, {"value": 1}),
        lambda checks: checks.admission.revoke(ALICE, THING),
    ),
    "session": (
        f"{ALICE}/part",
        Message(1, MessageType.CREATE, f"{R}/sm", f"{R}/registry", {"value": 1}),
        lambda checks: checks.admission.grant(f"{ALICE}/part", f"{ALICE}/part", Origin.NODE_STUB),
    ),
    "component": (
        f"{R}/sm",
        Message(1, MessageType.READ, f"{R}/sm", BOB, {"value": 1}),
        lambda checks: checks.admission.revoke(f"{R}/sm", f"{R}/sm"),
    ),
}


@pytest.mark.parametrize("changed", BETWEEN)
def test_of_two_equal_messages_the_second_is_refused_if_something_has_changed(changed):
    by, message, change = BETWEEN[changed]
    checks = Checks()
    for owner, address in ((ALICE, ALICE), (ALICE, THING), (by, message.from_), (BOB, BOB)):
        checks.admission.grant(owner, address, Origin.LOCAL)
    for _ in range(3):
        assert checks.passed(message, by) == message
    assert (by, message.type, message.from_, message.to) in checks.pipelines._known
    change(checks)
    assert isinstance(checks.passed(message, by), Refusal)
