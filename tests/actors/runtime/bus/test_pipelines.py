"""An application's own stages in the pipelines of a runtime's bus."""

import pytest
from typing_extensions import override

from actors.runtime.bus.interceptor import Interceptor, Objection, StagePlaceError
from actors.runtime.bus.messages import Origin
from actors.runtime.config import RuntimeConfig
from actors.runtime.policy import Policy
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.routing import RUNTIME_CHECKS, Check, Direction, Power
from specs.trace import Op
from tests.support.runtime.runtime_parts import UA, R, open_bus
from tests.support.wire.wire import A, B, answer, ask

S = f"{R}/protostub/1"


class Stage(Interceptor):
    """Carries out its orders, and keeps the messages that it saw."""

    def __init__(self, say, place=Check.AFTER_POLICY, directions=frozenset(Direction)):
        self.name, self.place, self.directions = "a stage", place, directions
        self.saw = []
        self._say = say

    @override
    def intercept(self, message, by):
        self.saw.append(message)
        return self._say(message)


def passing(message):
    return message


def marking(message):
    return Message(
        message.id, message.type, message.from_, message.to, {**message.body, "seen": True}
    )


def objecting(message):
    return Objection("not today")


def crashing(message):
    raise ValueError(message.id)


class Never(Policy):
    @override
    def refusal(self, message, by):
        return "never"


async def asked(stage, policy=None, **body):
    """Alice asks Bob through a bus with a stage; return the answer, and all around it."""
    async with open_bus(policy, (stage,)) as world:
        await world.component(A)
        bob = await world.component(B)
        await world.port(A).post(ask(1, **body))
        await world.settle()
        return world, world.heard_by(bob)


async def test_a_stage_may_change_what_a_message_says():
    """BUS-11: the receiver gets what the stage made of it."""
    _, heard = await asked(Stage(marking), value=1)
    assert heard == [ask(1, value=1, seen=True)]


@pytest.mark.parametrize(("say", "code"), [(objecting, Code.FORBIDDEN), (crashing, Code.INTERNAL)])
async def test_the_requester_is_notified_that_a_stage_kept_the_answer(say, code):
    """BUS-11, I-T3: nobody waits for an answer that a stage has kept."""
    stage = Stage(lambda message: say(message) if message.is_response else message)
    async with open_bus(interceptors=(stage,)) as world:
        alice, _ = await world.component(A), await world.component(B)
        await world.port(A).post(ask(1))
        await world.port(B).post(answer(ask(1)))
        await world.settle()
        assert [message.code for message in world.heard_by(alice)] == [code]


@pytest.mark.parametrize(
    ("place", "sees"), [(Check.BEFORE_POLICY, 1), (Check.AFTER_POLICY, 0)], ids=str
)
async def test_a_stage_has_its_place_before_or_after_policy(place, sees):
    """BUS-11, I-B8: what policy refuses is seen by the stages before it only."""
    stage = Stage(passing, place)
    await asked(stage, Never())
    assert len(stage.saw) == sees


async def test_messages_between_parts_of_the_runtime_pass_no_stage():
    """BUS-13: nor does the status of its stubs; what a stub asks of a part is refused before."""
    stage = Stage(objecting)
    part = f"{R}/registry"
    async with open_bus(interceptors=(stage,)) as world:
        heard = await world.component(part)
        await world.component(UA)
        await world.component(S, Origin.NODE_STUB)
        await world.port(UA).post(ask(1, from_=UA, to=part))
        await world.port(S).post(Message(2, MessageType.UPDATE, S, f"{S}/status"))
        await world.port(S).post(ask(3, from_=S, to=part))
        await world.settle()
        assert [message.id for message in world.heard_by(heard)] == [1]
        denied = [fact.id for fact in world.tracer.facts if fact.op is Op.DENY]
    assert (stage.saw, denied) == ([], [3])


def test_only_an_applications_own_stages_may_change_a_message():
    """BUS-11."""
    changing = {row.check for row in RUNTIME_CHECKS if Power.CHANGE in row.may}
    assert changing == {Check.BEFORE_POLICY, Check.AFTER_POLICY}


@pytest.mark.parametrize("place", Check)
def test_a_stage_stands_where_the_table_lets_it_change_messages_or_nowhere(place):
    """BUS-11, C-22: nothing of the application's comes between the checks."""
    stages = (Stage(passing, place),)
    if place in {Check.BEFORE_POLICY, Check.AFTER_POLICY}:
        reported = RuntimeConfig(domain="a.ex", name="ra", node="ws://n", interceptors=stages)
        assert reported.interceptors == stages
        return
    with pytest.raises(StagePlaceError, match="give its place as before-policy or after-policy"):
        RuntimeConfig(domain="a.ex", name="ra", node="ws://n", interceptors=stages)
