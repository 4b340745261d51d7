"""A hyperty that crashes soon after each of its starts."""

from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty


class Doomed(Hyperty):
    """Crashes in a task of its own, so that its runtime gives it up."""

    @override
    async def started(self) -> None:
        self.spawn(self.crash)

    async def crash(self) -> None:
        raise RuntimeError("a secret of the hyperty")
