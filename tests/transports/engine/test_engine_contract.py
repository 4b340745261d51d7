"""What every engine keeps."""

import pytest
import trio

from specs.limits.engine import (
    INBOX_MESSAGES,
    LOG_ENTRY,
    LOG_UNIT,
    LOG_UNITS,
    PUBLISHED_BYTES,
    ROW_KEY,
    ROW_VALUE,
    WATCH_BATCH,
)
from tests.transports.engine.engines import received, until_current, until_health, until_row
from transports.engine.contract import (
    Append,
    ConflictError,
    Current,
    EngineDownError,
    Entry,
    LogFullError,
    Put,
    Row,
)

KEYS = ["node/a.b", "owner/hyperty://example.org/a-b", "path/c~*>= x/../%2E/ü", "a//b/", "/"]
"""Keys with all that paths of other stores do not have."""


# --- rows -----------------------------------------------------------------------------------------


async def test_a_row_that_is_not_there_is_none(engine):
    assert await engine.get("node/a") is None


@pytest.mark.parametrize("key", KEYS)
async def test_a_row_comes_back_as_it_was_written(engine, other, key):
    revision = await engine.put(key, b"\x00\xff")

    assert await other.get(key) == Row(key, b"\x00\xff", revision)
    async with other.watch() as rows:
        assert await until_row(rows, key, b"\x00\xff") == Row(key, b"\x00\xff", revision)


async def test_the_largest_row_and_the_empty_one_are_kept(engine):
    key = "k" * ROW_KEY
    await engine.put(key, b"v" * ROW_VALUE)
    await engine.put("empty", b"")

    assert (await engine.get(key)).value == b"v" * ROW_VALUE
    assert (await engine.get("empty")).value == b""


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


async def test_revisions_grow_over_all_rows(engine, other):
    first = await engine.put("a", b"1")
    second = await other.put("b", b"1")
    third = await engine.delete("a")
    fourth = await engine.put("a", b"2")

    assert 0 < first < second < third < fourth


async def test_one_of_two_that_create_a_row_succeeds(engine, other):
    revision = await engine.put("owner/a", b"alice", expected=0)
    with pytest.raises(ConflictError) as caught:
        await other.put("owner/a", b"bob", expected=0)

    assert caught.value.key == "owner/a"
    assert caught.value.row == Row("owner/a", b"alice", revision)


async def test_a_write_expects_the_revision_that_is_there(engine, other):
    first = await engine.put("a", b"1")
    second = await other.put("a", b"2", expected=first)
    with pytest.raises(ConflictError) as caught:
        await engine.put("a", b"3", expected=first)

    assert caught.value.row == Row("a", b"2", second)
    assert await engine.get("a") == Row("a", b"2", second)


async def test_a_row_that_went_has_another_revision_than_expected(engine):
    first = await engine.put("a", b"1")
    await engine.delete("a")
    with pytest.raises(ConflictError) as caught:
        await engine.put("a", b"2", expected=first)

    assert caught.value.row is None
    assert await engine.get("a") is None


async def test_a_deleted_row_can_be_created_again(engine):
    await engine.put("a", b"1", expected=0)
    await engine.delete("a")

    revision = await engine.put("a", b"2", expected=0)
    assert await engine.get("a") == Row("a", b"2", revision)


async def test_a_deletion_expects_a_revision_too(engine):
    first = await engine.put("a", b"1")
    second = await engine.put("a", b"2")
    with pytest.raises(ConflictError):
        await engine.delete("a", expected=first)
    await engine.delete("a", expected=second)

    assert await engine.get("a") is None


async def test_to_delete_what_is_not_there_is_no_error(engine):
    await engine.delete("a")

    assert await engine.get("a") is None


async def test_of_writes_in_one_crossing_each_is_for_itself(engine):
    first = await engine.put("a", b"1")
    await engine.put("b", b"1")
    written = await engine.put_all([
        Put("a", b"2", expected=first),
        Put("b", b"2", expected=0),
        Put("c", b"1", expected=0),
        Put("a", None),
    ])  # fmt: skip

    assert [isinstance(one, int) for one in written] == [True, False, True, True]
    assert isinstance(written[1], ConflictError)
    assert written[1].row.value == b"1"
    assert [await engine.get(key) for key in "abc"] == [
        None,
        written[1].row,
        Row("c", b"1", written[2]),
    ]


