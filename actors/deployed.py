"""The handles of a program to the hyperties that it has deployed."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self, final

import trio
from typing_extensions import override

from actors.runtime.hyperty.client import HypertyClient
from actors.runtime.hyperty.hyperty import HypertyFailedError, HypertyState, Lifecycle
from actors.runtime.objects.participant import Participant
from actors.runtime.runtime import Runtime as RunningRuntime
from specs.limits.protocol import DRAIN_TIMEOUT


class _Tenant(ABC):
    """Handle to a hyperty that runs in a runtime until it is undeployed.

    `async with await runtime.deploy(...) as hello:` undeploys it when the block is left;
    outside of a block the runtime undeploys it when it closes.
    """

    def __init__(self, runtime: RunningRuntime, life: Lifecycle) -> None:
        self._runtime: Final = runtime
        self._life: Final = life

    @override
    def __repr__(self) -> str:
        kind, life = type(self).__name__, self._life
        return f"<{kind} {life.name!r} {life.url} {life.state} in {self._runtime.url}>"

    @property
    @abstractmethod
    def url(self) -> str:
        """Address of the hyperty, such as `hyperty://a.example/1`."""

    @property
    def state(self) -> HypertyState:
        """The state of the hyperty: running, undeployed or failed; see `HypertyState`."""
        return self._life.state

    @property
    def errors(self) -> int:
        """Number of exceptions that its handlers have raised; the log has each of them."""
        return self._life.errors

    async def failed(self) -> HypertyFailedError | None:
        """Wait until the hyperty no longer runs.

        If cancelled, only the wait ends; the hyperty continues to run.

        Returns:
            The error that says why the runtime gave the hyperty up, with its last crash as
            `cause`; None if it was undeployed, or its runtime has closed.
        """
        return await self._life.wait_until_ended()

    async def undeploy(self) -> None:
        """Unregister the hyperty, stop it, and give its address back. Idempotent.

        The data objects that it reports are deleted; those that it observes are unsubscribed.
        Requests that it is working on are answered 503.

        If cancelled, only the wait ends: the runtime removes the hyperty all the same, and a
        second call waits for the end of that.

        Raises:
            ActorStoppedError: The runtime closes at the same time.
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
class Deployed(HypertyClient, _Tenant):
    """A handle to a hyperty, through all its restarts; made by `Runtime.deploy`.

    Its methods send, report and observe in the name of the hyperty.
    """

    def __init__(self, runtime: RunningRuntime, participant: Participant, life: Lifecycle) -> None:
        super().__init__(runtime, life)
        self._participant = participant


@final
class DeployedApart(_Tenant):
    """A handle to a hyperty in a sandbox process; made by `Runtime.deploy_apart`.

    Only the hyperty itself sends, reports and observes in its name.
    """

    @property
    @override
    def url(self) -> str:
        """Address of the hyperty, such as `hyperty://a.example/1`."""
        return self._life.url
