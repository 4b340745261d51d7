"""A hyperty that was deployed, as who deployed it has it in hand."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self, final

import trio
from typing_extensions import override

from actors.runtime.hyperty.client import Voice
from actors.runtime.hyperty.lifecycle import HypertyFailedError, HypertyState, Lifecycle
from actors.runtime.objects.context import Seat
from actors.runtime.runtime import Runtime
from specs.limits.protocol import DRAIN_TIMEOUT

__all__ = ["Deployed", "DeployedApart"]


class _Tenant(ABC):
    """Something that runs in a runtime until it is undeployed.

    `async with await runtime.deploy(...) as hello:` undeploys it on leaving; otherwise
    the runtime does when it leaves.
    """

    def __init__(self, runtime: Runtime, life: Lifecycle) -> None:
        self._runtime: Final = runtime
        self._life: Final = life

    @property
    @abstractmethod
    def url(self) -> str:
        """The hyperty's address."""

    @property
    def state(self) -> HypertyState:
        """Whether it runs, was undeployed, or was given up as it crashed too often."""
        return self._life.state

    @property
    def errors(self) -> int:
        """How many exceptions its handlers have raised; each is in the log."""
        return self._life.errors

    async def failed(self) -> HypertyFailedError | None:
        """Wait until the hyperty does not run any more.

        Returns:
            Why it was given up, with what it crashed with last as `cause`; None if it was
            undeployed, or its runtime has ended.
        """
        return await self._life.ended()

    async def undeploy(self) -> None:
        """Unregister the hyperty, stop it, and give its address back; repeated is fine.

        The objects it reports are deleted, those it observes are left.
        """
        await self._runtime.undeploy(self.url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with trio.move_on_after(DRAIN_TIMEOUT, shield=True):
            await self.undeploy()


@final
class Deployed(Voice, _Tenant):
    """Acts in the name of a hyperty, whichever of its lives it is in; see `Runtime.deploy`."""

    def __init__(self, runtime: Runtime, seat: Seat, life: Lifecycle) -> None:
        super().__init__(runtime, life)
        self._seat = seat


@final
class DeployedApart(_Tenant):
    """A hyperty in a process of its own: it alone acts in its name; see `Runtime.deploy_apart`."""

    @property
    @override
    def url(self) -> str:
        """The hyperty's address."""
        return self._life.url