async def test_many_writes_in_one_crossing_take_effect_in_order(engine):
    puts = [Put(f"row/{number % 10}", b"%d" % number) for number in range(1000)]
    written = await engine.put_all(puts)

    assert list(written) == sorted(written)
    last = [(await engine.get(f"row/{number}")).value for number in range(10)]
    assert last == [b"%d" % (990 + number) for number in range(10)]


async def test_no_writes_are_no_crossing(engine):
    assert list(await engine.put_all([])) == []


async def test_of_many_that_compare_and_set_none_is_lost(engine, other):
    """A count that both nodes raise at a time ends at the sum."""
    await engine.put("count", b"0", expected=0)

    async def raise_it(handle):
        for _ in range(20):
            while True:
                row = await handle.get("count")
                value = b"%d" % (int(row.value) + 1)
                try:
                    await handle.put("count", value, expected=row.revision)
                except ConflictError:
                    continue
                break

    async with trio.open_nursery() as nursery:
        nursery.start_soon(raise_it, engine)
        nursery.start_soon(raise_it, other)
    assert (await engine.get("count")).value == b"40"


# --- leases ---------------------------------------------------------------------------------------


async def test_a_lease_that_is_not_renewed_ends(clock, engine, other):
    async with other.watch() as rows:
        await until_current(rows)
        before = trio.current_time()
        revision = await engine.put("node/a", b"1", expected=0, lasts=1)
        await until_row(rows, "node/a", b"1")
        gone = await until_row(rows, "node/a", None)

    assert gone.revision > revision
    assert trio.current_time() - before >= 1
    assert await other.get("node/a") is None
    await other.put("node/a", b"2", expected=0)


async def test_a_lease_that_is_renewed_stays(clock, engine):
    revision = await engine.put("node/a", b"1", expected=0, lasts=3)
    until = trio.current_time() + 4
    while trio.current_time() < until:  # often, for a machine that is busy
        await trio.sleep(0.2)  # real time: leases of a server
        revision = await engine.put("node/a", b"1", expected=revision, lasts=3)

    assert await engine.get("node/a") == Row("node/a", b"1", revision)


async def test_a_write_without_an_end_takes_the_end_away(clock, engine):
    await engine.put("node/a", b"1", lasts=1)
    revision = await engine.put("node/a", b"2")
    await trio.sleep(3)  # real time: leases of a server

    assert await engine.get("node/a") == Row("node/a", b"2", revision)


async def test_a_renewal_that_comes_too_late_conflicts(clock, engine):
    revision = await engine.put("node/a", b"1", expected=0, lasts=1)
    async with engine.watch() as rows:
        await until_row(rows, "node/a", None)
    with pytest.raises(ConflictError) as caught:
        await engine.put("node/a", b"1", expected=revision, lasts=1)

    assert caught.value.row is None


# --- watches --------------------------------------------------------------------------------------


async def test_a_watch_gives_what_is_there_then_changes(engine, other):
    await engine.put_all([Put("a", b"1"), Put("b", b"1"), Put("c", b"1"), Put("c", None)])
    async with other.watch() as rows:
        found = await until_current(rows)
        assert {key: value for key, value in found.items() if value is not None} == {
            "a": b"1",
            "b": b"1",
        }
        revision = await engine.put("a", b"2")
        assert await until_row(rows, "a", b"2") == Row("a", b"2", revision)
        revision = await engine.delete("b")
        assert await until_row(rows, "b", None) == Row("b", None, revision)


async def test_a_watch_of_nothing_is_current_at_once(engine):
    async with engine.watch() as rows:
        assert await rows.receive() == [Current()]


async def test_a_watch_gives_rows_by_their_revision(engine, other):
    async with other.watch() as rows:
        await until_current(rows)
        written = await engine.put_all([Put(f"row/{number}", b"") for number in range(100)])
        seen = []
        while len(seen) < 100:
            seen += await rows.receive()

    assert [row.revision for row in seen] == list(written)


