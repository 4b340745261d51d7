"""Where messages go: between all wire forms, to the node's parts, to nobody."""

import json

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_forms import WIRE_FORMS
from tests.support.wire.wire_peer import SessionPeer
from tests.support.wire.wire_sync import an_object, change, observe, values


@pytest.mark.parametrize("asker", WIRE_FORMS)
@pytest.mark.parametrize("asked", WIRE_FORMS)
async def test_every_form_talks_to_every_form(guests, asker, asked):
    """MN-01, MN-02, MN-18: each hears ids, types and schemes as it spells them."""
    alice, bob = await guests(asker), await guests(asked)
    (ha,), (hb,) = await alice.allocate(), await bob.allocate()

    id_ = await alice.say("create", ha, hb, value={"deep": [1, "two", None]})
    request = await bob.hear()
    await bob.answer(request, value="yes")
    answer = await alice.answer_to(id_)

    assert request["id"] == bob.shown_id(int(id_))
    assert (request["from"], request["to"]) == (ha, hb)
    assert request["body"]["value"] == {"deep": [1, "two", None]}
    assert (answer["from"], answer["to"], answer["body"]["value"]) == (hb, ha, "yes")


@pytest.mark.parametrize("publisher", WIRE_FORMS)
async def test_notifications_reach_subscribers_of_every_form(guests, publisher):
    """MN-02, MN-16."""
    alice = await guests(publisher)
    others = [await guests(form) for form in WIRE_FORMS]
    thing = await an_object(alice)
    for one in others:
        await observe(alice, thing, one)

    await change(alice, thing, "news")
    await alice.rest()

    assert [values(await one.rest()) for one in others] == [["news"]] * len(WIRE_FORMS)


@pytest.mark.parametrize(
    "part", ["ua", "registry", "sm", "address-allocation", "idm", "pep", "graph-connector", "a/b/c"]
)
async def test_all_below_a_runtime_reaches_it(join, part):
    """MN-01, MN-18, ADR-04, PFY-02, U-31: the whole subtree, not `sm` only."""
    alice, bob = await join(), await join()

    sent = await alice.say("read", alice.part("ua"), alice.spelt(f"{bob.inside}/{part}"))
    request = await bob.hear()
    await bob.answer(request)

    assert request["to"] == bob.part(part)
    assert (await alice.answer_to(sent))["body"]["code"] == 200


@pytest.mark.parametrize("scheme", ["runtime", "hyperty-runtime"])
async def test_both_names_of_the_runtime_scheme_are_one(join, scheme):
    """MN-21, C-37."""
    alice, bob = await join(), await join()

    await alice.say("read", alice.part("ua"), f"{scheme}://{DOMAIN}/{bob.name}/ua")

    assert (await bob.hear())["to"] == bob.part("ua")


