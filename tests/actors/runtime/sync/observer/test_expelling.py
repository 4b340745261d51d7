"""A reporter shuts observers out, whether they react or not (SYN-20, SYN-21, M-45)."""

from specs.message import MessageType
from tests.support.report_world import met

UNSUBSCRIBE, READ = MessageType.UNSUBSCRIBE, MessageType.READ


async def test_an_expelled_observer_may_ask_again_and_is_decided_on_anew(autojump_clock):
    async with met() as m:
        for number in range(3):
            async with m.guest.observe(m.thing.url) as copy:
                assert copy.value["n"] == number
                await m.thing.expel(m.guest.url)
                await m.thing.set("n", number + 1)
        async with m.guest.observe(m.thing.url) as copy:
            await m.thing.set("n", 99)
            await copy.wait_for(lambda value: value["n"] == 99)


# --- who does not react -----------------------------------------------------------------------


async def expel(reporter, url, observer):
    """Have an observer shut out, and say nothing to itself."""
    return await reporter.ask(UNSUBSCRIBE, resource=url, observer=observer.url)