async def test_a_watch_with_a_prefix_gives_nothing_else(engine, other):
    await engine.put_all([Put("session/a", b"1"), Put("sessions", b"1"), Put("node/a", b"1")])
    async with other.watch("session/") as rows:
        assert await until_current(rows) == {"session/a": b"1"}
        await engine.put_all([Put("node/b", b"1"), Put("session/b/c", b"1")])
        assert [row.key for row in await rows.receive()] == ["session/b/c"]


async def test_a_prefix_within_a_segment_is_our_bug(engine):
    with pytest.raises(ValueError, match="prefix"):
        async with engine.watch("sess"):
            pass


async def test_a_watch_of_many_rows_comes_in_batches(engine, other):
    count = 3 * WATCH_BATCH + 1
    await engine.put_all([Put(f"row/{number}", b"1") for number in range(count)])
    async with other.watch() as rows:
        batches = []
        while not batches or Current() not in batches[-1]:
            batches.append(await rows.receive())

    seen = [one.key for batch in batches for one in batch if isinstance(one, Row)]
    assert seen == [f"row/{number}" for number in range(count)]
    assert max(map(len, batches)) <= WATCH_BATCH + 1


async def test_a_slow_watcher_gets_the_last_version_of_all(engine, other):
    async with other.watch() as rows:
        await until_current(rows)
        for turn in range(20):
            await engine.put_all(
                [Put(f"row/{number}", b"%d" % turn) for number in range(WATCH_BATCH)]
            )
        found = {}
        while len(found) < WATCH_BATCH or set(found.values()) != {b"19"}:
            found.update({row.key: row.value for row in await rows.receive()})


async def test_a_handle_may_watch_several_times(engine):
    async with engine.watch("a/") as first, engine.watch() as second:
        await until_current(first)
        await until_current(second)
        await engine.put("a/b", b"1")
        await until_row(first, "a/b", b"1")
        await until_row(second, "a/b", b"1")


# --- payloads -------------------------------------------------------------------------------------


async def test_payloads_of_one_node_come_in_order(engine, other):
    async with other.inbox("b") as inbox:
        payloads = [b"%d" % number for number in range(1000)]
        for at in range(0, 1000, 100):
            await engine.publish("b", payloads[at : at + 100])

        assert await received(inbox, 1000) == payloads


@pytest.mark.parametrize("node", ["a.b", "*", ">", "x y", "ü"])
async def test_payloads_go_to_the_node_that_is_named_only(engine, other, node):
    async with other.inbox(node) as inbox, engine.inbox("another") as another:
        await engine.publish("another", [b"another"])
        await engine.publish(node, [b"here"])

        assert await received(inbox, 1) == [b"here"]
        assert await received(another, 1) == [b"another"]


async def test_a_payload_to_nobody_is_lost(engine, other):
    await engine.publish("b", [b"early"])
    await engine.put("a", b"")  # what was published before has been handled
    async with other.inbox("b") as inbox:
        await engine.publish("b", [b"late"])

        assert await received(inbox, 1) == [b"late"]


async def test_the_largest_payload_arrives_and_a_larger_one_is_our_bug(engine, other):
    async with other.inbox("b") as inbox:
        with pytest.raises(ValueError, match="payload"):
            await engine.publish("b", [b"unsent", b"x" * (PUBLISHED_BYTES + 1)])
        await engine.publish("b", [b"x" * PUBLISHED_BYTES, b""])

        assert await received(inbox, 2) == [b"x" * PUBLISHED_BYTES, b""]


async def test_an_inbox_that_is_full_drops_and_says_what(engine, other):
    count, dropped = 2 * INBOX_MESSAGES, []
    async with other.inbox("b", dropped.append) as inbox:
        for at in range(0, count, 1024):
            await engine.publish("b", [b"%d" % number for number in range(at, at + 1024)])
        async with other.watch() as rows:
            # A later row of the same node has come: the payloads before it have, too.
            await engine.put("mark", b"")
            await until_row(rows, "mark", b"")
        kept, marks = [], 0
        while b"mark" not in kept:
            await engine.publish("b", [b"mark"])  # dropped, if the inbox is still full
            marks += 1
            kept += await inbox.receive()
        numbers = [int(one) for one in kept if one != b"mark"]

    assert numbers == list(range(len(numbers)))
    assert INBOX_MESSAGES <= len(numbers) < count
    lost = count - len(numbers)
    assert lost <= len(dropped) < lost + marks


