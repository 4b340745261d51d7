"""What a peer of one node, or a stranger in the engine, cannot do to the nodes of a domain."""

import json

import attrs
import pytest
import trio
import trio.testing

from actors.kit.counters import Counters, Tally
from actors.node.errors import RegistryFileError
from actors.node.group import messages
from actors.node.group.records import EngineRecords, EngineTokens, _Known
from actors.node.group.shared import Shared
from fsm.group.kinds import RowRefusal
from fsm.machines.registration import State
from fsm.registry.node_rights import Observation
from fsm.registry.records import Change, Row
from fsm.session.assertion import Use
from specs.limits.engine import INBOX_MESSAGES, PUBLISHED_BYTES, ROW_VALUE
from specs.limits.group import GROUP_ADDRESS, GROUP_BATCH
from specs.limits.node import CARRIED_PAIRS, CLOCK_SKEW, HEAD_KEPT
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.actors.node.group.test_routing import RC, observed
from tests.support.node.group_world import open_group
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import DOMAIN, DR, RA, RB, SM
from transports.codec import encode
from transports.engine.contract import Engine
from transports.engine.memory import open_memory_store

LONG_RUNTIME = f"hyperty-runtime://{DOMAIN}/{'r' * GROUP_ADDRESS}"
RD = f"hyperty-runtime://{DOMAIN}/rd"
LONG = "x" * 2 * GROUP_ADDRESS


async def test_a_name_too_long_for_the_engine_has_no_session_at_any_node(autojump_clock):
    """SEC-45."""
    async with open_group() as world:
        for member in world.nodes:
            peer = await member.outsider(LONG_RUNTIME)
            assert (await peer.control("open", runtimeURL=LONG_RUNTIME)).code == 413


async def test_a_login_by_a_name_that_is_too_long_ends_no_sessions(autojump_clock):
    """SEC-46."""
    issuer = Issuer()
    async with open_group(1, login=login_by(issuer, clock=lambda: 0.0)) as world:
        (one,) = world.nodes
        victim = await one.outsider(RA)
        await login_with(victim, issuer.token(sub=ALICE))
        other = await one.outsider(LONG_RUNTIME)
        assert (await login_with(other, issuer.token(sub=BOB))).code == 413
        assert (await victim.control("ping")).code == 200


async def test_a_long_address_has_one_owner_in_all_nodes(autojump_clock):
    """SEC-45."""
    address = f"comm://{DOMAIN}/{LONG}"
    async with open_group() as world:
        one, two = world.nodes
        owner, other = await one.peer(RA), await two.peer(RB)
        subscribed = await owner.ask("subscribe", f"{RA}/sm", SM, resources=[address])
        assert subscribed.code == 200

        await other.post("update", f"{RB}/sm", address, value=1)
        with trio.fail_after(30):
            assert (await owner.hear()).to == address


async def test_a_record_of_a_long_address_keeps_nobody_from_registering(autojump_clock):
    """SEC-46."""
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await two.peer(RB)
        long = f"{RA}/{LONG}"
        for url in (long, f"{RA}/short"):
            value = {"url": url, "user": "user://x/a", "runtime": RA, "status": "live"}
            assert (await peer.ask("create", f"{RA}/registry", DR, value=value)).code == 200

        async def is_found() -> bool:
            return (await other.ask("read", f"{RB}/registry", DR, resource=long)).code == 200

        await world.until(is_found)


def records_of(engine: Engine) -> EngineRecords:
    return EngineRecords(engine, lambda key: True, Counters())


class News:
    """What a node hears of the records of others."""

    def __init__(self) -> None:
        self.heard: list[Change] = []

    async def take(self, mirrors, is_current) -> None:
        self.heard += mirrors


def kept(row: Row) -> Change:
    return row.url, row


async def heard_by(records: EngineRecords) -> list[Change]:
    """What a registry hears that begins to follow now."""
    news = News()
    with trio.move_on_after(1):
        await records.follow(news.take)
    return news.heard


