"""Application models that follow state machines of a runtime, one model for each entity.

Every transition of an entity is reported to the tracer of the runtime, which also passes it to the
followers of its machine. Each follower is an actor with a mailbox of its own, so that an
application can neither block nor break the runtime. The models change state by the same
`transitions.Machine` as the entities.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from itertools import count
from types import TracebackType
from typing import Final, Generic, Self, TypeVar, final

import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Crash, Supervisor
from actors.kit.trace import PassingTracer, Tracer
from fsm.engine import Step, machine_of
from fsm.machine_list import table_named
from fsm.machines.transaction import TRANSACTION
from fsm.table import Table
from specs.limits.protocol import DRAIN_TIMEOUT, MODELS_FOLLOWING
from specs.trace import ABSENT

M = TypeVar("M")

_log = get_logger("actors.runtime")


class StepFeed(PassingTracer):
    """The tracer of one runtime, which also passes state transitions to followers.

    Args:
        tracer: Takes the trace records.
    """

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer)
        self._offers: dict[str, tuple[Callable[[Step], None], ...]] = {}

    def add(self, machine: str, offer: Callable[[Step], None]) -> None:
        """Pass each later transition of a state machine to a callback.

        Args:
            machine: Name of the machine.
            offer: The callback; it must not wait or raise.
        """
        self._offers[machine] = (*self._offers.get(machine, ()), offer)

    def remove(self, machine: str, offer: Callable[[Step], None]) -> None:
        """Remove a callback that `add` registered. Idempotent.

        Args:
            machine: Name of the machine.
            offer: The callback.
        """
        remaining = tuple(each for each in self._offers.get(machine, ()) if each != offer)
        self._offers[machine] = remaining

    @property
    @override
    def messages(self) -> Tracer:
        return self._tracer.messages

    @override
    def step(self, actor: str, step: Step) -> None:
        self._tracer.step(actor, step)
        for offer in self._offers.get(step.machine, ()):
            offer(step)


class _Models(Generic[M]):
    """The models of one follower; each is kept in the state of the entity that it follows.

    Attributes:
        by_key: The models by key of their entity; the last one to move is at the end.
        errors: Number of exceptions of models so far.
    """

    def __init__(self, table: Table, make: Callable[[str], M]) -> None:
        self.by_key: dict[str, M] = {}
        self.errors = 0
        self._table = table
        self._machine = machine_of(table)
        self._make = make

    def move(self, step: Step) -> None:
        """Move the model into the new state of its entity; log an exception of the application."""
        with Crash() as crash:
            self._move(step)
        if crash.error is not None:
            self.errors += 1
            _log.error(
                "model failed",
                machine=step.machine,
                key=step.key,
                trigger=step.cause,
                state=step.new,
                exc_info=crash.error,
            )

    def _move(self, step: Step) -> None:
        model = self.by_key.pop(step.key, None)
        if model is None or step.old is None:
            model = self._make_model(step.key)
        self.by_key[step.key] = model
        if len(self.by_key) > MODELS_FOLLOWING:
            self._forget()
        # The old state may differ from the last one seen: steps in between may be missing.
        self._machine.set_state(step.old or ABSENT, model)
        try:
            self._machine.events[step.cause].trigger(
                model, given=self._conditions_of(step), step=step
            )
        finally:
            self._machine.set_state(step.new, model)

    def _make_model(self, key: str) -> M:
        model = self._make(key)
        for state in self._machine.states.values():
            for name in (*state.on_enter, *state.on_exit):
                if iscoroutinefunction(getattr(model, str(name), None)):
                    raise TypeError(f"{name} is asynchronous: it would not be awaited")
        return model

    def _conditions_of(self, step: Step) -> frozenset[str]:
        """Return the conditions of the machine's table that held at a transition."""
        rows = self._table.rows_for(step.old, step.cause)
        return next((row.guard.when for row in rows if row.target == step.new), frozenset())

    def _forget(self) -> None:
        """Forget the least recently moved model whose entity may have ended."""
        for key, model in self.by_key.items():
            if getattr(model, "state", None) in self._table.may_end:
                del self.by_key[key]
                return


class _Follower(Actor[Step]):
    def __init__(self, models: _Models[M]) -> None:
        self._move = models.move

    @override
    async def handle(self, message: Step) -> None:
        self._move(message)


@final
class Following(Generic[M]):
    """Models of an application that follow entities; see `Runtime.follow`.

    `async with await runtime.follow(...) as links:` stops them when the block is left; outside of
    a block they end with the runtime.

    Attributes:
        missed: Number of steps that were left out because too many waited. A model that missed
            some continues with the next step of its entity.
    """

    def __init__(
        self,
        models: _Models[M],
        about: str | None,
        follower: ActorRef[Step],
        stop: Callable[[], Awaitable[None]],
    ) -> None:
        self.missed = 0
        self._models = models
        self._about = about
        self._follower = follower
        self._stop = stop
        self._is_behind = False

    @property
    def models(self) -> dict[str, M]:
        """The models by key of their entity; the last one to move is at the end."""
        return dict(self._models.by_key)

    @property
    def errors(self) -> int:
        """Number of exceptions that models have raised; the log has each of them."""
        return self._models.errors

    def offer(self, step: Step) -> None:
        """Queue a transition for the follower; the call never waits or raises."""
        if self._about is not None and self._about not in step.key.split("|"):
            return
        is_late = not self._follower.try_tell(step)
        self.missed += is_late
        if is_late and not self._is_behind:
            _log.warning("steps are missed", follower=self._follower.name, missed=self.missed)
        self._is_behind = is_late

    async def stop(self) -> None:
        """Stop following after the steps that have happened so far. Idempotent.

        If cancelled, the following ends, and steps that wait are left out.
        """
        await self._stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
            await self.stop()


class Followers:
    """All followers of the entities of one runtime.

    Args:
        feed: Offers the steps.
        supervisor: Runs the followers; it must stop after all entities.
    """

    def __init__(self, feed: StepFeed, supervisor: Supervisor) -> None:
        self._feed: Final = feed
        self._supervisor: Final = supervisor
        self._numbers = count(1)

    async def follow(
        self, machine: str, make: Callable[[str], M], about: str | None = None
    ) -> Following[M]:
        """Let models follow the entities of a machine.

        Args:
            machine: Name of the machine.
            make: Makes the model of an entity; it is called with the key of the entity.
            about: Address that the key of an entity must contain; None: all entities are followed.

        If cancelled, nothing is followed.

        Raises:
            UnknownMachineError: There is no such machine.
            ValueError: The steps of the machine are not reported.
            ActorStoppedError: The runtime has closed.
        """
        table = table_named(machine)
        if table is TRANSACTION:
            raise ValueError("the steps of a transaction are reported only where a trace is kept")
        models = _Models(table, make)
        name = f"follower {next(self._numbers)} of {machine}"
        spec = ChildSpec(name, partial(_Follower, models))
        follower = await self._supervisor.start_child(spec)

        async def stop() -> None:
            self._feed.remove(machine, following.offer)
            await self._supervisor.stop_child(name)

        following = Following(models, about, follower, stop)
        self._feed.add(machine, following.offer)
        return following
