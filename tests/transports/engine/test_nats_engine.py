"""Rows in NATS through trouble: a server that is killed, stopped, cut off, or lost something."""

import itertools
import json
import re
import subprocess
import sys

import pytest
import trio
import trio.lowlevel

from specs.limits.engine import NATS_UNSENT, PUBLISHED_BYTES, ROW_VALUE
from tests.support.command import ROOT
from tests.support.nats_server import needs_server, run_server
from tests.transports.engine.engines import NatsPlace, until_current, until_health, until_row
from tests.transports.engine.nats_keys import USER, Key
from transports.engine.contract import Append, EngineDownError, LogFullError, Put, Row
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


# --- who can be reached ---------------------------------------------------------------------------


async def test_a_server_without_jetstream_is_no_engine():
    with run_server(has_stream=False) as server:
        async with open_engine(Terms((ServerUrl.read(server.url),)), "a.example") as engine:
            while "JetStream" not in engine.health.problem:
                await engine.health_changed()


def test_groups_have_buckets_of_their_own():
    groups = ["a.example", "a_example", "a-example:8", "A.example", "a.example_8"]
    buckets = [bucket_of(one) for one in groups]
    assert len(set(buckets)) == len(groups)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", one) for one in buckets)


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


# --- a server that is slow ------------------------------------------------------------------------


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


# --- what others do to the bucket -----------------------------------------------------------------


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