async def test_messages_of_a_pair_arrive_in_order(join):
    """MN-01, MN-16."""
    alice, bob = await join(), await join()
    for number in range(200):
        await alice.say("create", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"), value=number)

    assert [(await bob.hear())["body"]["value"] for _ in range(200)] == list(range(200))


async def test_fields_unknown_to_the_node_survive(join):
    """MN-01, MSG-09: unknown keys of a body."""
    alice, bob = await join(), await join()
    odd = {"x-odd": {"a": [True, None, 1.5]}, "auth": False, "idToken": "t", "ünï": "✓\u0000"}

    await alice.say("create", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"), **odd)

    assert odd.items() <= (await bob.hear())["body"].items()


@pytest.mark.parametrize(
    "to",
    [
        f"hyperty://{DOMAIN}/nobody", f"comm://{DOMAIN}/nothing", f"hyperty-runtime://{DOMAIN}/gone/ua",
        f"domain://msg-node.{DOMAIN}/nothing", f"domain://nowhere.{DOMAIN}",
    ],
)  # fmt: skip
async def test_requests_to_unknown_addresses_get_404(join, to):
    """MN-27, MN-25, I-B12, SC-07."""
    peer = await join()
    answer = await peer.ask("create", peer.part("ua"), peer.spelt(to), value=1)

    assert answer["body"]["code"] == 404
    assert answer["from"] == peer.spelt(to)


@pytest.mark.parametrize("type_", ["update", "create"])
async def test_events_to_unknown_addresses_are_dropped_silently(join, type_):
    """MN-27, MN-25."""
    peer = await join()
    thing = await an_object(peer)
    await peer.say(type_, thing, f"{thing}/changes", value=1)

    assert await peer.rest() == []


async def test_an_unrequested_answer_is_dropped_silently(join):
    """MN-25, MN-27: to nobody, to oneself, and to the node."""
    peer = await join()
    for to in (f"hyperty://{DOMAIN}/nobody", peer.part("x"), f"{peer.node}/sm"):
        await peer.say_as(peer.shown_id(900), "response", peer.part("ua"), to, {"code": 200})

    assert await peer.rest() == []


async def test_a_message_never_returns_to_its_sender(join):
    """MN-16, I-L5: a request is not sent back over its own link."""
    peer = await join()
    assert await peer.code("read", peer.part("ua"), peer.part("sm")) == 404


async def test_a_circle_is_broken(join):
    """MN-03, I-L1, I-L4: `via` with a stub twice, or too many, goes no further."""
    alice, bob = await join(), await join()
    to, stub = alice.spelt(f"{bob.inside}/ua"), alice.part("protostub/1")
    await alice.say("create", alice.part("ua"), to, via=[stub, stub])
    await alice.say("create", alice.part("ua"), to, via=[f"{stub}{n}" for n in range(9)])

    await alice.rest()
    assert await bob.rest() == []


async def test_via_goes_through_as_it_is(join):
    """MN-18, PFY-07, I-L3: upstream's stubs tell their own echoes by it."""
    alice, bob = await join(), await join()
    stub = f"hyperty-runtime://{DOMAIN}/{alice.name}/protostub/9"

    await alice.say(
        "create", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"), via=[alice.spelt(stub)]
    )

    assert (await bob.hear())["body"]["via"] == [bob.spelt(stub)]


async def test_a_runtime_of_another_domain_is_served_by_its_own_address(guests):
    """MN-13, MN-18, PFY-03, PFY-06, PFY-07, SC-14: it speaks as its hyperty, answers reach it."""
    bob = await guests()
    (hb,) = await bob.allocate()
    for form in WIRE_FORMS:
        foreign = await guests.connect(guests.abroad("b.ex", form))
        await foreign.open()
        hyperty = f"hyperty://b.ex/{foreign.name}"

        sent = await foreign.say("create", hyperty, hb, value="from abroad")
        request = await bob.hear()
        await bob.answer(request)

        assert request["from"] == hyperty
        assert (await foreign.answer_to(sent))["body"]["code"] == 200


async def from_abroad(join):
    """Connect a runtime of another domain that has no route here."""
    peer = await join.connect(join.abroad("b.ex"))
    await peer.open()
    return peer


async def test_an_address_of_another_domain_belongs_to_its_first_user(join):
    """MN-13, MN-24: bound to that session, 401 for every other, and always in this domain."""
    alice, bob, ours = await from_abroad(join), await from_abroad(join), await join()
    hyperty = f"hyperty://b.ex/first-{alice.name}"

    assert await ours.code("read", hyperty, ours.part("x")) == 401
    assert await alice.code("read", hyperty, alice.part("x")) == 404
    assert await bob.code("read", hyperty, bob.part("x")) == 401
    assert await ours.code("read", hyperty, ours.part("x")) == 401

    await alice.close()


async def test_a_binding_ends_with_its_session(join):
    """MN-13, MN-07, I-A7."""
    alice, bob = await from_abroad(join), await from_abroad(join)
    hyperty = f"hyperty://b.ex/ended-{alice.name}"
    await alice.code("read", hyperty, alice.part("x"))
    await alice.close()
    await bob.rest()

    codes = [await bob.code("read", hyperty, bob.part("x")) for _ in range(2)]

    assert codes[-1] == 404


async def test_addresses_are_not_learnt_from_passing_messages(join):
    """MN-24, U-28, U-36: an address of this domain that nobody was given is nobody's."""
    alice, bob = await join(), await join()
    squatted = f"hyperty://{DOMAIN}/squatted-{alice.name}"

    assert await alice.code("read", squatted, alice.part("x")) == 401
    assert await bob.code("read", bob.part("ua"), squatted) == 404


async def test_a_foreign_domain_without_a_route_gets_404_or_503(join):
    """MN-27, MN-19: never silence."""
    peer = await join()
    assert await peer.code("read", peer.part("ua"), "hyperty://unheard.ex/x") in {404, 503}


async def test_a_list_of_receivers_is_refused(join):
    """MN-03, C-06, N6: 400, nobody gets anything."""
    alice, bob = await join(), await join()
    to = [alice.spelt(f"{bob.inside}/ua"), alice.part("x")]
    await alice.say_as(alice.shown_id(5), "create", alice.part("ua"), to, {})

    assert (await alice.hear())["body"]["code"] == 400
    assert await bob.rest() == []


async def test_the_session_url_of_upstreams_stub_is_an_address_like_any(guests):
    """MN-01, MN-18: `runtime/token` is what it calls itself; others see it without the token."""
    alice, bob = await guests("session"), await guests("link")
    sent = await alice.say("read", alice.stub, f"{bob.inside}/ua")
    request = await bob.hear()
    await bob.answer(request)

    assert alice.token not in json.dumps(request)
    answer = await alice.answer_to(sent)
    assert answer["to"] == alice.stub
    assert isinstance(alice, SessionPeer)


async def test_an_answer_goes_back_over_the_session_that_asked(join):
    """MN-18: also when the asker's address is a part of its runtime only."""
    alice, bob = await join(), await join()
    for part in ("ua", "registry", "deep/er"):
        sent = await alice.say("read", alice.part(part), alice.spelt(f"{bob.inside}/x"))
        await bob.answer(await bob.hear())
        assert (await alice.answer_to(sent))["to"] == alice.part(part)


async def test_provisional_answers_pass_and_the_final_one_after_them(join):
    """MN-02, M-36."""
    alice, bob = await join(), await join()
    sent = await alice.say(
        "subscribe", alice.part("ua"), alice.spelt(f"{bob.inside}/sm"), resource="x"
    )
    request = await bob.hear()
    for code in (100, 183, 200):
        await bob.answer(request, code)

    assert [(await alice.answer_to(sent))["body"]["code"] for _ in range(3)] == [100, 183, 200]
