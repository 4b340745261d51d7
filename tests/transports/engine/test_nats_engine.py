"""Rows in NATS through trouble: a server that is killed, stopped, cut off, or lost something."""

import itertools
import json
import re
import subprocess
import sys

import pytest
import trio
import trio.lowlevel

from specs.limits.engine import (
    ENGINE_TIMEOUT,
    LOG_UNITS,
    NATS_UNSENT,
    PUBLISHED_BYTES,
    ROW_VALUE,
)
from tests.support.command import ROOT
from tests.support.nats_keys import USER, Key
from tests.support.nats_server import needs_server, run_server
from tests.support.ports import free_port
from tests.transports.engine.engines import (
    NatsPlace,
    received,
    until_current,
    until_health,
    until_row,
)
from tests.transports.engine.proxy import open_proxy
from transports.engine.contract import (
    Append,
    ConflictError,
    Current,
    EngineDownError,
    LogFullError,
    Put,
    Row,
)
from transports.engine.nats import open_engine
from transports.engine.nats_rows import bucket_of
from transports.nats.client import Missing, NatsClient, Request
from transports.nats.connection import ServerUrl, Terms
from transports.nats.wire import Credentials
from transports.sockets import open_background

pytestmark = needs_server


@pytest.fixture
def place(server):
    return NatsPlace(server)


async def api(engine, what: str, payload: bytes = b"") -> None:
    """Have the server do something that no engine does."""
    await engine.stream.client.ask(Request(f"$JS.API.{what}".encode(), payload))


# --- who can be reached ---------------------------------------------------------------------------


async def test_of_several_servers_one_that_is_there_is_used(server):
    dead = ServerUrl.read(f"nats://127.0.0.1:{free_port()}")
    terms = Terms((dead, ServerUrl.read(server.url)))
    async with open_engine(terms, "several.example") as engine:
        await until_health(engine, is_up=True)
        await engine.put("a", b"1")


async def test_what_is_wrong_is_said_until_it_is_right():
    url = ServerUrl.read(f"nats://127.0.0.1:{free_port()}")
    async with open_engine(Terms((url,)), "a.example") as engine:
        while "connection refused" not in engine.health.problem:
            await engine.health_changed()
        with pytest.raises(EngineDownError, match="connection refused"):
            await engine.put("a", b"1")


async def test_a_server_without_jetstream_is_no_engine():
    with run_server(has_stream=False) as server:
        async with open_engine(Terms((ServerUrl.read(server.url),)), "a.example") as engine:
            while "JetStream" not in engine.health.problem:
                await engine.health_changed()


async def test_a_bucket_with_other_settings_is_left_alone(place):
    async with place.open() as engine:
        name = f"KV_{bucket_of('other.example')}"
        subjects = f"$KV.{bucket_of('other.example')}.>"
        await api(
            engine,
            f"STREAM.CREATE.{name}",
            b'{"name":"%b","subjects":["%b"]}' % (name.encode(), subjects.encode()),
        )
        async with open_engine(place.terms, "other.example") as other:
            while "made by another program" not in other.health.problem:
                await other.health_changed()


def test_groups_have_buckets_of_their_own():
    groups = ["a.example", "a_example", "a-example:8", "A.example", "a.example_8"]
    buckets = [bucket_of(one) for one in groups]
    assert len(set(buckets)) == len(groups)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", one) for one in buckets)


async def test_groups_on_one_server_see_nothing_of_each_other(place):
    neighbour = NatsPlace(place.server)
    async with place.open() as engine, neighbour.open() as other:
        await engine.put("a", b"1")
        async with other.watch() as rows, other.inbox("n") as inbox:
            await engine.publish("n", [b"1"])
            assert await rows.receive() == [Current()]
            assert await other.get("a") is None
            await other.publish("n", [b"2"])
            assert await received(inbox, 1) == [b"2"]


# --- a server that is killed ----------------------------------------------------------------------


