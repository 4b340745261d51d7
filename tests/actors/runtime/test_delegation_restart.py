"""An object is handed over after a restart, too: its offers have rising numbers (SYN-26)."""

import pytest
import trio

import actors
from actors.runtime.sync_handing import HandOvers
from fsm.cores.delegation_terms import Answered
from specs.reply_code import Code
from tests.actors.runtime.test_delegation import heir_of
from tests.actors.runtime.test_store import world, written_at_once

__all__ = ["written_at_once"]


async def test_an_offer_that_is_over_does_not_stop_those_of_the_next_life(
    tmp_path, autojump_clock, monkeypatch
):
    async def hand(self, core, handed):
        return Answered(Code.UNAVAILABLE, "not now")

    async with world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        heir, deployed = await heir_of(rb.thing)
        async with ra.hyperty.report("comm", {"n": 0}, name="todo", store=True) as thing:
            with monkeypatch.context() as patched:
                patched.setattr(HandOvers, "hand", hand)
                with pytest.raises(actors.ObjectError, match="not now"):
                    await thing.delegate(deployed.url)
        await ra.stop()
        await trio.sleep(10)

        ra = await there.runtime("ra")
        async with ra.hyperty.report("comm", {}, name="todo", store=True) as again:
            await again.delegate(deployed.url)
            assert (await heir.has()).url == again.url == thing.url
            heir.over.set()
