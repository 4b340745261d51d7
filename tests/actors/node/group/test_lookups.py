"""A node that has not heard of a row yet looks the receiver of a message up in the engine."""

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from specs.limits.engine import ENGINE_TIMEOUT
from specs.limits.group import GROUP_LEASE, GROUP_LOOKUP_BYTES, GROUP_LOOKUPS
from specs.reply_code import DropReason
from tests.actors.node.registry.test_registry import registered
from tests.support.node.group_world import open_group, resumed
from tests.support.node.issuer import ALICE, Issuer, login_by, opened
from tests.support.node.node_peer import DR, RA, RB
from transports.engine.contract import Put
from transports.errors import LinkError

LATE = ENGINE_TIMEOUT - 0.5
"""Seconds by which a row comes late."""

NOBODY = "hyperty://a.ex/nobody"
MINE = GROUP_LOOKUPS // 8


class Late:
    """Two nodes; what is registered at the first one comes to the second one late."""

    def __init__(self, world):
        self.world = world
        self.one, self.two = world.nodes

    def rows_take(self, seconds):
        """What is registered from now on comes after so long, as do answers to reads."""
        self.world.store.slow(seconds, self.two.engine)

    async def registered(self):
        """A peer of the first node, and its address, of which the second one has no row yet."""
        self.rows_take(LATE)
        bob = await self.one.peer(RB)
        (address,) = await bob.allocate()
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        self.rows_take(0.0)
        return bob, address


async def all_answered(bob, requests):
    with trio.fail_after(1):
        for request in requests:
            heard = await bob.hear()
            assert (heard.id, heard.from_) == (request.id, request.from_)
            await bob.post_answer(heard, 200)