@pytest.mark.parametrize("url", [f"{RA}/short", f"{RA}/{LONG}"])
async def test_a_removed_record_is_named_to_other_nodes(autojump_clock, url):
    row = Row(url, RA, State.LIVE, 1.0, {}, 1)
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine, theirs, news = (
            records_of(engine), records_of(other), News()
        )  # fmt: skip
        async with trio.open_nursery() as nursery:
            nursery.start_soon(theirs.follow, news.take)
            for change in (kept(row), (url, None)):
                await mine.commit([change])
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert news.heard == [(url, row), (url, None)]
        assert await heard_by(theirs) == theirs.load() == []


async def test_a_removal_that_another_node_was_before_is_mended_by_the_watch(autojump_clock):
    """Else the record that is there would be unknown to the node that wanted it to go."""
    row = Row(f"{RA}/short", RA, State.LIVE, 1.0, {}, 1)
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine, theirs = records_of(engine), records_of(other)
        await mine.commit([kept(row)])
        newer = attrs.evolve(row, number=2)
        await theirs.commit([kept(newer)])
        await mine.commit([(row.url, None)])
        assert await heard_by(mine) == [kept(newer)]


def rows_of(count: int) -> list[Row]:
    return [Row(f"{RA}/{number}", RA, State.LIVE, 1.0, {}, number) for number in range(count)]


class FewRecords(EngineRecords):
    most = 2


async def test_a_node_knows_only_so_many_records_and_counts_the_others(autojump_clock):
    """SEC-46."""
    first, second, third = rows_of(3)
    counters, news = Counters(), News()
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine = FewRecords(engine, lambda key: True, counters)
        theirs = records_of(other)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mine.follow, news.take)
            for change in (
                kept(first),
                kept(second),
                kept(third),
                kept(attrs.evolve(first, number=7)),
                (second.url, None),
                kept(attrs.evolve(third, number=8)),
            ):
                await theirs.commit([change])
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [row.number for _, row in news.heard if row] == [0, 1, 7, 8]
        assert [one.url for one in mine.load()] == [first.url, third.url]
        assert counters.tallies[Tally.ROWS] == {(RowRefusal.TOO_MANY,): 1}


async def test_a_registry_that_starts_again_learns_what_is_there_now(autojump_clock):
    """R13: also what went while nobody followed, and what its node has written itself."""
    gone, own, other_s = rows_of(3)
    async with open_memory_store() as store, store.open() as engine, store.open() as other:
        mine, theirs = records_of(engine), records_of(other)
        await theirs.commit([kept(gone), kept(other_s)])
        await mine.commit([kept(own)])
        assert len(await heard_by(mine)) == 3
        await theirs.commit([(gone.url, None)])
        assert await heard_by(mine) == [(one.url, one) for one in (other_s, own)]
        assert mine.load() == [other_s, own]


async def test_a_registry_believes_nothing_that_was_known_before(autojump_clock, monkeypatch):
    (row,) = rows_of(1)
    records = Shared.records

    def of_an_earlier_registry(shared: Shared) -> EngineRecords:
        made = records(shared)
        made._known[row.url] = _Known(row.url, 1, row)
        return made

    monkeypatch.setattr(Shared, "records", of_an_earlier_registry)
    async with open_group(1) as world:
        peer = await world.nodes[0].peer(RA)
        assert (await peer.ask("read", f"{RA}/registry", DR, resource=row.url)).code == 404


async def test_what_a_commit_has_written_that_failed_is_news(autojump_clock):
    """The registry has taken all of it back."""
    async with open_memory_store() as store, store.open() as engine:
        records, news = records_of(engine), News()
        rows = rows_of(GROUP_BATCH + 1)

        async def failing() -> None:
            with pytest.raises(RegistryFileError):
                await records.commit([kept(row) for row in rows])
            store.start()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(records.follow, news.take)
            await trio.testing.wait_all_tasks_blocked()
            store.slow(0.2)
            nursery.start_soon(failing)
            await trio.sleep(0.3)  # the first batch is written
            store.stop()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert news.heard == [(row.url, row) for row in rows[:GROUP_BATCH]]


ODD = (b"", b"{", b"[]", b"{}", b"\xff", b"[" * 5000, b"x" * ROW_VALUE)
ODD_PAYLOADS = (
    b"",
    b"x",
    b"[1]\n{}",
    b'["m","n",1,null,null,1,true]',
    b'["m","n",1,"r",null,1,false]\n{',
)