# --- logs -----------------------------------------------------------------------------------------


async def append(engine, log, *payloads):
    """Add entries to a log, and return their positions."""
    return list(await engine.append_all([Append(log, one) for one in payloads]))


async def read_all(engine, log):
    """Return the payloads of the entries of a log."""
    return [one.payload for one in await engine.fetch(log, 0, LOG_UNITS)]


async def until_reached(channel, wanted):
    """Wait until the last positions of logs are known, whatever else comes."""
    found = {}
    while any(found.get(log) != position for log, position in wanted.items()):
        batch = await channel.receive()
        found.update(batch)


@pytest.mark.parametrize("log", ["node/a", "log", "x/y.z*>/ü", "hyperty-runtime://a.b/c", "/"])
async def test_entries_of_a_log_come_in_order(engine, other, log):
    positions = await append(engine, log, b"1", b"", b"3")
    await append(engine, f"{log}/x", b"4")
    entries = [
        Entry(log, position, payload)
        for position, payload in zip(positions, [b"1", b"", b"3"], strict=True)
    ]
    assert await other.fetch(log, 0, 4) == entries
    assert await other.fetch(log, 0, 2) == entries[:2]
    assert await other.fetch(log, positions[0], 9) == entries[1:]
    assert await other.fetch(log, positions[2], 9) == []
    assert await other.fetch("none", 0, 9) == []
    assert positions == sorted(positions)


async def test_what_is_acknowledged_comes_no_more(engine, other):
    first, second, third = await append(engine, "n/a", b"1", b"2", b"3")
    await append(engine, "n/b", b"4")
    await engine.acknowledge({"n/a": second})
    await engine.acknowledge({"n/a": first, "n/c": third})
    assert await read_all(other, "n/a") == [b"3"]
    assert await read_all(other, "n/b") == [b"4"]
    await other.acknowledge({"n/a": third})
    await append(engine, "n/a", b"5")
    assert await read_all(other, "n/a") == [b"5"]


async def test_who_follows_logs_hears_of_their_entries(engine, other):
    """The last of each log first, then new ones; not what they hold."""
    await append(engine, "a", b"1", b"2")
    (_, last), (only,) = await append(engine, "a", b"3", b"4"), await append(engine, "b", b"1")
    async with other.follow_logs() as news:
        await until_reached(news, {"a": last, "b": only})
        (last,) = await append(engine, "a", b"5")
        await until_reached(news, {"a": last})


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


