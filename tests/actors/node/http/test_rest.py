"""A link made of requests, at a node in memory: who dawdles, vanishes, comes too often (CON-06)."""

import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import attrs
import pytest
import trio

from actors.http.config import HttpConfig
from actors.node.http.rest_link import RestLink
from actors.node.limits import DEFAULT_LIMITS
from actors.runtime.stubs.rest_wire import http_over
from fsm.limits.rates import Rate
from specs.limits.node import REST_CURSOR_WAIT, REST_POSTS
from specs.limits.protocol import HANDSHAKE_TIMEOUT, PING_PERIOD, PONG_TIMEOUT, WRITE_TIMEOUT
from specs.reply_code import LinkEnd
from tests.support.node.key_holder import KeyHolder
from tests.support.node.node_peer import RA, RB, SESSION, open_world
from transports.link import Guest, Kind

THERE, UA = f"{RA}/there", f"{RB}/ua"
STREAM = {"accept": "text/event-stream"}


class Reader:
    """A runtime that asks for itself."""

    def __init__(self, world):
        self.world = world
        self.token = ""

    async def ask(self, *asked):
        """Ask over a connection of its own."""
        http = self.http()
        answer = await http.ask(*asked)
        await http.aclose()
        return answer

    def http(self):
        http = http_over(self.world.network, self.world.node.rest_url)
        if self.token:
            http.bear(self.token)
        return http

    async def control(self, method, path="/session", **params):
        body = {"method": method, "params": {"runtimeURL": RA, **params}}
        message = {
            "id": 1, "type": "execute", "from": f"{RA}/stub", "to": SESSION, "body": body,
        }  # fmt: skip
        answer = await self.ask("POST", path, json.dumps(message).encode())
        value = json.loads(answer.body).get("body", {}).get("value") or {}
        self.token = value.get("sessionToken", self.token)
        return answer

    async def open(self):
        answer = await self.control("open")
        assert answer.status == 200, answer
        return self

    async def poll(self, after):
        answer = await self.ask("GET", f"/messages?after={after}")
        lines = answer.body.splitlines() if answer.status == 200 else []
        return answer.status, [json.loads(line)["body"].get("n") for line in lines]


@asynccontextmanager
async def served(**config):
    http = HttpConfig("127.0.0.1:0", rest=True)
    async with open_world(http=http, **config) as world:
        yield world, Reader(world)


async def reported(world, *numbers):
    peer = await world.peer(RB)
    for number in numbers:
        await peer.post("create", UA, THERE, n=number)
    await trio.testing.wait_all_tasks_blocked()
    return peer


async def test_a_poll_waits_and_is_answered_at_once(autojump_clock):
    async with served() as (world, reader):
        await reader.open()
        peer = await world.peer(RB)
        async with trio.open_nursery() as nursery:
            before = trio.current_time()

            async def poll():
                assert await reader.poll(0) == (200, [7])
                assert trio.current_time() == before + 5

            nursery.start_soon(poll)
            await trio.sleep(5)
            await peer.post("create", UA, THERE, n=7)


async def test_a_poll_that_waits_long_is_answered_with_nothing(autojump_clock):
    """A new one shows that the runtime is there."""
    async with served() as (world, reader):
        await reader.open()
        for _ in range(4):
            before = trio.current_time()
            assert await reader.poll(0) == (200, [])
            assert trio.current_time() - before <= PING_PERIOD
        assert await world.states() == {RA: "open"}


async def test_a_client_that_stops_polling_is_found_in_time(autojump_clock):
    """R8."""
    async with served() as (world, reader):
        await reader.open()
        await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 0.1)
        assert await world.states() == {RA: "detached"}
        assert world.ended() == {LinkEnd.SILENT: 1}
        assert (await reader.poll(0))[0] == 410


async def test_unread_messages_wait_for_the_next_link(autojump_clock):
    """MN-06, L1: given up as too slow, and nothing is lost."""
    async with served() as (world, reader):
        await reader.open()
        await reported(world, 1, 2, 3)
        await trio.sleep(WRITE_TIMEOUT + 1)
        assert world.ended() == {LinkEnd.SLOW_CONSUMER: 1}
        assert (await reader.control("re-open", token=reader.token)).status == 200
        read = []
        while len(read) < 3:
            read += (await reader.poll(len(read)))[1]
        assert read == [1, 2, 3]


