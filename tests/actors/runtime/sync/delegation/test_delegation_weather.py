"""A hand-over between real actors, over a network that loses, doubles and cuts (SYN-26, I-D1)."""

import pytest
import trio

import actors
from tests.actors.runtime.sync.delegation.test_delegation import heir_of
from tests.support.report_world import Closed, Open, world
from transports.link import Kind

NODE = b"msg-node.a.ex/address-allocation"
OFFER, TAKE, PART, ASK = b'"operation":"offer"', b'"operation":"take"', b'"part":1', b'"delegate"'


def losing(what, times):
    """Lose so many frames with these words in them."""
    left = [times]

    def pattern(_number, frame):
        if left[0] and what in bytes(frame):
            left[0] -= 1
            return ()
        return (0.0,)

    return pattern


def doubling(what):
    def pattern(_number, frame):
        return (0.0, 0.3) if what in bytes(frame) else (0.0,)

    return pattern


async def can_write(thing):
    """Whether what is written here is published, with its version."""
    try:
        with trio.fail_after(30):
            return await thing.set("t", (thing.value["t"] or 0) + 1)
    except actors.ObjectError:
        return None


async def handed_over(w, weather):
    """Have an object handed over in some weather; what the two ends can do then."""
    sensor, watcher = await w.here.deploy(Open), await w.there.deploy(Closed)
    heir, deployed = await heir_of(w.there)
    async with (
        sensor.report("ctxt", {"t": 20}) as thing,
        watcher.observe(thing.url) as copy,
    ):
        weather(*w.network.open_wires(Kind.WEBSOCKET)[:2])
        is_given = True
        try:
            await thing.delegate(deployed.url)
        except actors.ObjectError:
            is_given = False
        await trio.sleep(60)
        versions = [await can_write(each) for each in (thing, *heir.things)]
        written = [version for version in versions if version is not None]
        assert len(written) == 1
        with trio.fail_after(300):
            await copy.wait_for(lambda value: value["t"] == 21)
        assert copy.version == written[0]
        return is_given, len(heir.things)


LOSSES = {
    "the question": (lambda old, _: setattr(old.dialler, "pattern", losing(ASK, 1)), False),
    "the offer": (lambda old, _: setattr(old.dialler, "pattern", losing(OFFER, 1)), False),
    "the object": (lambda old, _: setattr(old.dialler, "pattern", losing(PART, 1)), False),
    "the taking": (lambda _, new: setattr(new.dialler, "pattern", losing(TAKE, 1)), False),
    "the node's yes": (lambda _, new: setattr(new.acceptor, "pattern", losing(NODE, 1)), True),
    "two answers of the node": (
        lambda old, new: (
            setattr(new.acceptor, "pattern", losing(NODE, 1)),
            setattr(old.acceptor, "pattern", losing(b'"from":"hyperty://', 9)),
        ),
        False,
    ),
}


@pytest.mark.parametrize("lost", LOSSES)
async def test_for_any_lost_message_one_reporter_writes_and_observers_follow(autojump_clock, lost):
    weather, is_given_then = LOSSES[lost]
    async with world() as w:
        assert await handed_over(w, weather) == (is_given_then, int(is_given_then))


async def test_doubled_or_late_messages_hand_an_object_over_once(autojump_clock):
    def twice(old, new):
        for end in (old.dialler, new.dialler, old.acceptor, new.acceptor):
            end.pattern = doubling(b"ctxt://")

    async with world() as w:
        assert await handed_over(w, twice) == (True, 1)


@pytest.mark.parametrize("end", [0, 1], ids=["old", "new"])
@pytest.mark.parametrize("stage", [OFFER, PART, TAKE])
async def test_a_link_that_is_cut_at_a_stage_decides_nothing(autojump_clock, end, stage):
    def cut(*wires):
        speaker = wires[1] if stage == TAKE else wires[0]

        def pattern(_number, frame):
            if stage in bytes(frame):
                speaker.dialler.pattern = lambda _number, _frame: (0.0,)
                wires[end].cut()
            return (0.0,)

        speaker.dialler.pattern = pattern

    async with world() as w:
        is_given, taken = await handed_over(w, cut)
        assert is_given is bool(taken)