async def test_a_large_entry_takes_as_much_as_small_ones(engine, other):
    large = b"x" * LOG_ENTRY
    units = Append("a", large).units
    written = await append(engine, "a", *[large] * (LOG_UNITS // units + 1))
    assert [isinstance(one, int) for one in written] == [True] * (LOG_UNITS // units) + [False]
    found = await other.fetch("a", 0, LOG_UNITS)
    assert {one.payload for one in found} == {large}
    assert [one.position for one in found] == written[:-1]
    await other.acknowledge({"a": found[-1].position})
    assert isinstance((await append(engine, "a", large))[0], int)


def test_an_addition_beyond_a_limit_is_our_bug():
    with pytest.raises(ValueError, match="entry"):
        Append("a", b"x" * (LOG_ENTRY + 1))
    with pytest.raises(ValueError, match="key"):
        Append("", b"")


async def test_a_log_outlives_the_store_and_who_follows_goes_on(place, engine, other):
    async with other.follow_logs() as news:
        (_, last) = await append(engine, "a", b"1", b"2")
        await until_reached(news, {"a": last})
        await place.stop()
        await until_health(engine, is_up=False)
        await until_health(other, is_up=False)
        assert isinstance((await append(engine, "a", b"lost"))[0], EngineDownError)
        with pytest.raises(EngineDownError):
            await engine.acknowledge({"a": 1})
        with pytest.raises(EngineDownError):
            await engine.fetch("a", 0, 1)
        await place.start()
        await until_health(engine, is_up=True)
        (last,) = await append(engine, "a", b"3")
        await until_reached(news, {"a": last})
    assert await read_all(engine, "a") == [b"1", b"2", b"3"]


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


# --- outages --------------------------------------------------------------------------------------


async def test_without_a_store_calls_fail_and_none_waits(place, engine):
    assert engine.health.is_up
    await place.stop()
    await until_health(engine, is_up=False)

    assert engine.health.problem
    with pytest.raises(EngineDownError):
        await engine.get("a")
    with pytest.raises(EngineDownError) as caught:
        await engine.put("a", b"1")
    assert not caught.value.is_unknown
    with pytest.raises(EngineDownError):
        await engine.publish("b", [b"1"])
    assert engine.counts.outages == 1


async def test_after_an_outage_rows_are_there_and_all_works_again(place, engine, other):
    revision = await engine.put("a", b"1")
    async with other.watch() as rows, other.inbox("b") as inbox:
        await until_current(rows)
        await place.stop()
        await until_health(engine, is_up=False)
        await until_health(other, is_up=False)
        await place.start()
        await until_health(engine, is_up=True)
        await until_health(other, is_up=True)

        assert await engine.get("a") == Row("a", b"1", revision)
        await engine.put("a", b"2", expected=revision)
        await until_row(rows, "a", b"2")
        await engine.publish("b", [b"1"])
        assert await received(inbox, 1) == [b"1"]


async def test_after_an_outage_a_watch_says_again_that_it_is_current(place, engine):
    await engine.put("a", b"1")
    async with engine.watch() as rows:
        await until_current(rows)
        await place.stop()
        await until_health(engine, is_up=False)
        await place.start()

        assert await until_current(rows) in ({}, {"a": b"1"})


async def test_rows_of_a_store_that_came_back_empty_are_reported_as_gone(place, engine):
    first = await engine.put("a", b"1")
    await engine.put("b", b"1")
    async with engine.watch() as rows:
        await until_current(rows)
        await place.restart_empty()

        assert await until_current(rows) == {"a": None, "b": None}
        second = await engine.put("a", b"2", expected=0)
        assert await until_row(rows, "a", b"2") == Row("a", b"2", second)
    assert second > first


async def test_a_watch_that_began_in_an_outage_begins_with_the_store(place, engine):
    await engine.put("a", b"1")
    await place.stop()
    await until_health(engine, is_up=False)
    async with engine.watch() as rows, engine.inbox("b") as inbox:
        await place.start()

        assert await until_current(rows) == {"a": b"1"}
        await until_health(engine, is_up=True)
        await engine.publish("b", [b"1"])
        assert await received(inbox, 1) == [b"1"]


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


async def test_channels_end_with_the_handle(place):
    has_ended = []

    async def follow(engine, task_status):
        async with (
            engine.watch() as rows,
            engine.inbox("a") as inbox,
            engine.follow_logs() as entries,
        ):
            await until_current(rows)
            task_status.started()
            has_ended.append([batch async for batch in rows])
            has_ended.append([batch async for batch in inbox])
            has_ended.append([batch async for batch in entries])

    async with trio.open_nursery() as nursery, place.open() as engine:
        await nursery.start(follow, engine)
    assert has_ended == [[], [], []]


async def test_cancelled_calls_leave_the_handle_usable(engine, other):
    async with other.inbox("b") as inbox:
        for call in (
            lambda: engine.get("a"),
            lambda: engine.put("a", b"0"),
            lambda: engine.publish("b", [b"0"]),
        ):
            with trio.CancelScope() as scope:
                scope.cancel()
                await call()
            assert scope.cancelled_caught
        revision = await engine.put("a", b"1")
        await engine.publish("b", [b"1"])

        assert await engine.get("a") == Row("a", b"1", revision)
        assert (await received(inbox, 1))[-1] == b"1"