async def test_a_stream_ends_without_acknowledgements(autojump_clock):
    async with served() as (world, reader):
        await reader.open()
        await reported(world, 1)
        before = trio.current_time()
        answer = await reader.http().open("GET", "/messages", headers=STREAM)
        parts = [part async for part in whole(answer)]
        assert b"id: 1\ndata: " in b"".join(parts)
        assert trio.current_time() - before == REST_CURSOR_WAIT


async def test_a_stream_goes_on_while_it_is_said_what_was_read(autojump_clock):
    async with served() as (world, reader):
        await reader.open()
        answer = await reader.http().open("GET", "/messages", headers=STREAM)
        assert (await answer.next()).startswith(b"retry: ")
        peer = await world.peer(RB)
        for number in range(1, 5):
            await peer.post("create", UA, THERE, n=number)
            assert (await answer.next()).startswith(b"id: %d\n" % number)
            posted = await reader.ask("POST", f"/messages?after={number}")
            assert posted.status == 202
            await trio.sleep(5)
        await answer.aclose()


async def whole(stream):
    while part := await stream.next():
        yield part


async def test_an_ending_node_answers_all_waiting_polls(autojump_clock):
    """MN-07: 410 at once."""
    reported = []
    async with trio.open_nursery() as nursery, served() as (_, reader):
        await reader.open()

        async def poll():
            reported.append((await reader.poll(0))[0])

        nursery.start_soon(poll)
        await trio.testing.wait_all_tasks_blocked()
    assert reported == [410]


async def test_a_client_that_polls_too_often_is_refused(autojump_clock):
    """L5: 429."""
    limits = attrs.evolve(DEFAULT_LIMITS, handshakes=Rate(1.0, 2))
    async with served(limits=limits) as (_, reader):
        statuses = [(await reader.control("open")).status for _ in range(4)]
        assert statuses == [200, 409, 429, 429]


async def test_posts_wait_while_too_much_is_sent_and_do_not_pile_up(autojump_clock):
    """L5: what comes too fast is taken later, and only so many posts wait for that."""
    limits = attrs.evolve(DEFAULT_LIMITS, messages=Rate(1.0, 1))
    async with served(limits=limits) as (_, reader):
        await reader.open()
        line = json.dumps({"id": 1, "type": "read", "from": THERE, "to": UA, "body": {}})
        statuses = []

        async def post():
            statuses.append((await reader.ask("POST", "/messages", line.encode())).status)

        async with trio.open_nursery() as nursery:
            for _ in range(REST_POSTS + 4):
                nursery.start_soon(post)
        assert statuses.count(429) >= 1
        assert statuses.count(202) >= REST_POSTS


async def test_a_refused_open_leaves_no_link(autojump_clock):
    async with served() as (world, reader):
        peer = await world.peer(RA)
        assert (await reader.control("open")).status == 409
        await trio.testing.wait_all_tasks_blocked()
        assert world.ended() == {LinkEnd.LEFT: 1}
        assert peer.token


async def test_a_close_is_answered_and_the_session_gone(autojump_clock):
    """MN-07, M-16."""
    async with served() as (world, reader):
        await reader.open()
        await reported(world, 1)
        answer = await reader.control("close")
        assert (answer.status, json.loads(answer.body)["body"]) == (200, {"code": 200})
        assert RA not in await world.states()
        assert (await reader.control("close")).status == 410


async def test_of_a_batch_that_was_read_in_part_the_rest_comes_again(autojump_clock):
    """MN-06."""
    async with served() as (world, reader):
        await reader.open()
        await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 1)
        await reported(world, 1, 2, 3)
        assert (await reader.control("re-open", token=reader.token)).status == 200
        assert await reader.poll(0) == (200, [1, 2, 3])
        assert await reader.poll(1) == (200, [2, 3])
        again = await reader.control("re-open", "/session?after=2", token=reader.token)
        assert again.status == 200
        assert await reader.poll(0) == (200, [3])