class Writer:
    """Creates rows for ever, and remembers what has become of each."""

    def __init__(self, engine):
        self.engine = engine
        self.done = {}
        self.unknown = set()
        self.failed = set()
        self.moved = trio.Event()

    async def run(self, name):
        for number in itertools.count():
            key = f"row/{name}/{number}"
            try:
                self.done[key] = await self.engine.put(key, b"1", expected=0)
            except EngineDownError as exc:
                (self.unknown if exc.is_unknown else self.failed).add(key)
                await until_health(self.engine, is_up=True)
            self.moved.set()

    async def until_done(self, count):
        while len(self.done) < count:
            self.moved = trio.Event()
            await self.moved.wait()


async def test_no_write_that_was_answered_is_lost_by_a_killed_server(place):
    """What was unknown is written or not; what failed is not."""
    async with place.open() as engine, place.open() as other:
        writer = Writer(engine)
        async with open_background() as nursery:
            for name in range(4):
                nursery.start_soon(writer.run, name)
            for turn in range(1, 4):
                await writer.until_done(turn * 100)
                place.server.kill()
                await until_health(engine, is_up=False)
                place.server.start()
                await until_health(engine, is_up=True)
        await until_health(other, is_up=True)
        async with other.watch() as rows:
            there = set(await until_current(rows))

    assert engine.counts.outages == 3
    assert there >= set(writer.done)
    assert not there & writer.failed
    assert len(there - set(writer.done) - writer.unknown) <= 4  # cancelled in the end


class Appender:
    """Adds numbers to a log until it is full, and remembers what has become of each."""

    def __init__(self, engine):
        self.engine = engine
        self.done = []
        self.unknown = set()

    async def run(self):
        for number in itertools.count():
            (written,) = await self.engine.append_all([Append("a/b", b"%d" % number)])
            match written:
                case int():
                    self.done.append((written, b"%d" % number))
                case LogFullError():
                    return
                case EngineDownError(is_unknown=is_unknown):
                    self.unknown |= {b"%d" % number} if is_unknown else set()
                    await until_health(self.engine, is_up=True)


async def test_no_entry_that_was_appended_is_lost_by_a_killed_server(place):
    """Those that were appended are there, in order; what was unknown is there or not."""
    async with place.open() as engine, place.open() as other, other.follow_logs() as news:
        appender, reached = Appender(engine), 0
        async with open_background() as nursery:
            nursery.start_soon(appender.run)
            for turn in range(1, 4):
                while len(appender.done) < turn * 50:
                    reached = (await news.receive())[-1][1]
                place.server.kill()
                await until_health(engine, is_up=False)
                place.server.start()
                await until_health(engine, is_up=True)
        await until_health(other, is_up=True)
        (last,) = await engine.append_all([Append("a/last", b"")])
        while reached != last:
            reached = (await news.receive())[-1][1]
        found = await other.fetch("a/b", 0, LOG_UNITS)

    read = [(one.position, one.payload) for one in found]
    known = [one for one in read if one[1] not in appender.unknown]
    assert read == sorted(set(read))
    assert known[: len(appender.done)] == appender.done
    assert len(known) <= len(appender.done) + 1  # the one that was cancelled


class Mirror:
    """What a watch has given, which must come by revision."""

    def __init__(self):
        self.rows = {}
        self.moved = trio.Event()

    async def follow(self, engine):
        async with engine.watch() as rows:
            async for batch in rows:
                for row in batch:
                    if isinstance(row, Row):
                        before = self.rows.get(row.key)
                        assert before is None or row.revision > before.revision
                        self.rows[row.key] = row
                self.moved.set()

    async def until(self, key, revision):
        while key not in self.rows or self.rows[key].revision < revision:
            self.moved = trio.Event()
            await self.moved.wait()

    def values(self):
        return {key: row.value for key, row in self.rows.items() if row.value is not None}


async def change(engine, name):
    """Write and delete rows, whatever becomes of it."""
    for number in range(60):
        await engine.put_all(
            [Put(f"row/{number % 20}", None if number % 7 == 3 else f"{name}-{number}".encode())]
        )


async def values_of(engine):
    async with engine.watch() as rows:
        return {key: one for key, one in (await until_current(rows)).items() if one is not None}


