"""Children of data objects by real actors: SYN-24, SYN-07, I-D10, M-48..M-50, C-81."""

import math

import pytest
import trio

import actors
from actors.runtime.sync.children import read_op
from fsm.sync.children import ChildOp
from specs.child import naming_error
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.support.report_world import Closed, Open, text, world

TO = "{}/children/resources"


def values(children):
    return {child.id: child.value for child in children.values()}


async def seen(children, wanted):
    """Wait until children have these values."""
    with trio.fail_after(200):
        await trio.lowlevel.checkpoint()
        while sorted(map(str, values(children).values())) != sorted(map(str, wanted)):
            assert await children.wait_for_change()


async def test_an_observer_creates_changes_and_deletes_a_child(autojump_clock):
    """SYN-24, M-48..M-50: the reporter and every observer hear of it."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        carol, dave = await here.there.deploy(Open), await here.here.deploy(Open)
        async with (
            alice.report("comm", {}) as thing,
            bob.observe(thing.url) as mine,
            carol.observe(thing.url) as other,
            dave.observe(thing.url) as beside,
        ):
            everywhere = (thing.children, mine.children, other.children, beside.children)
            child = await mine.children.create({"txt": "hi"})
            assert child.creator == bob.url
            for children in everywhere:
                await seen(children, [{"txt": "hi"}])
            await child.update({"txt": "hi!"})
            for children in everywhere:
                await seen(children, [{"txt": "hi!"}])
            await child.delete()
            for children in everywhere:
                await seen(children, [])
            assert child.value is None


async def test_an_attribute_of_a_child_is_deleted_everywhere(autojump_clock):
    """MSG-13, M-50, I-D10: by its creator only."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        carol = await here.there.deploy(Open)
        async with (
            alice.report("comm", {}) as thing,
            bob.observe(thing.url) as mine,
            carol.observe(thing.url) as other,
        ):
            child = await mine.children.create({"txt": "hi", "tags": ["a", "b"]})
            await child.remove("tags.0")
            await child.remove("absent")
            await child.remove("txt")
            for children in (thing.children, mine.children, other.children):
                await seen(children, [{"tags": ["b"]}])
            with pytest.raises(actors.ObjectError) as refused:
                await other.children[child.id].remove("tags")
            assert refused.value.code == 403
            for path in ("", "tags.", ".".join("a" * 200)):
                with pytest.raises(actors.ObjectError) as wrong:
                    await child.remove(path)
                assert wrong.value.code == 400


async def test_the_reporter_creates_children_too_and_the_names_only_grow(autojump_clock):
    """I-D10: k strictly grows per creator."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            names = [(await thing.children.create(number)).id for number in range(3)]
            numbers = [int(name.removeprefix(f"{alice.url}#")) for name in names]
            assert numbers == sorted(set(numbers))
            await seen(copy.children, [0, 1, 2])
            assert list(copy.children) == names


async def test_a_reporter_waits_for_no_sign_of_what_its_sync_manager_has(autojump_clock):
    """Else it would read its own object after each child of an observer."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            await copy.children.create("of an observer")
            await seen(thing.children, ["of an observer"])
            assert thing.children._core.deadline() == math.inf


async def test_a_late_observer_has_all_children(autojump_clock):
    """`childrenObjects` in the snapshot; a creator that left leaves its children."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        carol = await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing:
            async with bob.observe(thing.url) as copy:
                await copy.children.create("stays")
            async with carol.observe(thing.url) as late:
                assert list(values(late.children).values()) == ["stays"]
                child = next(iter(late.children.values()))
                with pytest.raises(actors.ObjectError, match="only its creator"):
                    await child.update("mine now")
                with pytest.raises(actors.ObjectError, match="only its creator"):
                    await child.delete()
            async with bob.observe(thing.url) as again:
                await next(iter(again.children.values())).update("changed")
                await seen(thing.children, ["changed"])


async def test_changes_of_children_are_reported_one_by_one(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing:
            reported = []

            async def follow():
                async for one in thing.children.changes():
                    reported.append((one.old, one.new))  # noqa: PERF401 - it never ends

            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow)
                async with bob.observe(thing.url) as copy:
                    child = await copy.children.create(1)
                    await trio.sleep(0.1)
                    await child.update(2)
                    await trio.sleep(0.1)
                    await child.delete()
                    await trio.sleep(0.1)
                nursery.cancel_scope.cancel()
            assert reported == [(None, 1), (1, 2), (2, None)]


async def test_the_changes_end_when_the_object_is_deleted(autojump_clock):
    """Children die with their object."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            child = await copy.children.create(1)
            changes = copy.children.changes()
            await thing.delete()
            assert [change async for change in changes] == []
            with pytest.raises(actors.ObjectError, match="410"):
                await child.update(2)
            with pytest.raises(actors.ObjectError, match="410"):
                await copy.children.create(2)


