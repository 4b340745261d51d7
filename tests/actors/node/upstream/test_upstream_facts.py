"""What upstream's peers send and expect, fact by fact, over both of their doors (page 11, C-65).

Each row is what a peer says, written as it is on the wire, and what it must hear.
"""

import pytest

from specs.reply_code import DropReason
from tests.support.node.legacy_peer import OLD, OLD_INSIDE
from tests.support.node.node_peer import ALLOCATION, MN, RA, SM
from tests.support.node.upstream import DOORS, met, reported

OBJ = "comm://a.ex/made-by-old"


# ---- 5d: allocation

OLD_TARGET = "hyperty-address-allocation"
OLDER_TARGET = "object-address-allocation"


def wanted(scheme="hyperty", **value):
    return {"scheme": scheme, "value": value}


# fmt: off
ALLOCATIONS = {
    "lower case":         ("create", ALLOCATION, wanted(number=2), 2),
    "upper case":         ("CREATE", ALLOCATION, wanted(number=1), 1),
    "any case":           ("Create", ALLOCATION, wanted("comm", number=3), 3),
    "old hyperty target": ("create", f"{MN}/{OLD_TARGET}", wanted(number=1), 1),
    "old object target":  ("create", f"{MN}/{OLDER_TARGET}", wanted("connection", number=1), 1),
    "a key in value":     ("create", ALLOCATION, wanted("comm", number=2, allocationKey="k"), 2),
    "number absent":      ("create", ALLOCATION, wanted(), 400),
    "number 0":           ("create", ALLOCATION, wanted(number=0), 400),
    "number as text":     ("create", ALLOCATION, wanted(number="1"), 400),
    "value absent":       ("create", ALLOCATION, {"scheme": "hyperty"}, 400),
    "scheme absent":      ("create", ALLOCATION, {"value": {"number": 1}}, 400),
    "scheme unknown":     ("create", ALLOCATION, wanted("gopher", number=1), 400),
    "another type":       ("update", ALLOCATION, wanted(number=1), 400),
    "no body":            ("create", ALLOCATION, None, 400),
}
# fmt: on


@DOORS
@pytest.mark.parametrize("said", ALLOCATIONS.values(), ids=ALLOCATIONS)
async def test_5d_allocation(door, said, autojump_clock):
    type_, to, body, wanted = said
    async with met(door) as (_, old, _):
        code, answer = await reported(old, type_, to, body)

        if wanted == 400:
            assert code == 400
            assert answer["description"]
        else:
            allocated = answer["value"]["allocated"]
            assert (code, len(set(allocated))) == (200, wanted)
            assert {one.rpartition("/")[0] for one in allocated} == {f"{body['scheme']}://a.ex"}


FREEINGS = {
    "by key": lambda _: {"resource": "k"},
    "by key in a list": lambda _: {"resource": ["k"]},
    "by key in value": lambda _: {"value": {"allocationKey": "k"}},
    "by list": lambda these: {"childrenResources": these},
    "by nested list": lambda these: {"childrenResources": [these]},
    "by several nested lists": lambda these: {"childrenResources": [these[:1], these[1:]]},
    "by list in value": lambda these: {"value": {"childrenResources": these}},
}


@DOORS
@pytest.mark.parametrize("target", ["address-allocation", OLDER_TARGET])
@pytest.mark.parametrize("free", FREEINGS.values(), ids=FREEINGS)
async def test_5d_deallocation(door, target, free, autojump_clock):
    async with met(door) as (world, old, _):
        asked = wanted("comm", number=3, allocationKey="k")
        _, answer = await reported(old, "create", ALLOCATION, asked)
        these = answer["value"]["allocated"]

        assert await reported(old, "delete", f"{MN}/{target}", free(these)) == (200, {})
        assert [view.addresses for view in await world.node.sessions()] == [(), ()]
        assert await reported(old, "delete", f"{MN}/{target}", free(these)) == (200, {})


@DOORS
@pytest.mark.parametrize(
    "body",
    [{}, None, {"resource": ["k", "l"]}, {"resource": []}, {"childrenResources": [[["x"]]]},
     {"childrenResources": [7]}, {"resource": "k", "childrenResources": []}],
)  # fmt: skip
async def test_5d_a_free_request_without_addresses_gets_400(door, body, autojump_clock):
    async with met(door) as (_, old, _):
        assert (await reported(old, "delete", ALLOCATION, body))[0] == 400


@DOORS
async def test_5d_an_allocated_address_is_reached_without_a_path(door, autojump_clock):
    """Objects too, which upstream's nodes leave unmapped (U-44)."""
    async with met(door) as (_, old, new):
        for scheme in ("hyperty", "comm"):
            _, answer = await reported(old, "create", ALLOCATION, wanted(scheme, number=1))
            (address,) = answer["value"]["allocated"]
            sent = await new.post("read", f"{RA}/ua", address)
            assert (await old.hear())["id"] == sent.id


# ---- 5e: subscription

PATH = f"{OBJ}/changes"
SUBSCRIPTIONS = {
    "resources": {"resources": [PATH]},
    "resources as text": {"resources": PATH},
    "subscribe": {"subscribe": [PATH]},
    "resource": {"resource": PATH},
    "resource as list": {"resource": [PATH]},
    "two that agree": {"resources": [PATH], "subscribe": [PATH]},
    "with source": {"resources": [PATH], "source": OLD},
    "with subscriber": {"resources": [PATH], "subscriber": f"{OLD}/sm"},
    "as the seeds say": {"resource": OBJ, "childrenResources": []},
}


