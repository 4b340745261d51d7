"""The tests themselves: which of them may sleep."""

import pytest
import trio


async def test_a_sleep_on_the_real_clock_is_refused():
    with pytest.raises(AssertionError, match=r"test_real_time.py:\d+ sleeps on the real clock"):
        await trio.sleep(0.001)


async def test_a_sleep_on_a_clock_that_jumps_is_none(autojump_clock):
    await trio.sleep(3600)


async def test_a_reason_stands_in_the_line():
    await trio.sleep(0.001)  # real time: for this test
    while trio.current_time() == 0:  # noqa: ASYNC110 - the other form
        await trio.sleep(0.001)
