"""A stub's connection as its runtime sees it: each step is traced, then told, once (STB-05)."""

from typing import final

from actors.runtime.stubs.stub import StubContext
from fsm.engine import Entity, Step
from fsm.machines.stub_connection import STUB_CONNECTION, State, Trigger
from specs.addresses.address import status_of
from specs.bodies.body import Status
from specs.message import Message, MessageType
from transports.bodies import write_body

__all__ = ["StubConnection", "status_event"]


def status_event(context: StubContext, step: Step, sessions: int) -> Message:
    """Write what the runtime is told of one step of a node stub's connection (STB-05).

    Args:
        context: Of the stub.
        step: Which.
        sessions: How many sessions it has had: of one that is live it is the name.
    """
    url = context.url
    link = f"{url}/session/{sessions}" if step.new == State.LIVE else None
    body = write_body(Status(step.new, description=step.why or None, link=link))
    return Message(context.ids.next(url), MessageType.UPDATE, url, status_of(url), body)


@final
class StubConnection:
    """Takes the steps of one stub's connection; for stubs that keep no core of their own.

    A stub that is made has been `created`; the first thing it tells is that.
    """

    def __init__(self, context: StubContext) -> None:
        self._context = context
        self._entity = Entity(STUB_CONNECTION, context.url)

    @property
    def state(self) -> State | None:
        """How the connection stands; None: nothing was told yet."""
        state = self._entity.state
        return None if state is None else State(state)

    async def step(self, trigger: Trigger, why: str = "") -> None:
        """Take a step; the runtime hears of it.

        Args:
            trigger: What happened.
            why: Half a sentence for people.

        Raises:
            UndeclaredTransitionError: It cannot happen in this state: a bug of the stub.
        """
        context = self._context
        step = self._entity.step(trigger, why)
        context.tracer.step(f"stub:{context.url}", step)
        await context.bus.post(status_event(context, step, sessions=1))