@pytest.mark.parametrize("to", ["{address}", "{address}/subscription", f"{RB}/sm"])
async def test_a_receiver_is_found_whose_rows_come_late(to, autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice = await late.two.peer(RA)
        bob, address = await late.registered()
        request = await alice.post("read", f"{RA}/sm", to.format(address=address))
        await all_answered(bob, [request])
        assert (await alice.hear()).code == 200
        ops = late.two.ops(actor="bus", id=request.id, to=request.to, type="read")
        assert ops[:4] == ["rcv", "admit", "queue", "flush"]


async def test_an_answer_finds_a_requester_whose_rows_come_late(autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice = await late.two.peer(RA)
        bob, address = await late.registered()
        with trio.fail_after(1):
            request = await bob.post("read", address, f"{RA}/sm")
            await alice.post_answer(await alice.hear(), 200)
            answer = await bob.hear()
        assert (answer.id, answer.code) == (request.id, 200)


@pytest.mark.parametrize("durable", [{}, {"durable": True}])
async def test_a_receiver_is_found_of_which_only_the_session_comes_late(durable, autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice = await late.two.peer(RA)
        late.rows_take(LATE)
        bob = await late.one.peer(RB)
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        (address,) = await bob.allocate()
        await wait_all_tasks_blocked()
        with trio.fail_after(1):
            request = await alice.post("read", f"{RA}/sm", address, **durable)
            if durable:
                assert (await alice.hear()).code == 202
            assert (await bob.hear()).id == request.id


async def test_messages_keep_their_order_when_the_row_comes_before_its_read_is_answered(
    autojump_clock,
):
    async with open_group() as world:
        late = Late(world)
        alice, bob = await late.two.peer(RA), await late.one.peer(RB)
        late.rows_take(0.2)
        (address,) = await bob.allocate()
        late.rows_take(1.0)
        sent = [(await alice.post("read", f"{RA}/sm", address)).id for _ in range(5)]
        await trio.sleep(0.5)
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        sent += [(await alice.post("read", f"{RA}/sm", address)).id for _ in range(5)]
        with trio.fail_after(1):
            assert [(await bob.hear()).id for _ in sent] == sent


async def test_what_comes_while_a_row_is_read_is_not_refused_for_that(autojump_clock):
    """The address may have been registered since."""
    async with open_group() as world:
        late = Late(world)
        alice, bob = await late.two.peer(RA), await late.one.peer(RB)
        read, reads = late.two.engine.get, []

        async def slow_answer(key):
            row = await read(key)
            reads.append(key)
            await trio.sleep(0.5)
            return row

        late.two.engine.get = slow_answer
        early = await alice.post("read", f"{RA}/sm", address := f"{RB[:-2]}new/sm")
        await wait_all_tasks_blocked()
        late.rows_take(LATE)
        bob = await late.one.peer(address.removesuffix("/sm"))
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        requests = [await alice.post("read", f"{RA}/sm", address) for _ in range(5)]
        with trio.fail_after(2):
            answer = await alice.hear()
            assert (answer.id, answer.code) == (early.id, 404)
            assert [(await bob.hear()).id for _ in requests] == [one.id for one in requests]
        assert len(reads) == 2


async def test_what_nobody_has_is_refused_or_counted(autojump_clock):
    async with open_group() as world:
        two = world.nodes[1]
        alice = await two.peer(RA)
        (own,) = await alice.allocate()
        for to in (NOBODY, f"{own[:-1]}/subscription", f"{RB}/sm", f"hyperty://a.ex/{'x' * 1500}"):
            answer = await alice.ask("read", f"{RA}/sm", to)
            assert (answer.code, answer.body["description"]) == (404, "no session owns address")
        await alice.post("update", own, f"{NOBODY}/events", value=1)
        await alice.post("update", own, f"{own}/changes", value=1)
        assert (await alice.ask("read", f"{RA}/sm", NOBODY)).code == 404
        assert two.node.counters.drops == {DropReason.NO_TARGET: 2}


async def test_a_sender_is_told_that_the_engine_cannot_be_asked(autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice = await late.two.peer(RA)
        late.rows_take(ENGINE_TIMEOUT + 1)
        slow = await alice.post("read", f"{RA}/sm", NOBODY)
        with trio.fail_after(ENGINE_TIMEOUT + 0.5):
            answer = await alice.hear()
        assert (answer.id, answer.code) == (slow.id, 503)
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        world.store.stop(late.two.engine)
        answer = await alice.ask("read", f"{RA}/sm", NOBODY)
        assert answer.code == 503
        assert answer.body["description"] == "the engine of the domain cannot be reached now"
        world.store.start(late.two.engine)
        await trio.sleep(1)
        assert (await alice.ask("read", f"{RA}/sm", NOBODY)).code == 404


async def test_what_waits_is_refused_when_the_reader_of_rows_is_started_again(autojump_clock):
    async with open_group() as world:
        two = world.nodes[1]
        alice, read = await two.peer(RA), two.engine.get

        async def crash(_):
            two.engine.get = read
            raise RuntimeError("a defect")

        two.engine.get = crash
        request = await alice.post("read", f"{RA}/sm", NOBODY)
        with pytest.raises(LinkError):
            await alice.hear()
        alice = await resumed(two, RA, alice.token)
        with trio.fail_after(1):
            answer = await alice.hear()
        assert (answer.id, answer.code) == (request.id, 503)
        assert (await alice.ask("read", f"{RA}/sm", NOBODY)).code == 404


async def test_nothing_waits_at_a_node_that_was_fenced(autojump_clock):
    """Its links are cut, so that the sender gets its own timeout."""
    async with open_group() as world:
        two = world.nodes[1]
        alice, read = await two.peer(RA), two.engine.get
        asked = trio.Event()

        async def no_answer(_):
            asked.set()
            await trio.sleep_forever()

        two.engine.get = no_answer
        request = await alice.post("read", f"{RA}/sm", NOBODY)
        await asked.wait()
        world.store.stop(two.engine)
        with pytest.raises(LinkError), trio.fail_after(GROUP_LEASE):
            await alice.hear()
        ops = two.ops(actor="bus", id=request.id, to=NOBODY)
        assert ops == ["rcv", "admit", "queue", "flush"]
        two.engine.get = read
        world.store.start(two.engine)
        await trio.sleep(GROUP_LEASE)
        alice = await resumed(two, RA, alice.token)
        assert (await alice.ask("read", f"{RA}/sm", NOBODY)).code == 404


async def read_record(peer, url):
    return await peer.ask("read", f"{peer.runtime}/registry", DR, resource=url)


async def test_a_record_is_found_whose_row_comes_late(autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice, bob = await late.two.peer(RA), await late.one.peer(RB)
        assert (await read_record(alice, NOBODY)).code == 404
        late.rows_take(LATE)
        url = await registered(bob)
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        with trio.fail_after(1):
            answer = await read_record(alice, url)
        assert (answer.code, answer.body["value"]["url"]) == (200, url)
        await trio.sleep(LATE)
        assert (await read_record(alice, url)).body["value"] == answer.body["value"]
        world.store.stop(late.two.engine)
        answer = await read_record(alice, NOBODY)
        assert answer.code == 503
        assert answer.body["description"] == "the records of other nodes cannot be read now"


async def test_a_record_that_is_removed_while_it_is_looked_up_does_not_come_back(autojump_clock):
    async with open_group() as world:
        late = Late(world)
        alice, bob = await late.two.peer(RA), await late.one.peer(RB)
        read = late.two.engine.get

        async def slow_answer(key):
            row = await read(key)
            await trio.sleep(2 * LATE)
            return row

        late.rows_take(LATE)
        url = await registered(bob)
        await trio.testing.wait_all_tasks_blocked()  # the row is on its slow way
        late.rows_take(0.0)
        late.two.engine.get = slow_answer
        codes = []

        async def ask():
            codes.append((await read_record(alice, url)).code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            await late.one.engine.put_all((Put(f"record/{url}", None),))
        late.two.engine.get = read
        codes.append((await read_record(alice, url)).code)
        assert codes == [404, 404]


@pytest.mark.parametrize(
    ("sent", "value", "waiting"),
    [(MINE + 50, [], MINE), (25, ["x" * 15_000] * 4, GROUP_LOOKUP_BYTES // 4 // 60_150)],
    ids=["in number", "in bytes"],
)
async def test_one_sender_has_a_share_of_what_may_wait(sent, value, waiting, autojump_clock):
    async with open_group() as world:
        late = Late(world)
        mallory, alice = await late.two.peer(f"{RB}m"), await late.two.peer(RA)
        (own,) = await mallory.allocate()
        late.rows_take(1.0)
        for number in range(sent):
            await mallory.post("read", own, f"{NOBODY}{number % 2}", value=value)
        answers = [await mallory.hear() for _ in range(sent - waiting)]
        assert {one.code for one in answers} == {503}
        begin = trio.current_time()
        assert (await alice.ask("read", f"{RA}/sm", f"{NOBODY}0")).code == 404
        assert trio.current_time() < begin + 2.5
        assert {(await mallory.hear()).code for _ in range(waiting)} == {404}
        # All of it is free again.
        assert (await mallory.ask("read", own, NOBODY)).code == 404


async def test_the_sessions_of_one_user_share_what_may_wait(autojump_clock):
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        late = Late(world)
        first, second = [await late.two.outsider(one) for one in (RA, RB)]
        for peer in (first, second):
            assert (await opened(peer, issuer.token(sub=ALICE, jti=peer.runtime))).code == 200
        late.rows_take(1.0)
        for number in range(MINE):
            await first.post("read", f"{RA}/sm", f"{NOBODY}{number % 2}")
        assert (await second.ask("read", f"{RB}/sm", f"{NOBODY}0")).code == 503
