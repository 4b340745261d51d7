"""Every message of a set-up lost, late or doubled on either part of its way (R9, SC-16).

However it goes: within the time a set-up may take both ends are live by one link, or
neither knows of one; nobody waits for ever; and what the hyperties say meanwhile arrives
exactly once, in order (I-P6, I-P22, I-B7, I-R7).
"""

from enum import Enum
from itertools import product

import attrs
import orjson
import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.limits.protocol import REPLY_TIMEOUT
from specs.trace import Kind, Op
from tests.support.pairs import covering
from tests.support.runtime.domain import NODE_PLACE, DomainOptions, go_live, judged, open_domain

SAID = 20
PAUSE = 0.1
"""Messages that each hyperty sends, so far apart: before, during and after the set-up."""


class Fate(Enum):
    """What becomes of a frame."""

    LOST = "lost"
    LATE = "late"
    DOUBLED = "doubled"


ARRIVALS = {Fate.LOST: (), Fate.LATE: (1.0,), Fate.DOUBLED: (0.0, 0.0)}
"""The seconds after which each copy of a frame arrives."""


class Hop(Enum):
    """On which part of its way."""

    TO_NODE = "to the node"
    FROM_NODE = "from the node"


def asked(kind, from_, to, about=""):
    """What is asked, by parts of its addresses and of what it is about."""

    def is_it(message):
        body = message["body"]
        subjects = [*body.get("resources", []), body.get("resource", ""), body.get("scheme", "")]
        ends = from_ in message["from"] and to in message["to"]
        return message["type"] == kind and ends and any(about in str(one) for one in subjects)

    return is_it


C = "connection://"
OF_NODE = {
    "record": asked("read", "/registry", "domain://registry"),
    "path of the requester": asked("subscribe", "/registry", "/sm", "p2prequester"),
    "address of an object": asked("create", "/address-all", "/address-all", "connection"),
    "path of changes": asked("subscribe", "/sm", "domain://", "/changes"),
}
"""What the node, or a service of it, answers itself."""

OF_PEER = {
    "offer's invitation": asked("create", C, "p2phandler"),
    "offer's subscription": asked("subscribe", "/bob/sm", C),
    "answer's invitation": asked("create", C, "p2prequester"),
    "answer's subscription": asked("subscribe", "/alice/sm", C),
}

WAYS = [
    *((name, is_answer, hop) for name in OF_PEER for is_answer in (False, True) for hop in Hop),
    *((name, False, Hop.TO_NODE) for name in OF_NODE),
    *((name, True, Hop.FROM_NODE) for name in OF_NODE),
]
"""Every message of a set-up, or its answer, on every part of its way."""


@attrs.define
class Weather:
    """The first frame with such a message has its fate on one part of its way.

    Attributes:
        hit: How many had it.
        swallowed: What hyperties said in the same frame.
    """

    name: str
    is_answer: bool
    hop: Hop
    fate: Fate
    hit: int = 0
    swallowed: list = attrs.field(factory=list)
    questions: set = attrs.field(factory=set)

    def __call__(self, network):
        network.disturb(NODE_PLACE, self.strikes(Hop.TO_NODE), self.strikes(Hop.FROM_NODE))

    def strikes(self, hop):
        def strike(_number, frame):
            messages = messages_in(frame)
            among = [self.is_it(one) for one in messages]
            if self.hit or hop is not self.hop or not any(among):
                return (0.0,)
            self.hit += 1
            if self.fate is Fate.LOST:
                said = [one for one in messages if one["to"].startswith("hyperty://")]
                self.swallowed = [one["body"].get("value") for one in said]
            return ARRIVALS[self.fate]

        return strike

    def is_it(self, message):
        question = {**OF_NODE, **OF_PEER}[self.name]
        if question(message):
            self.questions.add((message["from"], message["id"]))
            return not self.is_answer
        is_back = (message["to"], message["id"]) in self.questions
        return self.is_answer and message["type"] == "response" and is_back


def messages_in(frame):
    found = [orjson.loads(line) for line in frame.split(b"\n") if line.startswith(b'{"id":')]
    return [one for one in found if isinstance(one.get("body"), dict)]


async def talk(one, other):
    for number in range(SAID):
        await one.post(other, number)
        await trio.sleep(PAUSE)


async def comes_to_rest(domain):
    """Both ends are live, by one link; or neither knows of one."""
    alice, bob = domain["alice"], domain["bob"]
    states = await alice.status(bob), await bob.status(alice)
    assert states in {("live", "live"), (None, None)}
    lived = [
        len(member.facts(Op.OPEN, Kind.LINK)) - len(member.facts(Op.CLOSE, Kind.LINK))
        for member in (alice, bob)
    ]
    assert lived == ([1, 1] if states == ("live", "live") else [0, 0])


def reported(way):
    name, is_answer, hop = way
    return f"{'answer to ' * is_answer}{name} {hop.value}"


def cases(ways, fates):
    """All cases; those that are needed for any two facts to meet in one run by default."""
    table = list(product(ways, fates))
    chosen = covering(table, lambda case: (*case[0], case[1]))
    return [
        pytest.param(
            way,
            fate,
            id=f"{reported(way)}-{fate.name.lower()}",
            marks=[] if (way, fate) in chosen else [pytest.mark.soak],
        )
        for way, fate in table
    ]


@pytest.mark.parametrize(("way", "fate"), cases(WAYS, Fate))
async def test_both_ends_agree_on_the_outcome_of_each_message(way, fate, autojump_clock):
    await all_goes_well(Weather(*way, fate), both_ask=False)


TO_NODE = [way for way in WAYS if way[2] is Hop.TO_NODE]


@pytest.mark.parametrize(("way", "fate"), cases(TO_NODE, [Fate.LOST, Fate.LATE]))
async def test_so_it_is_when_both_begin_at_once(way, fate, autojump_clock):
    """P2P-27, I-P20."""
    await all_goes_well(Weather(*way, fate), both_ask=True)


async def all_goes_well(weather, *, both_ask):
    async with open_domain("alice", "bob", options=DomainOptions(weather=weather)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk, alice, bob)
            if both_ask:
                nursery.start_soon(talk, bob, alice)
        await trio.sleep_until(began + REPLY_TIMEOUT + 1)
        assert weather.hit == 1
        await comes_to_rest(domain)
        said = list(range(SAID))
        lost = weather.swallowed
        expected = [one for one in said if one not in lost], said
        assert bob.hyperty.heard in expected
        assert alice.hyperty.heard in (expected if both_ask else ([],))
        await trio.sleep_until(began + 2 * REPLY_TIMEOUT)
        await go_live(domain)
    for member in (alice, bob):
        assert judged(member).verdict is Verdict.CONFORMANT
