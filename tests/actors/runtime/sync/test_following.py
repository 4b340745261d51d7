"""Components that follow an address of another's, and stop to (BUS-02, SYN-06, I-D7)."""

from types import SimpleNamespace

import trio
import trio.testing

from actors.runtime.sync.output import LinkWatches
from tests.support.wire.wire import B


async def test_the_registry_is_not_asked_for_a_link_that_nobody_watches_any_more(nursery):
    ends = []

    async def find_link(*_, is_wanted):
        with trio.CancelScope():
            try:
                await trio.sleep_forever()
            finally:
                ends.append("ended")

    registry = SimpleNamespace(find_link=find_link)
    watches = LinkWatches(
        SimpleNamespace(registry=registry, spawn=nursery.start_soon), lambda *_: None
    )
    watches.watch(B, None)
    await trio.testing.wait_all_tasks_blocked()
    watches.unwatch(B)
    await trio.testing.wait_all_tasks_blocked()
    assert ends == ["ended"]