async def test_a_watch_over_killed_servers_ends_at_what_is_there(place):
    mirror = Mirror()
    async with place.open() as engine, place.open() as other, open_background() as nursery:
        nursery.start_soon(mirror.follow, other)
        for turn in range(3):
            async with trio.open_nursery() as changes:
                changes.start_soon(change, engine, f"during {turn}")
                await trio.sleep(0.01 * turn)  # real time: any moment will do
                place.server.kill()
                await until_health(engine, is_up=False)
            place.server.start()
            await until_health(engine, is_up=True)
            await change(engine, f"after {turn}")
        await mirror.until("last", await engine.put("last", b""))

        assert mirror.values() == await values_of(engine)


async def test_a_killed_server_that_lost_all_gives_higher_revisions(place):
    async with place.open() as engine:
        before = await engine.put("a", b"1")
        await place.restart_empty()
        await until_health(engine, is_up=False)
        await until_health(engine, is_up=True)

        assert await engine.put("a", b"2", expected=0) > before
        with pytest.raises(ConflictError):
            await engine.put("a", b"3", expected=before)


async def test_payloads_that_a_killed_server_may_have_lost_are_counted(place):
    async with place.open() as engine, place.open() as other, other.inbox("n") as inbox:
        await engine.publish("n", [b"1", b"2"])
        await received(inbox, 2)
        await engine.stream.client.flush()
        place.server.pause()
        await engine.publish("n", [b"3", b"4", b"5"])
        place.server.kill()
        await until_health(engine, is_up=False)

        assert engine.counts.unsure == 3


# --- a server that is slow ------------------------------------------------------------------------


async def test_a_stopped_server_is_noticed_and_found_again(place):
    async with place.open() as engine, engine.watch() as rows, engine.inbox("n") as inbox:
        await until_current(rows)
        place.server.pause()
        began = trio.current_time()
        try:
            with pytest.raises(EngineDownError) as caught:
                await engine.put("a", b"1")
            assert trio.current_time() - began < 2 * ENGINE_TIMEOUT
            assert caught.value.is_unknown
            await until_health(engine, is_up=False)
        finally:
            place.server.go_on()
        await until_health(engine, is_up=True)
        await engine.put("b", b"1")
        await until_row(rows, "b", b"1")
        await engine.publish("n", [b"1"])
        assert await received(inbox, 1) == [b"1"]


async def test_a_server_that_takes_nothing_fills_no_memory(place):
    async def publish(engine):
        while True:
            await engine.publish("n", [b"x" * PUBLISHED_BYTES])
            assert engine.stream.client.unsent <= NATS_UNSENT + 2 * PUBLISHED_BYTES

    async with place.open() as engine:
        place.server.pause()
        try:
            with pytest.raises(EngineDownError):
                await publish(engine)
            await until_health(engine, is_up=False)
        finally:
            place.server.go_on()
        await until_health(engine, is_up=True)
        await engine.put("a", b"1")


async def test_a_publisher_waits_for_a_server_that_takes_nothing_now(place):
    async with place.open() as engine, trio.open_nursery() as nursery:
        client = engine.stream.client
        place.server.pause()
        try:
            for _ in range(40):
                nursery.start_soon(engine.publish, "n", [b"x" * PUBLISHED_BYTES])
            while client.unsent <= NATS_UNSENT:  # noqa: ASYNC110 - nothing says when
                await trio.sleep(0.001)
        finally:
            place.server.go_on()


# --- a connection that is cut ---------------------------------------------------------------------


async def test_connections_that_are_cut_lose_no_row(place):
    """Each cut is at another byte of what comes."""
    mirror = Mirror()
    async with open_proxy(place.server.port) as proxy, place.open() as other:
        terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{proxy.port}"),))
        async with open_engine(terms, place.group) as engine, open_background() as nursery:
            await until_health(engine, is_up=True)
            nursery.start_soon(mirror.follow, engine)
            for turn in range(10):
                proxy.cut_after(997 * turn)
                await change(other, turn)
                await mirror.until("last", await other.put("last", b""))

            assert mirror.values() == await values_of(other)
            assert engine.counts.outages == proxy.cuts > 5


async def test_a_connection_that_is_dead_both_ways_is_given_up(place):
    async with open_proxy(place.server.port) as proxy:
        terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{proxy.port}"),))
        async with open_engine(terms, place.group) as engine:
            await until_health(engine, is_up=True)
            proxy.hold()
            await until_health(engine, is_up=False)
            proxy.go_on()
            await until_health(engine, is_up=True)
            await engine.put("a", b"1")


