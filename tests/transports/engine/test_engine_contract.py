"""What every engine keeps."""

import pytest
import trio

from specs.limits.engine import LOG_ENTRY, LOG_UNIT, LOG_UNITS, PUBLISHED_BYTES, ROW_KEY, ROW_VALUE
from tests.transports.engine.engines import received
from transports.engine.contract import Append, EngineDownError, Entry, LogFullError, Put, Row

# --- rows -----------------------------------------------------------------------------------------


async def test_a_row_that_is_not_there_is_none(engine):
    assert await engine.get("node/a") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": "k" * (ROW_KEY + 1)},
        {"key": "ü" * (ROW_KEY // 2 + 1)},
        {"value": b"v" * (ROW_VALUE + 1)},
        {"lasts": 0.5},
    ],
)
def test_a_write_beyond_a_limit_is_our_bug(wrong):
    with pytest.raises(ValueError, match=r"key|value|lasts"):
        Put(**{"key": "a", "value": b"", **wrong})


async def test_a_deleted_row_can_be_created_again(engine):
    await engine.put("a", b"1", expected=0)
    await engine.delete("a")

    revision = await engine.put("a", b"2", expected=0)
    assert await engine.get("a") == Row("a", b"2", revision)


async def test_to_delete_what_is_not_there_is_no_error(engine):
    await engine.delete("a")

    assert await engine.get("a") is None


# --- watches --------------------------------------------------------------------------------------


async def test_a_prefix_within_a_segment_is_our_bug(engine):
    with pytest.raises(ValueError, match="prefix"):
        async with engine.watch("sess"):
            pass


# --- payloads -------------------------------------------------------------------------------------


async def test_the_largest_payload_arrives_and_a_larger_one_is_our_bug(engine, other):
    async with other.inbox("b") as inbox:
        with pytest.raises(ValueError, match="payload"):
            await engine.publish("b", [b"unsent", b"x" * (PUBLISHED_BYTES + 1)])
        await engine.publish("b", [b"x" * PUBLISHED_BYTES, b""])

        assert await received(inbox, 2) == [b"x" * PUBLISHED_BYTES, b""]


# --- logs -----------------------------------------------------------------------------------------


async def append(engine, log, *payloads):
    """Add entries to a log, and return their positions."""
    return list(await engine.append_all([Append(log, one) for one in payloads]))


async def until_reached(channel, wanted):
    """Wait until the last positions of logs are known, whatever else comes."""
    found = {}
    while any(found.get(log) != position for log, position in wanted.items()):
        batch = await channel.receive()
        found.update(batch)


async def test_who_follows_logs_hears_of_one_whose_last_entry_found_no_room(engine, other):
    """An entry of several units may fill the log before it is refused."""
    await append(engine, "a", *[b"1"] * (LOG_UNITS - 1))
    (refused,) = await append(engine, "a", b"x" * (LOG_UNIT + 1))
    assert isinstance(refused, LogFullError)
    async with other.follow_logs() as news:
        assert [log for log, _ in await news.receive()] == ["a"]


async def test_a_log_that_is_full_refuses_and_others_do_not(engine):
    written = await append(engine, "a", *[b"%d" % number for number in range(LOG_UNITS + 2)])
    assert [isinstance(one, int) for one in written] == [True] * LOG_UNITS + [False] * 2
    assert isinstance(written[-1], LogFullError)
    assert written[-1].log == "a"
    assert isinstance((await append(engine, "b", b"1"))[0], int)

    await engine.acknowledge({"a": written[0]})
    again = await append(engine, "a", b"more", b"too much")
    assert [isinstance(one, int) for one in again] == [True, False]


def test_an_addition_beyond_a_limit_is_our_bug():
    with pytest.raises(ValueError, match="entry"):
        Append("a", b"x" * (LOG_ENTRY + 1))
    with pytest.raises(ValueError, match="key"):
        Append("", b"")


async def test_a_store_that_came_back_empty_has_no_entries(place, engine):
    async with engine.follow_logs() as news:
        (before,) = await append(engine, "a", b"1")
        await until_reached(news, {"a": before})
        await place.restart_empty()
        after = EngineDownError("not yet")
        while not isinstance(after, int):
            (after,) = await append(engine, "a", b"2")
            await trio.lowlevel.checkpoint()
        await until_reached(news, {"a": after})
    assert await engine.fetch("a", 0, 2) == [Entry("a", after, b"2")]
    assert after > before


# --- the end --------------------------------------------------------------------------------------


async def test_a_closed_handle_says_so(place):
    async with place.open() as engine:
        pass

    with pytest.raises(EngineDownError, match="closed"):
        await engine.get("a")
    with pytest.raises(EngineDownError, match="closed"):
        await engine.put("a", b"")
    with pytest.raises(EngineDownError, match="closed"):
        await engine.publish("a", [b""])
    with pytest.raises(EngineDownError, match="closed"):
        await engine.acknowledge({"a": 1})
    with pytest.raises(EngineDownError, match="closed"):
        await engine.fetch("a", 0, 1)
    (added,) = await engine.append_all([Append("a", b"")])
    assert "closed" in str(added)
