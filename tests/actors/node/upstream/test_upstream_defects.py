"""What upstream's nodes do wrong, ours does not: U-27..U-45 as far as a node is concerned.

And what kills upstream's nodes (page 11, 5h): one message of one client. Each is sent over
both doors; the peer and everybody else are served on.
"""

import json

import pytest

from tests.support.node.legacy_peer import (
    OLD,
    OLD_INSIDE,
    plain_peer,
    session_outsider,
    session_peer,
)
from tests.support.node.node_peer import ALLOCATION, DR, MN, RA, RB, RX, SM, open_world
from tests.support.node.upstream import DOORS, met, reported

BLOCK = {"scheme": "comm", "value": {"number": 2, "allocationKey": "k"}}


@DOORS
async def test_u27_a_delete_without_a_body_reaches_observers(door, autojump_clock):
    async with met(door) as (_, old, new):
        (obj,) = await new.allocate("comm")
        await reported(old, "subscribe", SM, {"resources": [f"{obj}/changes"]})
        text = {"id": 7, "type": "delete", "from": f"{obj}/subscription", "to": f"{obj}/changes"}
        await new.raw(json.dumps(text).encode())

        assert (await old.hear())["body"] == {}


@DOORS
async def test_u28_using_an_address_does_not_allocate_it(door, autojump_clock):
    async with met(door) as (_, old, new):
        for claimed in ("hyperty://a.ex/nobody", "comm://a.ex/nobody"):
            code, _ = await reported(old, "create", f"{RA}/ua", {"value": 1}, from_=claimed)
            assert code == 401
            assert (await new.ask("read", f"{RA}/ua", claimed)).code == 404


@DOORS
async def test_u29_only_the_owner_frees_and_a_key_is_no_address(door, autojump_clock):
    async with met(door) as (world, old, new):
        (theirs,) = await new.allocate()
        await reported(old, "create", ALLOCATION, BLOCK)
        answer = await new.ask("create", f"{RA}/ua", ALLOCATION, **BLOCK)
        assert answer.code == 200

        for body in ({"childrenResources": [theirs]}, {"resource": theirs}):
            assert (await reported(old, "delete", ALLOCATION, body))[0] == 403
        assert (await reported(old, "delete", ALLOCATION, {"resource": "k"}))[0] == 200
        left = {view.runtime: len(view.addresses) for view in await world.node.sessions()}
        assert left == {OLD_INSIDE: 0, RA: 3}


@DOORS
async def test_u30_a_path_is_set_for_the_source_or_not_at_all(door, autojump_clock):
    async with met(door) as (world, old, _):
        path = {"resources": ["comm://a.ex/o/changes"]}

        assert (await reported(old, "subscribe", SM, {**path, "source": f"{RA}/sm"}))[0] == 403
        assert (await reported(old, "subscribe", SM, {**path, "source": f"{OLD}/sm"}))[0] == 200
        paths = {view.runtime: len(view.paths) for view in await world.node.sessions()}
        assert paths == {OLD_INSIDE: 1, RA: 0}


@DOORS
@pytest.mark.parametrize("part", ["sm", "registry", "ua", "address-allocation", "a/b/c", None])
async def test_u31_all_of_a_runtime_is_reached(door, part, autojump_clock):
    async with met(door) as (_, old, new):
        inside, shown = (f"{one}/{part}" if part else one for one in (OLD_INSIDE, OLD))
        await new.post("read", f"{RA}/ua", inside)

        assert (await old.hear())["to"] == shown


@DOORS
@pytest.mark.parametrize("slash", ["", "/"])
async def test_u32_a_slash_at_the_end_of_a_registry_is_none(door, slash, autojump_clock):
    async with met(door) as (_, old, _):
        await old.say(
            id=1, type="read", from_=f"{OLD}/ua", to=f"{DR}{slash}",
            body={"resource": "hyperty://a.ex/none"},
        )  # fmt: skip

        assert (await old.hear())["body"]["code"] == 404


@DOORS
@pytest.mark.parametrize(
    "to",
    [MN, f"{MN}/s", f"{MN}/smx", f"{MN}/sm/x", f"{DR}/x", f"{DR}x", "domain://registry",
     "domain://a.ex", "domain://x.msg-node.a.ex/sm", "global://reg"],
)  # fmt: skip
async def test_u33_a_part_of_the_node_is_found_by_its_whole_address(door, to, autojump_clock):
    async with met(door) as (_, old, _):
        code, answer = await reported(
            old, "subscribe", to, {"resources": ["comm://a.ex/o/changes"]}
        )

        assert (code, bool(answer["description"])) == (404, True)


@DOORS
async def test_u34_codes_are_numbers(door, autojump_clock):
    async with met(door) as (_, old, _):
        for body in ({}, {"resource": "k"}, {"childrenResources": ["hyperty://a.ex/none"]}):
            assert isinstance((await reported(old, "delete", ALLOCATION, body))[0], int)


@DOORS
async def test_u36_a_user_of_an_address_gets_no_copy_of_messages_to_it(door, autojump_clock):
    async with met(door) as (world, old, new):
        rb = await world.peer(RB)
        (theirs,) = await new.allocate()
        assert (await reported(old, "read", f"{RB}/ua", {}, from_=theirs))[0] == 401

        request = await rb.post("create", f"{RB}/ua", theirs, value=1)
        assert await new.hear() == request
        assert await old.silence()