async def test_messages_that_find_an_inbox_full_are_counted_as_dropped(autojump_clock):
    """OBS-06."""
    async with open_group(1) as world:
        (one,) = world.nodes
        (row,) = world.store.rows("node/")
        node = row.key.removeprefix("node/")
        async with world.store.open() as stranger:
            await stranger.publish(node, [b""] * INBOX_MESSAGES + [b"head\n{}\nhead\n{}"] * 2)
        assert one.node.counters.drops[DropReason.OVERFLOW] == 4


def test_a_long_head_is_read_and_written_and_not_remembered():
    """SEC-46."""
    for to, is_kept in ((RA, True), (LONG_RUNTIME, False)):
        kept = [
            cache.cache_info().currsize for cache in (messages._read_once, messages._written_once)
        ]
        head = messages.Head("node", 1, to, RB)
        assert messages.read_head(messages.write_head(head)) == head
        now = [
            cache.cache_info().currsize for cache in (messages._read_once, messages._written_once)
        ]
        assert now == [size + is_kept for size in kept]


@pytest.mark.parametrize("size", [0, HEAD_KEPT])
def test_heads_of_all_forms_are_read_as_they_were_written(size):
    more = "x" * size
    for head in (
        messages.Head("n", 1, None, None, 2, is_alone=True),
        messages.Head("n", 1, RA + more, RB),
        messages.ConsentEnded(f"comm://a.ex/{more}", RA, RB, is_expired=True),
        messages.HandedOver(RA + more),
    ):
        assert messages.read_head(messages.write_head(head)) == head


async def test_rows_and_payloads_of_strangers_are_refused_counted_and_harm_nothing(
    autojump_clock, caplog
):
    """SEC-46."""
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await two.peer(RB)
        nodes = [row.key.removeprefix("node/") for row in world.store.rows("node/")]
        async with world.store.open() as stranger:
            for kind in ("node", "session", "owner", "path", "record", "name", "catalogue"):
                for number, value in enumerate(ODD):
                    await stranger.put(f"{kind}/{number}", value, 0)
            for node in nodes:
                await stranger.publish(node, ODD_PAYLOADS)

            async def is_counted() -> bool:
                return all(
                    sum(one.node.counters.tallies[Tally.ROWS].values()) == 7 * len(ODD)
                    and one.node.counters.drops[DropReason.MALFORMED] == len(ODD_PAYLOADS)
                    for one in world.nodes
                )

            await world.until(is_counted)
        assert "row of the engine refused" in caplog.text
        await peer.post("update", f"{RA}/sm", f"{RB}/sm", value=1)
        with trio.fail_after(10):
            assert (await other.hear()).body["value"] == 1


async def test_a_payload_of_many_lines_is_read_up_to_a_limit(autojump_clock):
    """SEC-46."""
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await two.peer(RB)
        nodes = [row.key.removeprefix("node/") for row in world.store.rows("node/")]
        async with world.store.open() as stranger:
            for node in nodes:
                await stranger.publish(node, [b"\n" * PUBLISHED_BYTES])
            await peer.post("update", f"{RA}/sm", f"{RB}/sm", value=1)
            with trio.fail_after(10):
                assert (await other.hear()).body["value"] == 1
        counted = [one.node.counters.drops[DropReason.MALFORMED] for one in world.nodes]
        assert counted == [CARRIED_PAIRS + 1] * 2


