"""A hyperty that tries all attacks, and one that tries to outlive its runtime."""

import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from tests.actors.sandbox.attacks import attempts, call


class Hostile(Hyperty):
    """Answers with what came of its attacks."""

    @override
    async def on_request(self, message):
        came = {}
        for name, result in attempts(message.body["value"]):
            if result is not None:
                came[name] = result
            # Whoever gives no sign of life is ended.
            await trio.lowlevel.checkpoint()
        return came


class Undying(Hyperty):
    """Takes back, as far as it can, that it ends with its runtime; answers how many ways it had."""

    @override
    async def on_request(self, message):
        ways = 0
        for name, *values in (("prctl", 1, 0, 0, 0, 0), ("setfsuid", 1), ("prctl", 1, 17, 0, 0, 0)):
            try:
                call(name, *values)
            except PermissionError:
                continue
            ways += 1
        self.spawn(self._spin)
        return ways

    async def _spin(self):
        # After its answer: from then on it does not hear that its pipe has ended.
        await trio.sleep(0.2)
        while True:
            pass