# --- what is lost -----------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "update", "delete"])
async def test_an_observer_reads_a_missed_child_within_seconds(autojump_clock, word):
    """I-D4: the sign shows that something is missing."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            here.lose_at_observer(_said(word))
            child = await thing.children.create("old")
            other = await thing.children.create("other")
            await trio.sleep(0.5)
            await child.update("new")
            await other.delete()
            await trio.sleep(0.5)
            assert values(copy.children) != values(thing.children)
            here.lose_at_observer(lambda _frame: False)
            with trio.fail_after(20):
                await seen(copy.children, ["new"])


async def test_a_lost_message_of_a_creator_is_repeated(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            child = await copy.children.create("old")
            gone = await copy.children.create("gone")
            wire = here.wire_of_observer()
            wire.dialler.pattern = lambda _number, frame: () if _said("")(frame) else (0.0,)
            await child.update("new")
            await gone.delete()
            await trio.sleep(0.5)
            wire.dialler.pattern = lambda _number, _frame: (0.0,)
            assert sorted(values(thing.children).values()) == ["gone", "old"]
            with trio.fail_after(20):
                await seen(thing.children, ["new"])
            assert list(values(copy.children).values()) == ["new"]


async def test_a_new_child_that_is_lost_is_sent_again(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            wire, lost = here.wire_of_observer(), []

            def pattern(_number, frame):
                if _said("create")(frame) and not lost:
                    lost.append(frame)
                    return ()
                return (0.0,)

            wire.dialler.pattern = pattern
            await copy.children.create("insisted")
            assert lost
            assert list(values(thing.children).values()) == ["insisted"]


async def test_a_partition_that_ends_leaves_no_difference(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            mine = await copy.children.create("mine")
            wire = here.wire_of_observer()
            for end in (wire.dialler, wire.acceptor):
                end.pattern = lambda _number, frame: () if "/children/" in text(frame) else (0.0,)
            await thing.children.create("theirs")
            await mine.update("mine, later")
            await trio.sleep(100)
            for end in (wire.dialler, wire.acceptor):
                end.pattern = lambda _number, _frame: (0.0,)
            with trio.fail_after(70):
                await seen(copy.children, ["mine, later", "theirs"])
                await seen(thing.children, ["mine, later", "theirs"])


def _said(word):
    def is_it(frame):
        reported = text(frame)
        return "/children/" in reported and f'"{word}' in reported and '"digest"' not in reported

    return is_it


# --- who may not ------------------------------------------------------------------------------


async def test_a_hyperty_that_does_not_observe_is_refused_by_its_own_bus(autojump_clock):
    """SC-36: 403, and nobody hears of it."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        mallory = await here.there.deploy(Closed)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            to = TO.format(thing.url)
            body = {"resource": f"{mallory.url}#1", "value": 1}
            for type_ in (MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE):
                answer = await mallory.ask(to, type_, body)
                assert answer.code == 403
            await trio.sleep(1)
            assert (len(copy.children), len(thing.children)) == (0, 0)
            assert here.there.drops().counts[DropReason.DENIED] == 3