async def test_a_session_row_of_a_node_that_has_no_such_session_is_removed(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        await one.peer(RA)
        (row,) = world.store.rows(f"session/{RA}")
        lone = row.value.replace(b'"kept":{', b'"kept":null,"was":{')
        async with world.store.open() as stranger:
            await stranger.put(f"session/{RB}", lone, 0)

            async def is_removed() -> bool:
                return not world.store.rows(f"session/{RB}")

            await world.until(is_removed)
        assert (await (await two.outsider(RB)).control("open", runtimeURL=RB)).code == 200


async def test_the_node_of_the_sender_says_who_it_is_at_the_node_of_the_receiver(autojump_clock):
    """SEC-45, SEC-15."""
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        one, two = world.nodes
        receiver, sender = await one.outsider(RA), await two.outsider(RB)
        await login_with(receiver, issuer.token(sub=ALICE))
        await login_with(sender, issuer.token(sub=BOB))
        claimed = {"user": ALICE, "runtime": RA, "vouchedBy": "identity-provider"}
        await sender.post("update", f"{RB}/sm", f"{RA}/sm", identity=claimed)
        with trio.fail_after(10):
            told = json.loads(await receiver.link.receive())["body"]["identity"]
        assert (told["user"], told["runtime"]) == (BOB, RB)


async def test_a_token_that_is_shown_to_two_nodes_at_once_opens_one_session(autojump_clock):
    """SEC-45, SEC-03."""
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        token, codes = issuer.token(sub=ALICE), []

        async def show(member, runtime) -> None:
            codes.append((await login_with(await member.outsider(runtime), token)).code)

        async with trio.open_nursery() as nursery:
            for member, runtime in zip(world.nodes, (RA, RB), strict=True):
                nursery.start_soon(show, member, runtime)
        assert sorted(codes) == [200, 401]


async def test_nobody_speaks_as_others_or_consents_for_them_at_another_node(autojump_clock):
    """SEC-45, SEC-01."""
    async with open_group(observation=Observation.OWNER) as world:
        one, two = world.nodes
        owner, observer, url = await observed(one, two)
        stranger, friend = await two.peer(RC), await one.peer(RD)
        paths = [f"{url}/changes"]
        assert (await stranger.ask("subscribe", f"{RC}/sm", SM, resources=paths)).code == 200
        to = f"{url}/subscription"
        asked = await stranger.post("subscribe", f"{RC}/sm", to, source=f"{RC}/sm")
        with trio.fail_after(10):
            assert (await owner.hear()).id == asked.id
        for liar in (stranger, friend):
            for name in (to, url, f"{RA}/sm", RA, f"{RB}/sm", SM, f"{liar.runtime}/sm"):
                answer = Message(asked.id, MessageType.RESPONSE, name, f"{RC}/sm", {"code": 200})
                await liar.raw(encode(answer))
                if name != f"{liar.runtime}/sm":
                    await liar.post("update", name, f"{url}/changes", value="false")
                    await liar.post("update", name, f"{RB}/sm", value="false")
            assert (await liar.control("ping")).code == 200
        await owner.post("update", url, f"{url}/changes", value="true")
        with trio.fail_after(10):
            assert (await observer.hear()).body["value"] == "true"
        assert await observer.silence(1)
        await stranger.silence(1)
        assert not [one for one in stranger.heard if one.type is MessageType.UPDATE]


@pytest.mark.parametrize("ours", [0, 1])
async def test_a_route_at_one_node_wins_at_each(ours, autojump_clock):
    """SEC-16: over what a runtime of that domain has bound and opened at another node."""
    peer_url, hyperty = "domain://msg-node.b.ex", "hyperty://b.ex/hx"
    async with open_group() as world:
        one, two = world.nodes
        runtime = await one.peer("hyperty-runtime://b.ex/rx")
        assert (await runtime.ask("read", hyperty, DR, resource=hyperty)).code == 404
        peer, ra = await two.peer(peer_url), await world.nodes[ours].peer(RA)

        async def is_followed():
            outsider = await one.outsider("hyperty-runtime://b.ex/ry")
            answer = await outsider.control("open", runtimeURL="hyperty-runtime://b.ex/ry")
            await outsider.link.aclose()
            return answer.code == 403

        await world.until(is_followed)
        for to in (hyperty, "hyperty-runtime://b.ex/rx/p2phandler/1"):
            await ra.post("read", f"{RA}/ua", to)
            with trio.fail_after(10):
                assert (await peer.hear()).to == to
        assert (await runtime.ask("read", hyperty, f"{RA}/ua")).code == 401
        assert await ra.silence(1)


async def test_a_used_token_is_known_until_it_is_over_by_the_slowest_clock(autojump_clock):
    """SEC-45, SEC-04."""
    use = Use(b"d" * 32, 360.0)
    start = trio.current_time()
    async with open_memory_store() as store, store.open() as engine:
        fast, slow = (
            EngineTokens(engine, lambda skew=skew: trio.current_time() - start + skew)
            for skew in (CLOCK_SKEW, -CLOCK_SKEW)
        )
        assert await fast.keep(use, 0.0)
        await trio.sleep(use.end + CLOCK_SKEW - 1)
        assert not await slow.keep(use, 0.0)
