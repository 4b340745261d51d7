"""Children of an object with a window: a chat goes on, whoever observes it (SYN-24, I-D10)."""

import json

import pytest
import trio

import actors
from specs.limits import sync as limits
from tests.actors.runtime.objects.test_children import seen, values
from tests.actors.runtime.objects.test_children_stored import disk  # noqa: F401 - a fixture
from tests.actors.runtime.objects.test_store import world as stored_world
from tests.support.report_world import Open, world


async def test_a_chat_goes_on_and_all_members_see_its_newest_texts(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        late, beside = await here.there.deploy(Open), await here.here.deploy(Open)
        window = actors.ChildWindow(last=50)
        async with (
            alice.report("comm", {}, children=window) as room,
            bob.observe(room.url) as mine,
            beside.observe(room.url) as other,
        ):
            for number in range(300):
                writer = mine if number % 3 else room
                await writer.children.create({"text": f"{number} " + "x" * 100})
            wanted = [{"text": f"{number} " + "x" * 100} for number in range(250, 300)]
            async with late.observe(room.url) as copy:
                for children in (room.children, mine.children, other.children, copy.children):
                    await seen(children, wanted)
                    assert [child.value for child in children.values()] == wanted
                    assert children.missed == 0


async def test_a_late_observer_reads_a_window_that_no_message_has_space_for(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with alice.report("comm", {}, children=actors.ChildWindow()) as room:
            for number in range(400):
                await room.children.create({"text": f"{number} " + "x" * 450})
            async with bob.observe(room.url) as copy:
                await seen(copy.children, [child.value for child in room.children.values()])
                assert [*copy.children] == [*room.children]
                size = len(json.dumps([child.value for child in room.children.values()]))
                assert limits.CHILDREN_BYTES < size <= limits.WINDOW_BYTES


async def test_children_leave_when_they_are_too_old(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with (
            alice.report("comm", {}, children=actors.ChildWindow(seconds=60)) as room,
            bob.observe(room.url) as copy,
        ):
            child = await copy.children.create("old")
            await trio.sleep(40)
            await room.children.create("new")
            await trio.sleep(25)
            assert [*values(copy.children).values()] == [*values(room.children).values()] == ["new"]
            with pytest.raises(actors.ObjectError) as refused:
                await child.update("again")
            assert refused.value.code == 404
            await trio.sleep(40)
            assert not copy.children
            assert not room.children


async def test_the_reporter_deletes_a_child_of_another_for_good(autojump_clock):
    """Also without a window; nobody else may."""
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        carol = await here.there.deploy(Open)
        async with (
            alice.report("comm", {}) as room,
            bob.observe(room.url) as mine,
            carol.observe(room.url) as other,
        ):
            child = await mine.children.create("rude")
            for children in (room.children, other.children):
                await seen(children, ["rude"])
            with pytest.raises(actors.ObjectError) as refused:
                await other.children[child.id].delete()
            assert refused.value.code == 403
            await room.children[child.id].delete()
            for children in (room.children, mine.children, other.children):
                await seen(children, [])
            with pytest.raises(actors.ObjectError) as gone:
                await child.update("ruder")
            assert gone.value.code == 404
            await trio.sleep(200)
            assert not mine.children
            await mine.children.create("polite")
            for children in (room.children, mine.children, other.children):
                await seen(children, ["polite"])


async def test_an_observer_that_was_cut_off_knows_how_many_children_it_has_missed(autojump_clock):
    async with world() as here:
        alice, bob = await here.here.deploy(Open), await here.there.deploy(Open)
        async with (
            alice.report("comm", {}, children=actors.ChildWindow(last=5)) as room,
            bob.observe(room.url) as copy,
        ):
            await room.children.create("first")
            await seen(copy.children, ["first"])
            changes, missed = copy.children.changes(), 0
            wire = here.wire_of_observer()
            wire.dialler.pattern = wire.acceptor.pattern = lambda _number, _frame: ()
            for number in range(20):
                await room.children.create(number)
            wire.dialler.pattern = wire.acceptor.pattern = lambda _number, _frame: (0.0,)
            await seen(copy.children, range(15, 20))
            for _ in range(6):
                missed += (await anext(changes)).missed
            assert missed == copy.children.missed == 15


async def test_the_window_of_a_stored_object_and_its_ages_outlive_the_process(
    tmp_path,
    autojump_clock,
    disk,  # noqa: F811
):
    window = actors.ChildWindow(last=3, seconds=1000)
    async with stored_world(tmp_path) as there:
        await there.node()
        ra, rb = await there.runtime("ra"), await there.runtime("rb")
        async with ra.hyperty.report("comm", {}, name="c", store=True, children=window) as room:
            for number in range(5):
                await room.children.create(number)
            await ra.stop()
        await trio.sleep(600)
        ra = await there.runtime("ra")
        async with (
            ra.hyperty.report("comm", {}, name="c", store=True, public=True) as room,
            rb.hyperty.observe(room.url) as copy,
        ):
            assert room.resumed
            await room.children.create(5)
            for children in (room.children, copy.children):
                await seen(children, [3, 4, 5])
            await trio.sleep(500)
            for children in (room.children, copy.children):
                await seen(children, [5])


@pytest.mark.parametrize(
    "wrong",
    [
        {"last": 0},
        {"last": limits.WINDOW_CHILDREN + 1},
        {"last": True},
        {"bytes": limits.WINDOW_LEAST_BYTES - 1},
        {"bytes": limits.WINDOW_BYTES + 1},
        {"seconds": 0},
        {"seconds": 1.5},
    ],
)
async def test_a_window_out_of_bounds_is_refused_where_it_is_written(wrong):
    with pytest.raises((actors.BadMessageError, ValueError, TypeError)) as refused:
        actors.ChildWindow(**wrong)
    assert next(iter(wrong)) in str(refused.value)


async def test_a_window_of_another_type_is_refused(autojump_clock):
    async with world() as here:
        alice = await here.here.deploy(Open)
        with pytest.raises(TypeError, match="children must be ChildWindow"):
            alice.report("comm", {}, children={"last": 5})


async def test_a_refusal_names_the_limit_and_what_would_be(autojump_clock):
    async with world() as here:
        alice = await here.here.deploy(Open)
        async with alice.report("comm", {}) as room:
            for number in range(limits.CHILDREN_OF_CREATOR):
                await room.children.create(number)
            with pytest.raises(actors.ObjectError) as refused:
                await room.children.create("one more")
            assert str(limits.CHILDREN_OF_CREATOR) in str(refused.value)
            assert str(limits.CHILDREN_OF_CREATOR + 1) in str(refused.value)