# --- what others do to the bucket -----------------------------------------------------------------


async def test_a_bucket_that_somebody_deletes_is_made_again(place):
    async with place.open() as engine, engine.watch() as rows:
        await until_current(rows)
        before = await engine.put("a", b"1")
        await until_row(rows, "a", b"1")
        await api(engine, f"STREAM.DELETE.{engine.stream.rows}")
        assert await until_current(rows) == {"a": None}

        written = EngineDownError("not yet")
        while not isinstance(written, int):
            (written,) = await engine.put_all([Put("a", b"2", expected=0)])
        assert written > before
        await until_row(rows, "a", b"2")


async def test_a_consumer_that_somebody_deletes_is_made_again(place):
    async with place.open() as engine, engine.watch() as rows:
        await engine.put("a", b"1")
        await until_row(rows, "a", b"1")
        client = engine.stream.client
        name = engine.stream.rows.encode()
        listed = await client.ask(Request(b"$JS.API.CONSUMER.NAMES.%b" % name))
        for token in json.loads(listed.payload)["consumers"]:
            await client.ask(Request(b"$JS.API.CONSUMER.DELETE.%b.%b" % (name, token.encode())))
        await engine.put("b", b"1")
        await until_row(rows, "b", b"1")


async def test_a_server_with_a_full_disk_refuses_and_recovers(tmp_path):
    (tmp_path / "nats.conf").write_text("jetstream { max_file_store: 300KB }\n")
    with run_server("-c", str(tmp_path / "nats.conf")) as server:
        async with open_engine(Terms((ServerUrl.read(server.url),)), "a.example") as engine:
            await until_health(engine, is_up=True)
            await engine.put("a", b"1")
            written = await engine.put_all(
                [Put(f"row/{number}", b"x" * 100_000) for number in range(10)]
            )
            refused = [one for one in written if isinstance(one, EngineDownError)]
            assert 0 < len(refused) < 10
            assert {("JetStream refuses" in one.reason, one.is_unknown) for one in refused} == {
                (True, False)
            }
            assert (await engine.get("a")).value == b"1"


async def test_what_a_user_may_not_do_is_said_and_counted(tmp_path):
    """Here it may read and make streams, and write no rows."""
    key = Key(USER)
    (tmp_path / "user").write_text(key.seed)
    (tmp_path / "nats.conf").write_text(
        f"authorization {{ users: [ {{ nkey: {key.public},"
        ' permissions: { publish: { deny: "$KV.>" } } } ] }'
    )
    with run_server("-c", str(tmp_path / "nats.conf")) as server:
        credentials = Credentials.load(tmp_path / "user")
        terms = Terms((ServerUrl.read(server.url),), credentials=credentials)
        async with open_engine(terms, "a.example") as engine:
            await until_health(engine, is_up=True)
            with pytest.raises(EngineDownError, match="permissions violation for publish"):
                await engine.put("a", b"1")
            assert engine.counts.refused == 1
            assert engine.counts.outages == 0


# --- bounds ---------------------------------------------------------------------------------------


async def test_more_than_fits_in_one_crossing_goes_in_several(place):
    """Their bytes are more than the bound for what has no answer yet."""
    async with place.open() as engine, place.open() as other:
        written = await engine.put_all(
            [Put(f"row/{number}", b"x" * ROW_VALUE) for number in range(20)]
        )
        assert list(written) == sorted(written)
        async with other.watch() as rows:
            assert len(await until_current(rows)) == 20


async def test_without_a_connection_nothing_is_sent():
    client = NatsClient(Terms(()), lambda: None)
    assert list(await client.ask_all([Request(b"a")] * 2)) == [Missing.UNSENT] * 2
    await client.flush()


@pytest.mark.parametrize("module", ["actors.commands.node.command", "actors.runtime", "actors"])
def test_without_an_engine_none_of_its_code_is_imported(module):
    program = (
        f"import sys, {module}; print([one for one in sys.modules if one.startswith(('nats',"
        " 'transports.nats', 'transports.engine.nats'))])"
    )
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
