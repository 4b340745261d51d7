"""Nothing that is put into a runtime's bus vanishes (I-T9, OBS-06): any messages, in any order."""

from collections import Counter

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.runtime.bus.interceptor import Interceptor, Objection
from actors.runtime.bus.messages import Origin
from fsm.effects import Intent
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import instance_id
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.actors.runtime.bus.deaf import deaf
from tests.support.chance import examples
from tests.support.runtime.runtime_parts import R, open_bus
from tests.support.wire.wire import A, B, C, answer, ask, event

S, FULL = f"{R}/protostub/1", f"{R}/deaf"
CHANGES = f"{A}/changes"
NO_ROUTE = (C, Intent.REACH, Code.UNAVAILABLE, "there is no way")

SAYINGS = {
    "ask-full": (A, lambda n: ask(n, to=FULL)),
    "ask-nobody": (A, lambda n: ask(n, to=f"{R}/nobody")),
    "ask-away": (A, lambda n: ask(n, to=C)),
    "ask-vetoed": (A, lambda n: ask(n, vetoed=True)),
    "answer-nobody": (B, lambda n: answer(ask(n))),
    "event": (A, event),
    "event-nobody": (A, lambda n: event(n, to=f"{R}/changes")),
    "event-full": (A, lambda n: event(n, to=f"{FULL}/changes")),
    "forged-source": (A, lambda n: ask(n, from_=C)),
    "forged-status": (A, lambda n: event(n, to=f"{B}/status")),
    "loop": (S, lambda n: ask(n, from_=C, via=[S, S])),
    "from-away": (S, lambda n: ask(n, from_=C, to=B)),
}
"""Who says what, by the number of the message."""


ACTIONS = (*SAYINGS, "ask", "answer", "again", "late", "no-way", "leave")


class Veto(Interceptor):
    def intercept(self, message, by):
        return Objection("vetoed") if message.body.get("vetoed") else message


class Play:
    """Does things to a bus, and knows what it has sent."""

    def __init__(self, world):
        self.world = world
        self.number = 0
        self.sent = []
        self.open = []

    async def post(self, message, by):
        self.sent.append((message, by))
        await self.world.port(by).post(message)

    async def do(self, action):
        self.number += 1
        if action in SAYINGS:
            by, say = SAYINGS[action]
            await self.post(say(self.number), by)
            return
        match action:
            case "ask":
                self.open.append(ask(self.number))
                await self.post(self.open[-1], A)
            case "answer" if self.open:
                await self.post(answer(self.open.pop()), B)
            case "again" if self.sent:
                await self.post(*self.sent[-1])
            case "late":
                await trio.sleep(REPLY_TIMEOUT + 1)
            case "no-way":
                self.world.bus.no_route(*NO_ROUTE)
            case "leave":
                self.world.agent.expel(B)
                self.world.agent.revoke(B, B)


async def play(actions):
    """Play a story; return what was sent, and the bus as it is when all is over."""
    async with open_bus(interceptors=(Veto(),)) as world:
        alice, _ = await world.component(A), await world.component(B)
        await world.component(S, Origin.NODE_STUB)
        await deaf(world, FULL)
        world.agent.follow(CHANGES, A)
        world.agent.follow(f"{FULL}/changes", FULL)
        history = Play(world)
        for action in actions:
            await history.do(action)
            await world.settle()
        await trio.sleep(REPLY_TIMEOUT + 1)
        for intent in (Intent.REACH, Intent.KNOWN):
            world.bus.no_route(C, intent, Code.UNAVAILABLE, "there is no way")
        await world.settle()
        await world.supervisor.stop_child(FULL)
        return history, world, world.heard_by(alice)


def run(actions):
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(play, actions, clock=clock)


def vanished(history, world):
    """Return what was sent and neither delivered, answered by the bus, nor dropped."""
    facts = [fact for fact in world.tracer.facts if fact.k is Kind.MSG]
    drops = Counter(fact.mid for fact in facts if fact.op is Op.DROP)
    ended = {fact.mid for fact in facts if fact.op in {Op.DELIVER, Op.CALLBACK}}
    ended |= {fact.ref for fact in facts if fact.op is Op.SYNTH}
    lost = []
    for mid, times in Counter(instance_id(message) for message, _ in history.sent).items():
        if times - drops[mid] > (mid in ended):
            lost.append((mid, times, drops[mid]))
    return lost


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(ACTIONS), max_size=40))
def test_each_submitted_message_is_delivered_answered_or_dropped_with_one_reason(actions):
    """I-T9, OBS-06: and the ledger counts exactly what the trace says."""
    history, world, heard = run(actions)
    assert vanished(history, world) == []
    traced = Counter(fact.reason for fact in world.tracer.facts if fact.op is Op.DROP)
    assert dict(world.counters.drops) == dict(traced)
    finals = Counter(message.id for message in heard if message.is_final)
    asked = {m.id for m, by in history.sent if by == A and m.is_request and m.from_ == A}
    assert asked <= set(finals)