@pytest.mark.parametrize("method", ["open", "re-open"])
async def test_a_client_that_returns_before_its_old_link_ends_gets_all_messages(
    autojump_clock, method
):
    """MN-04, MN-06: what was read is said with the re-open, the rest is given again, once."""
    async with served() as (world, reader):
        await reader.open()
        await reported(world, 1, 2, 3)
        _, read = await reader.poll(0)
        again = await reader.control(method, f"/session?after={len(read)}", token=reader.token)
        assert again.status == 200
        rest = []
        while len(read) + len(rest) < 3:
            rest += (await reader.poll(len(rest)))[1]
        assert read + rest == [1, 2, 3]


# ---- who has no session


HEAD_OF_A_POST = (
    "POST /rest/messages HTTP/1.1\r\nhost: a.ex\r\ncontent-length: 200000\r\n{more}\r\n"
)


async def status_line(link):
    said = b""
    while b"\r\n" not in said:
        said += await link.receive()
    return int(said.split()[1])


@pytest.mark.parametrize(
    ("more", "status"), [("", 401), ("authorization: Bearer guessed\r\n", 410)]
)
async def test_no_body_is_read_for_a_request_without_a_session(more, status, autojump_clock):
    """L5: the answer comes before the body, of which nothing was read."""
    async with served() as (world, _):
        place = urlsplit(world.node.rest_url).netloc
        async with await world.network.dial(Kind.STREAM, place) as link:
            before = trio.current_time()
            await link.send(HEAD_OF_A_POST.format(more=more).encode())
            assert await status_line(link) == status
            assert trio.current_time() == before


async def test_nor_for_unrequested_streams(autojump_clock):
    async with served() as (world, _):
        place = urlsplit(world.node.rest_url).netloc
        async with await world.network.dial(Kind.STREAM, place) as link:
            before = trio.current_time()
            await link.send(HEAD_OF_A_POST.format(more="").replace("POST", "PUT").encode())
            assert await status_line(link) == 405
            assert trio.current_time() == before


async def test_a_ping_is_no_answer_to_control_of_a_session(autojump_clock):
    """Who waits for an answer goes on waiting: nothing is there to be taken."""
    link = RestLink("rest-1", Guest())
    taken = []

    async def take():
        taken.append(await link.take(link.begin()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        link.ping()
        await trio.testing.wait_all_tasks_blocked()
        assert taken == []
        await link.send_many([b"{}"])
    assert taken == [b"{}"]


# ---- with a key (RFC 7800)


async def challenged(reader, holder):
    answer = await reader.control("open", key=holder.public)
    assert answer.status == 401
    return json.loads(answer.body)["body"]["value"]["challenge"]


async def proven(reader, holder, challenge):
    proof = holder.proof(challenge, RA, None, "open")
    return await reader.control("open", key=holder.public, proof=proof)


async def test_a_proof_is_sent_with_the_challenge_as_the_bearer_token(autojump_clock):
    async with served() as (world, reader):
        holder = KeyHolder()
        reader.token = challenge = await challenged(reader, holder)
        answer = await proven(reader, holder, challenge)
        assert answer.status == 200
        assert "statement" in json.loads(answer.body)["body"]["value"]
        assert (await reader.control("close")).status == 200
        await trio.testing.wait_all_tasks_blocked()
        assert await world.states() == {}


async def test_a_proof_without_the_challenge_comes_by_another_link(autojump_clock):
    async with served() as (_, reader):
        holder = KeyHolder()
        challenge = await challenged(reader, holder)
        assert (await proven(reader, holder, challenge)).status == 401
        reader.token = challenge[::-1]
        assert (await proven(reader, holder, challenge)).status == 401


async def test_a_challenge_finds_its_link_once(autojump_clock):
    async with served() as (_, reader):
        holder = KeyHolder()
        reader.token = challenge = await challenged(reader, holder)
        bad = await reader.control("open", key=holder.public, proof="A" * 86)
        assert bad.status == 401
        assert (await proven(reader, holder, challenge)).status == 401


async def test_a_client_that_never_proves_its_key_leaves_no_link(autojump_clock):
    async with served() as (world, reader):
        for _ in range(5):
            await challenged(reader, KeyHolder())
        await trio.sleep(HANDSHAKE_TIMEOUT + 1)
        assert sum(world.ended().values()) == 5
