"""Children of data objects by real actors: SYN-24, SYN-07, I-D10, M-48..M-50, C-81."""

import pytest
import trio

import actors
from actors.runtime.sync.children import read_op
from specs.child import naming_error
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from tests.support.report_world import Open, text, world

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


def _said(word):
    def is_it(frame):
        reported = text(frame)
        return "/children/" in reported and f'"{word}' in reported and '"digest"' not in reported

    return is_it


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
