"""Who cannot go on with an object that it has taken over leaves nothing behind (SYN-26)."""

import trio

from actors.runtime.objects import reporting as taken_over
from actors.runtime.objects.error import ObjectError
from specs.reply_code import Code
from tests.support.report_world import Closed, Open, world


async def test_a_hyperty_that_cannot_continue_a_taken_over_object_deletes_it(
    autojump_clock, monkeypatch
):
    errors = []

    async def fails(context, address, definition):
        await trio.lowlevel.checkpoint()
        raise ObjectError(address, Code.UNAVAILABLE, "no schema")

    class Heir(Open):
        async def on_delegated(self, delegated):
            self.spawn(self.go_on, delegated.url)

        async def go_on(self, url):
            monkeypatch.setattr(taken_over, "schema_for", fails)
            try:
                async with self.taken_over(url):
                    pass
            except ObjectError as exc:
                errors.append(exc.code)

    async with world() as w:
        sensor, watcher = await w.here.deploy(Open), await w.here.deploy(Closed)
        heir = await w.there.deploy(Heir)
        async with sensor.report("ctxt", {"t": 1}) as thing, watcher.observe(thing.url) as copy:
            await thing.delegate(heir.url)
            await trio.sleep(5)
            assert (errors, copy.is_gone) == ([Code.UNAVAILABLE], True)