async def test_an_observer_cannot_touch_the_child_of_another(autojump_clock):
    """I-D10: a forged update, delete and create."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        mallory = await here.there.deploy(Open)
        async with (
            alice.report("comm", {}) as thing,
            bob.observe(thing.url) as copy,
            mallory.observe(thing.url),
        ):
            child = await copy.children.create("mine")
            to, body = TO.format(thing.url), {"resource": child.id, "value": "forged"}
            for type_ in (MessageType.UPDATE, MessageType.DELETE, MessageType.CREATE):
                assert (await mallory.ask(to, type_, body)).code == 403
            assert (await mallory.ask(to, MessageType.READ, {})).code == 403
            await trio.sleep(10)
            assert list(values(copy.children).values()) == ["mine"]
            assert list(values(thing.children).values()) == ["mine"]


async def test_an_expelled_creator_writes_no_more_and_its_children_stay(autojump_clock):
    """SYN-21, SYN-24."""
    async with world() as here:
        alice, bob = await here.here.deploy(Closed), await here.there.deploy(Open)
        async with alice.report("comm", {}, observers=(bob.url,)) as thing:
            async with bob.observe(thing.url) as copy:
                child = await copy.children.create("stays")
                await thing.expel(bob.url)
                await trio.sleep(1)
                with pytest.raises(actors.ObjectError):
                    await child.update("changed")
                to, body = TO.format(thing.url), {"resource": child.id, "value": "changed"}
                assert (await bob.ask(to, MessageType.UPDATE, body)).code == 403
            assert list(values(thing.children).values()) == ["stays"]


@pytest.mark.parametrize("value", [None, {1, 2}, float("nan"), "\ud800", 2**70])
async def test_a_value_outside_json_becomes_no_child(autojump_clock, value):
    refused = actors.ObjectError if value is None else actors.NotJsonError
    async with world() as here:
        alice = await here.here.deploy(Open)
        async with alice.report("comm", {}) as thing:
            with pytest.raises(refused):
                await thing.children.create(value)
            assert len(thing.children) == 0


async def test_a_child_that_is_too_large_is_refused(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}) as thing, bob.observe(thing.url) as copy:
            with pytest.raises(actors.ObjectError, match="413"):
                await copy.children.create("x" * 9000)
            to = TO.format(thing.url)
            body = {"resource": f"{bob.url}#999999", "value": "x" * 9000}
            assert (await bob.ask(to, MessageType.CREATE, body)).code == 413
            assert len(thing.children) == 0
            child = await copy.children.create("small")
            with pytest.raises(actors.ObjectError, match="413"):
                await child.update("x" * 9000)


async def test_the_reporter_alone_answers_a_new_child(autojump_clock):
    """C-81: one answer, and it says whose it is; observers owe none."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        carol = await here.there.deploy(Open)
        async with (
            alice.report("comm", {}) as thing,
            bob.observe(thing.url),
            carol.observe(thing.url),
        ):
            to = TO.format(thing.url)
            body = {"resource": f"{bob.url}#999999", "value": 1}
            answer = await bob.ask(to, MessageType.CREATE, body)
            assert (answer.code, answer.body["source"]) == (200, alice.url)
            body = {"resource": f"{alice.url}#999999", "value": 1}
            answer = await alice.ask(to, MessageType.CREATE, body)
            assert (answer.code, answer.body["source"]) == (200, here.here.url)
            await trio.sleep(20)
            reasons = set(here.there.drops().counts) | set(here.here.drops().counts)
            assert reasons <= {DropReason.LOOP}


# ---- how the reporter's end and the copies read messages about children

HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
PLACE = TO.format("comm://a.ex/o")

FORGED = [
    (MessageType.UPDATE, {"resource": f"{HB}#1", "value": 1}),
    (MessageType.DELETE, {"resource": f"{HB}#1"}),
    (MessageType.CREATE, {"resource": f"{HB}#1", "value": 1}),
    (MessageType.CREATE, {"value": 1}),
    (MessageType.CREATE, {"resource": [f"{HC}#1"], "value": 1}),
    (MessageType.CREATE, {"resource": f"{HC}x#1", "value": 1}),
    (MessageType.READ, {"resource": f"{HC}#1"}),
    (MessageType.SUBSCRIBE, {}),
]


@pytest.mark.parametrize(("type_", "body"), FORGED)
def test_a_message_that_names_the_child_of_another_has_no_effect(type_, body):
    """I-D10: forged children."""
    message = Message(1, type_, HC, PLACE, body)
    with pytest.raises(BadMessageError):
        read_op(message)
    assert naming_error(message) is not None


def test_a_message_says_what_is_done_and_its_id_when():
    message = Message(9, MessageType.UPDATE, HB, PLACE, {"resource": f"{HB}#4", "value": 1})
    assert read_op(message) == ChildOp(MessageType.UPDATE, f"{HB}#4", HB, 4, 9, 1)
    assert naming_error(message) is None


def test_only_its_creator_deletes_an_attribute_of_a_child():
    """I-D10."""
    body = {"resource": f"{HB}#1", "attribute": "a", "version": 5}
    assert read_op(Message(9, MessageType.DELETE, HB, PLACE, body)) == ChildOp(
        MessageType.UPDATE, f"{HB}#1", HB, 1, 9, removes="a", base=5
    )
    with pytest.raises(BadMessageError, match="only its creator"):
        read_op(Message(9, MessageType.DELETE, HC, PLACE, body))
