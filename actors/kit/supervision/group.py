"""A supervisor under a supervisor: a part whose failure does not end the whole."""

from typing import Never, TypeVar, final

import attrs
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Intensity,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)

__all__ = ["GroupSpec", "start_group"]

M = TypeVar("M")


@final
@attrs.frozen
class GroupSpec:
    """How to make a group of children with a supervisor of their own.

    Attributes:
        name: Name, unique under the parent, which stops the group by it.
        strategy: Which children are started again when one of them crashes.
        intensity: How many restarts the group may have.
    """

    name: str
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: Intensity = attrs.field(factory=Intensity)


async def start_group(parent: Supervisor, spec: GroupSpec) -> Supervisor:
    """Start a supervisor as a child of another; `parent.stop_child(name)` stops it.

    When its children crash too often, the group stops in order, and the log says so; the parent
    and its other children go on. `ActorRef.wait_stopped` of a child shows that end to others.

    Args:
        parent: The supervisor above.
        spec: How to make the group.

    If cancelled, there is no group.

    Raises:
        NameTakenError: The parent has a child of this name.
        ActorStoppedError: The parent is stopping, or has stopped the group before its start.
    """
    group = _Group(spec, parent)
    await parent.start_child(ChildSpec(spec.name, lambda: group, Restart.TEMPORARY, 1))
    return group.supervisor


@final
class _Group(Actor[Never]):
    """Holds the supervisor of the group open until the parent stops it."""

    def __init__(self, spec: GroupSpec, parent: Supervisor) -> None:
        self._spec = spec
        self._parent = parent
        self._is_open = trio.Event()
        self._shall_end = trio.Event()
        self._has_ended = trio.Event()
        self._supervisor: Supervisor | None = None

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor of the group."""
        if self._supervisor is None:
            raise ActorStoppedError(self._spec.name)
        return self._supervisor

    @override
    async def start(self) -> None:
        self.spawn(self._hold)
        await self._is_open.wait()

    @override
    async def handle(self, message: Never) -> None:
        """Nothing comes."""

    @override
    async def farewell(self) -> None:
        self._shall_end.set()
        await self._has_ended.wait()

    async def _hold(self) -> None:
        spec = self._spec
        async with open_supervisor(
            spec.name,
            spec.strategy,
            spec.intensity,
            self._parent.dead_letters,
            self._parent.monitor,
        ) as self._supervisor:
            self._is_open.set()
            await self._shall_end.wait()
        self._has_ended.set()