@DOORS
async def test_u36_a_neighbour_with_a_longer_name_is_another_address(door, autojump_clock):
    async with met(door) as (world, old, new):
        longer = await world.peer(f"{OLD_INSIDE}2")
        await new.post("read", f"{RA}/ua", f"{OLD_INSIDE}2/ua")

        assert (await longer.hear()).to == f"{OLD_INSIDE}2/ua"
        assert await old.silence()
        assert (await reported(old, "read", MN, {}, from_=f"{OLD}2/ua"))[0] == 401


@DOORS
async def test_u37_a_registrys_408_stays_one(door, autojump_clock):
    async with met(door) as (_, old, new):
        (url,) = await new.allocate()
        record = {"url": url, "user": "user://a.ex/u", "runtime": RA, "status": "live",
                  "expires": 3600, "dataSchemes": [], "resources": []}  # fmt: skip
        assert (await new.ask("create", f"{RA}/registry", DR, value=record)).code == 200
        gone = {"resource": url, "attribute": "status", "value": "disconnected"}
        assert (await new.ask("update", f"{RA}/registry", DR, **gone)).code == 200

        assert (await reported(old, "read", DR, {"resource": url}))[0] == 408


async def test_u39_a_known_runtime_name_is_no_password(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        ten = await session_peer(world, "runtime://a.ex/10")
        thief = await session_outsider(world, "runtime://a.ex/1")
        opened = (await thief.session("open"))["body"]
        assert opened["runtimeToken"] != ten.token

        again = await session_outsider(world, "runtime://a.ex/10")
        refused = (await again.session("open"))["body"]
        assert (refused["code"], "runtimeToken" in refused) == (409, False)


@DOORS
async def test_u41_a_path_that_is_answered_200_is_there(door, autojump_clock):
    async with met(door) as (_, old, new):
        (obj,) = await new.allocate("comm")
        assert (await reported(old, "subscribe", SM, {"resources": [f"{obj}/changes"]}))[0] == 200

        await new.post("update", obj, f"{obj}/changes", value=1)
        assert (await old.hear())["body"] == {"value": 1}


@DOORS
async def test_u42_a_session_cannot_answer_for_another(door, autojump_clock):
    async with met(door) as (world, old, new):
        rx = await world.peer(RX)
        request = await new.post("read", f"{RA}/ua", f"{RX}/ua")
        await rx.hear()
        await old.say(
            id=request.id, type="response", from_=request.to, to=request.from_, body={"code": 200}
        )

        assert await new.silence()
        await rx.post_answer(request, 200)
        assert (await new.hear()).from_ == request.to


@DOORS
@pytest.mark.parametrize("scheme", ["hyperty", "comm", "connection", "ctxt"])
async def test_u44_an_address_of_any_scheme_has_an_owner(door, scheme, autojump_clock):
    async with met(door) as (_, old, new):
        wanted = {"scheme": scheme, "value": {"number": 1}}
        _, answer = await reported(old, "create", ALLOCATION, wanted)
        (address,) = answer["value"]["allocated"]

        assert (await new.ask("update", address, MN)).code == 401


# ---- 5h

DEADLY = {
    "to a list": {"to": [ALLOCATION, SM]},
    "to a number": {"to": 7},
    "no body for allocation": {"to": ALLOCATION},
    "no body for paths": {"type": "subscribe", "to": SM},
    "no type for the registry": {"type": None, "to": DR, "body": {"resource": "x"}},
    "a registry's 404": {"type": "read", "to": DR, "body": {"resource": "hyperty://a.ex/none"}},
    "to who never came": {"to": "runtime://a.ex/never/ua", "body": {}},
    "id 0": {"id": 0, "to": SM, "body": {}},
    "a body that is none": {"to": SM, "body": [1]},
}


@DOORS
@pytest.mark.parametrize("said", DEADLY.values(), ids=DEADLY)
async def test_5h_one_message_of_one_client_kills_nothing(door, said, autojump_clock):
    async with met(door) as (_, old, new):
        message = {"id": 3, "type": "create", "from_": f"{OLD}/ua", **said}
        await old.say(**{key: value for key, value in message.items() if value is not None})

        if message["id"] and message["to"] != 7:  # who has no id or end cannot be answered
            assert (await old.hear())["body"]["code"] in {400, 404}
        assert await old.allocate()
        assert (await new.control("ping")).code == 200


@DOORS
@pytest.mark.parametrize("text", [b"{", b'{"cmd"', b"{}", b'{"a":' * 5000, b"\xff{", b"\x00"])
async def test_5h_text_that_is_no_message_kills_nothing(door, text, autojump_clock):
    async with met(door) as (_, old, new):
        await old.raw(text)

        assert await old.allocate()
        assert (await new.control("ping")).code == 200


async def test_5h_a_disconnect_without_a_body_ends_one_session(autojump_clock):
    async with met(plain_peer) as (world, old, new):
        await old.say(cmd="disconnect")
        await new.silence()

        assert await world.states() == {RA: "open"}
        answer = await new.ask("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=1)
        assert answer.code == 404


async def test_5h_a_restarted_node_knows_no_session(autojump_clock):
    async with met(plain_peer) as (_, old, _):
        address = await old.allocate()

    async with met(plain_peer) as (_, _, new):
        assert (await new.ask("create", f"{RA}/ua", address, value=1)).code == 404