@DOORS
@pytest.mark.parametrize("type_", ["subscribe", "SUBSCRIBE"])
@pytest.mark.parametrize("body", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
async def test_5e_a_path_is_set_and_removed(door, type_, body, autojump_clock):
    async with met(door) as (_, old, new):
        await new.ask("subscribe", f"{RA}/sm", SM, resources=[OBJ])
        assert await reported(old, type_, SM, body) == (200, {})
        await new.post("update", OBJ, PATH, value=1)
        assert (await old.hear())["body"] == {"value": 1}
        off = {("unsubscribe" if key == "subscribe" else key): v for key, v in body.items()}
        undo = "UNSUBSCRIBE" if type_.isupper() else "unsubscribe"
        assert await reported(old, undo, SM, off) == (200, {})

        await new.post("update", OBJ, PATH, value=2)
        assert await old.silence()


@DOORS
@pytest.mark.parametrize("children", [["resources"], ["resources", "x"]])
async def test_5e_the_seeds_form_names_children(door, children, autojump_clock):
    async with met(door) as (world, old, _):
        await reported(old, "subscribe", SM, {"resource": OBJ, "childrenResources": children})

        paths = {view.runtime: view.paths for view in await world.node.sessions()}
        assert paths[OLD_INSIDE] == (PATH, *(f"{OBJ}/children/{name}" for name in children))


@DOORS
@pytest.mark.parametrize(
    "body",
    [None, {}, {"resources": [PATH], "subscribe": [OBJ]}, {"resources": 7}, {"resources": []}],
)
async def test_5e_a_subscription_with_no_path_or_two_gets_400(door, body, autojump_clock):
    async with met(door) as (world, old, _):
        assert (await reported(old, "subscribe", SM, body))[0] == 400
        assert [view.paths for view in await world.node.sessions()] == [(), ()]


@DOORS
async def test_5e_an_update_comes_once_and_not_back(door, autojump_clock):
    async with met(door) as (_, old, new):
        body = {"resources": [OBJ, PATH], "source": OLD}
        for _ in range(2):
            assert (await reported(old, "subscribe", SM, body))[0] == 200
        await new.ask("subscribe", f"{RA}/sm", SM, resources=[PATH])
        await old.say(id="9", type="update", from_=OBJ, to=PATH, body={"version": 2})

        assert (await new.hear()).body == {"version": 2}
        assert await new.silence()
        assert await old.silence()


@DOORS
async def test_5d_an_address_chosen_by_a_runtime_is_claimed_by_a_path(door, autojump_clock):
    """Upstream's newest runtime allocates nothing; nobody else may have it (C-44)."""
    async with met(door) as (_, old, new):
        made = "hyperty://a.ex/5f0e8c1e-guid"
        body = {"resources": [made], "source": f"{OLD}/address-allocation"}
        assert (await reported(old, "subscribe", SM, body))[0] == 200
        assert (await reported(old, "subscribe", SM, body))[0] == 200

        assert (await new.ask("subscribe", f"{RA}/sm", SM, resources=[made])).code == 403
        await new.post("create", f"{RA}/ua", made, value=1)
        assert (await old.hear())["to"] == made


# ---- 5a, 5b, 5g: the envelope


@DOORS
async def test_5a_every_field_of_a_body_arrives_unchanged(door, autojump_clock):
    async with met(door) as (_, old, new):
        body = {"zebra": 1, "value": {"b": [1, {}], "a": None}, "apple": "é", "auth": True}
        await old.say(id=1, type="create", from_=f"{OLD}/ua", to=f"{RA}/ua", body=body)

        heard = (await new.hear()).body
        assert heard == body
        assert list(heard) == list(body)


@DOORS
async def test_5b_via_is_one_text_for_peers_that_write_it_so(door, autojump_clock):
    """By it upstream's stubs know their own messages again."""
    async with met(door) as (_, old, new):
        await reported(old, "subscribe", SM, {"resources": [OBJ], "via": f"{OLD}/protostub/7"})
        await new.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", via=[f"{RA}/protostub/1"])
        assert (await old.hear())["body"]["via"] == "runtime://a.ex/ra/protostub/1"


@DOORS
@pytest.mark.parametrize(
    "to", ["hyperty://a.ex/nobody", "runtime://a.ex/nobody/ua", "hyperty://b.ex/x", f"{MN}/x"]
)
async def test_5g_requests_to_an_unreachable_address_are_answered_404(door, to, autojump_clock):
    async with met(door) as (_, old, _):
        assert (await reported(old, "read", to, {}))[0] == 404


@DOORS
@pytest.mark.parametrize("id_", [0, -1, 1.5, "x", "007", "", None, [1], True, 2**60])
async def test_5a_an_id_that_is_none_is_refused_or_counted(door, id_, autojump_clock):
    async with met(door) as (world, old, _):
        await old.say(id=id_, type="read", from_=f"{OLD}/ua", to=f"{RA}/ua", body={})

        assert await old.allocate()
        assert world.node.counters.drops[DropReason.MALFORMED] == 1
