"""Nobody speaks as another, however it is spelt; nobody hears what is another's."""

import json
import random

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_sync import an_object, asked, change, observe, values

SPELLINGS = {
    "as it is": lambda a: a,
    "scheme in capitals": lambda a: a.replace("hyperty", "HYPERTY", 1),
    "host in capitals": lambda a: a.replace(DOMAIN, DOMAIN.upper()),
    "slash behind": lambda a: a + "/",
    "below": lambda a: a + "/sm",
    "dot segment": lambda a: a + "/./sm",
    "dots out of own": lambda a: f"hyperty-runtime://{DOMAIN}/x/../{a.rpartition('/')[2]}",
    "percent": lambda a: a[:-1] + f"%{ord(a[-1]):02X}",
    "port": lambda a: a.replace(DOMAIN, f"{DOMAIN}:80"),
    "userinfo": lambda a: a.replace("://", "://x@"),
    "dot behind the host": lambda a: a.replace(DOMAIN, f"{DOMAIN}."),
    "nul": lambda a: a + "\u0000",
    "space": lambda a: a + " ",
    "query": lambda a: a + "?x",
    "fragment": lambda a: a + "#x",
    "full width": lambda a: a.replace("a.ex", "\uff41.ex"),
    "soft hyphen": lambda a: a[:-1] + "\u00ad" + a[-1],
    "double slash": lambda a: a.replace(f"{DOMAIN}/", f"{DOMAIN}//"),
    "backslash": lambda a: a.replace(f"{DOMAIN}/", f"{DOMAIN}\\"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("what", ["hyperty", "object", "runtime"])
async def test_a_session_cannot_send_as_another_in_any_spelling(join, what, spelling):
    """MN-03, MN-13, I-A3, I-B9, I-B10, S1: 400 or 401, and nobody hears of it."""
    alice, bob, carol = [await join() for _ in range(3)]
    address = alice.inside if what == "runtime" else (
        await alice.allocate("comm" if what == "object" else "hyperty")
    )[0]  # fmt: skip
    forged = SPELLINGS[spelling](address)

    await bob.say("create", forged, bob.spelt(f"{carol.inside}/ua"), value="forged")
    answers = await bob.rest()

    assert {one["body"]["code"] for one in answers} <= {400, 401}
    assert [message["from"] for message in await carol.rest()] == []
    assert await alice.rest() == []


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_peer_cannot_name_another_peer_as_the_true_source(join, spelling):
    """MN-03, I-B10, C-10: `source` is held to the same rule as `from`."""
    alice, bob, carol = [await join() for _ in range(3)]
    (address,) = await alice.allocate()
    forged = SPELLINGS[spelling](address)
    for key in ("source", "subscriber"):
        await bob.say("create", bob.part("ua"), bob.spelt(f"{carol.inside}/ua"), **{key: forged})

    assert {one["body"]["code"] for one in await bob.rest()} <= {400, 401}
    assert await carol.rest() == []


@pytest.mark.parametrize(
    "from_",
    [
        f"domain://msg-node.{DOMAIN}/sm", f"domain://registry.{DOMAIN}", f"domain://{DOMAIN}",
        "domain://msg-node.b.ex/sm", "domain://registry.b.ex", "global://registry",
        f"domain://idm.{DOMAIN}", "hyperty-runtime://b.ex/rb/ua", "mn:/session",
    ],
)  # fmt: skip
async def test_a_session_cannot_send_as_a_part_of_a_node_or_a_foreign_runtime(join, from_):
    """MN-03, MN-13, I-B10, ADR-04, S1."""
    alice, bob = await join(), await join()
    await bob.say("create", from_, bob.spelt(f"{alice.inside}/ua"), value="forged")

    assert {one["body"]["code"] for one in await bob.rest()} <= {400, 401}
    assert await alice.rest() == []


async def test_forged_events_are_neither_delivered_nor_answered(join):
    """MN-25, I-B9, I-M5, S1: news of an object come from its owner."""
    alice, bob, mallory = [await join() for _ in range(3)]
    thing = await an_object(alice)
    await observe(alice, thing, bob)

    for from_ in (thing, alice.spelt(alice.inside), mallory.part("x")):
        await mallory.say("update", mallory.spelt(from_), f"{thing}/changes", value="forged")
    await change(alice, thing, "true")
    await alice.rest()
    await mallory.rest()

    heard = [message for message in await bob.rest() if message["from"] == thing]
    assert values(heard) == ["true"]


async def test_forged_answers_are_not_delivered(join):
    """I-B10, MN-25: an answer comes from who was asked."""
    alice, bob, mallory = [await join() for _ in range(3)]
    (ha,) = await alice.allocate()
    sent = await alice.say("read", ha, alice.spelt(f"{bob.inside}/ua"))
    request = await bob.hear()

    await mallory.say_as(
        mallory.shown_id(int(sent)),
        "response",
        mallory.spelt(f"{bob.inside}/ua"),
        ha,
        {"code": 200},
    )
    await mallory.rest()
    await bob.answer(request, 403)

    assert (await alice.answer_to(sent))["body"]["code"] == 403


@pytest.mark.parametrize("part", ["changes", "observers", "children/x"])
async def test_no_change_is_delivered_before_its_owner_consents(join, part):
    """MN-14, S3, I-D9: a path alone brings nothing; consent does, from then on."""
    alice, bob = await join("link"), await join()
    thing = await an_object(alice)
    await bob.paths("subscribe", f"{thing}/{part}", source=bob.runtime)
    await publish(alice, thing, part, "secret")
    assert values(await bob.rest()) == []

    await asked(alice, thing, bob, 200)
    await publish(alice, thing, part, "reported")

    assert values(await bob.rest()) == ["reported"]


async def publish(reporter, thing, part, value):
    await reporter.say("update", thing, f"{thing}/{part}", resource="x#1", value=value)
    await reporter.rest()


@pytest.mark.parametrize("code", [401, 403, 404, 408, 500])
async def test_a_refused_observer_receives_nothing(join, code):
    """MN-14, S3, I-D9."""
    alice, bob = await join("link"), await join()
    thing = await an_object(alice)
    await bob.paths("subscribe", f"{thing}/changes")

    assert await asked(alice, thing, bob, code) == code
    await change(alice, thing, "secret")
    await alice.rest()

    assert values(await bob.rest()) == []


async def test_consent_by_another_session_does_not_count(join):
    """S3, I-D9: not the observer's own word, nor a third party's, nor for another object."""
    alice, bob, mallory = await join("link"), await join(), await join()
    thing, other = await an_object(alice), await an_object(alice)
    await bob.paths("subscribe", f"{thing}/changes")
    sent = await bob.say("subscribe", bob.part("sm"), f"{thing}/subscription", source=bob.runtime)
    request = await alice.hear()

    for liar in (bob, mallory):
        await liar.say_as(
            liar.shown_id(int(sent)), "response", f"{thing}/subscription",
            liar.spelt(f"{bob.inside}/sm"), {"code": 200, "value": {}},
        )  # fmt: skip
    await asked(alice, other, bob, 200)
    await change(alice, thing, "secret")
    await alice.rest()
    assert values(await bob.rest()) == []

    await alice.answer(request, 200, value={})
    await change(alice, thing, "reported")
    await alice.rest()
    assert values(await bob.rest()) == [{}, "reported"]


@pytest.mark.parametrize("owner", ["plain", "session"])
async def test_objects_of_upstreams_stubs_may_be_observed_by_path_alone(join, owner):
    """MN-14, CON-05: as upstream's suite does; what is addressed to them is still theirs."""
    alice, bob = await join(owner), await join()
    thing = await an_object(alice)
    assert (await bob.paths("subscribe", f"{thing}/changes"))["body"]["code"] == 200

    await change(alice, thing, "public")
    await alice.rest()

    assert values(await bob.rest()) == ["public"]


@pytest.mark.parametrize("part", ["status", "anything", "changes/below", "subscription/x"])
async def test_other_parts_of_an_object_are_its_owners(join, part):
    """MN-14, S3, ADR-05."""
    alice, bob = await join("link"), await join()
    thing = await an_object(alice)
    assert (await bob.paths("subscribe", f"{thing}/{part}"))["body"]["code"] == 403


async def test_many_random_forgeries_are_refused(join):
    """S1, I-B10, I-A3: what is not the session's own is not believed."""
    alice, mallory = await join(), await join()
    (ha,), (hm,) = await alice.allocate(), await mallory.allocate()
    dice = random.Random(4711)  # noqa: S311 - a seed, no secret
    own = (mallory.inside, hm)
    for _ in range(300):
        spelt = dice.choice([alice.inside, ha])
        for _ in range(dice.randint(1, 3)):
            spelt = SPELLINGS[dice.choice(list(SPELLINGS))](spelt)
        assert not spelt.startswith(own)
        await mallory.raw(
            json.dumps({
                "id": 1, "type": "create", "from": spelt, "to": mallory.spelt(f"{alice.inside}/ua"),
                "body": {"value": "forged"},
            }).encode()
        )  # fmt: skip
    await mallory.rest()

    assert await alice.rest() == []
