"""Upstream's runtime meets ours at one node: the habits of its syncher and its registry.

An observer or reporter that is written out here says what upstream's runtime says, letter by
letter, and reads what that runtime reads; the other end is a runtime of ours.
"""

import json
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import actors
from actors.node.links.acceptor import spelt
from actors.runtime.config import RuntimeConfig
from fsm.registry.node_rights import Observation
from fsm.session.node_session_io import OutboundMessage
from specs.dialects.dialect import UPSTREAM, dialect_of
from specs.limits.protocol import MAX_SPELLINGS
from specs.message import Message, MessageType
from tests.support.node.legacy_peer import OLD
from tests.support.node.node_peer import DR, MN, RA, RB, SM, open_world
from tests.support.node.upstream import DOORS, met, reported
from tests.support.report_world import Open
from transports.codec import encode

GUID = "comm://a.ex/6f1c0a52-guid-made-by-its-runtime"
SCHEMA = "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Communication"


@asynccontextmanager
async def ours(world):
    """A hyperty in a runtime of ours at the node."""
    config = RuntimeConfig(domain="a.ex", name="ours", node=world.node.url, clock_offset=1e9)
    async with actors.open_runtime(config, network=world.network) as runtime:
        yield await runtime.deploy(Open)


# ---- an answer goes back to exactly the `from` of its request


@DOORS
@pytest.mark.parametrize(
    "from_",
    [f"{OLD}/registry/", f"{OLD}/discovery/", f"{OLD}/registry", "runtime://A.EX/old/registry/",
     "hyperty-runtime://a.ex/old/registry/", "hyperty-runtime://a.ex/old/registry"],
)  # fmt: skip
async def test_an_answer_goes_to_the_sender_as_it_wrote_itself(door, from_, autojump_clock):
    async with met(door) as (_, old, _):
        other = {"id": 6, "type": "read", "from_": f"{OLD}/ua", "to": f"{MN}/x", "body": {}}
        await old.say(id=5, type="read", from_=from_, to=DR, body={"resource": GUID})
        await old.say(**other)

        answers = [await old.hear() for _ in range(2)]
        assert {one["id"]: one["to"] for one in answers} == {5: from_, 6: f"{OLD}/ua"}


@DOORS
async def test_a_peer_may_change_how_it_writes_itself(door, autojump_clock):
    async with met(door) as (_, old, _):
        for from_ in (f"{OLD}/registry/", f"{OLD}/registry", f"{OLD}/registry/"):
            await reported(old, "read", DR, {"resource": GUID}, from_=from_)


@DOORS
async def test_what_others_send_to_it_is_addressed_as_it_writes_itself(door, autojump_clock):
    async with met(door) as (_, old, new):
        await reported(old, "read", DR, {"resource": GUID}, from_=f"{OLD}/registry/")
        await new.post("read", f"{RA}/registry", "hyperty-runtime://a.ex/old/registry", resource=1)

        assert (await old.hear())["to"] == f"{OLD}/registry/"


@DOORS
async def test_the_spelling_of_the_latest_addresses_is_remembered(door, autojump_clock):
    async with met(door) as (_, old, _):
        for number in range(MAX_SPELLINGS + 2):
            await reported(old, "read", f"{MN}/x", {}, from_=f"{OLD}/part-{number}/")
        latest = f"{OLD}/part-{MAX_SPELLINGS + 1}"
        await old.say(id=7, type="read", from_=f"{OLD}/ua", to=latest, body={})
        await old.say(id=8, type="read", from_=f"{OLD}/ua", to=f"{OLD}/part-0", body={})

        answers = {(await old.hear())["from"] for _ in range(2)}
        assert answers == {f"{latest}/", f"{OLD}/part-0"}


@DOORS
async def test_the_spelling_of_addresses_outlives_the_link(door, autojump_clock):
    async with met(door) as (world, old, new):
        await reported(old, "read", DR, {"resource": GUID}, from_=f"{OLD}/registry/")
        await old.link.aclose()
        await wait_all_tasks_blocked()
        await new.post("read", f"{RA}/registry", "hyperty-runtime://a.ex/old/registry", resource=1)
        await new.silence()

        assert (await (await door(world)).hear())["to"] == f"{OLD}/registry/"


async def test_peers_that_spell_alike_share_a_line_unless_one_is_named_in_it():
    message = Message(1, MessageType.CREATE, "hyperty://a.ex/1", f"{GUID}/children", {})
    entry = OutboundMessage(message, encode(message), {})
    known = dialect_of({"from": "hyperty://A.EX/1"}, UPSTREAM)

    assert [json.loads(spelt(entry, one))["from"] for one in (UPSTREAM, known, UPSTREAM)] == [
        "hyperty://a.ex/1", "hyperty://A.EX/1", "hyperty://a.ex/1",
    ]  # fmt: skip
    assert list(entry.spelt) == [UPSTREAM] == [known]


async def test_our_own_forms_are_answered_in_normal_form(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        new = await world.peer(RA)
        await new.raw(
            b'{"id":9,"type":"read","from":"%s/ua/","to":"%s/x","body":{}}'
            % (RA.encode(), MN.encode())
        )

        assert (await new.hear()).to == f"{RA}/ua"


# ---- an observer of upstream's, an object of ours


async def observed(old, url):
    """Observe as upstream's sync manager does; return the two answers."""
    hyperty = await old.allocate()
    path = {"resources": [f"{url}/changes", f"{url}/children/"], "source": hyperty}
    code, _ = await reported(old, "subscribe", SM, path, from_=f"{OLD}/sm")
    _, granted = await reported(
        old, "subscribe", f"{url}/subscription", {"subscriber": hyperty}, from_=f"{OLD}/sm"
    )
    return code, granted


@DOORS
async def test_an_observer_gets_all_that_upstreams_data_objects_are_made_of(door, autojump_clock):
    async with (
        met(door, observation=Observation.OWNER) as (world, old, _),
        ours(world) as hyperty,
        hyperty.report("comm", {"n": 1}) as thing,
    ):
        code, granted = await observed(old, thing.url)
        await thing.set("n", 2)
        change = await old.hear()

        value = granted["value"]
        wanted = {"url": thing.url, "reporter": hyperty.url, "name": thing.url, "version": 1}
        assert code == 200
        assert {key: value[key] for key in wanted} == wanted
        assert value["created"].startswith("2001-09-09T")
        assert value["created"].endswith("Z")
        assert value["runtime"]
        assert value["schema"]
        assert (change["to"], change["body"]["version"]) == (f"{thing.url}/changes", 2)


@DOORS
async def test_a_name_that_an_object_has_is_shown(door, autojump_clock):
    async with met(door) as (world, old, _), ours(world) as hyperty:
        async with hyperty.report("comm", {}, name="room") as thing:
            _, granted = await observed(old, thing.url)

        assert granted["value"]["name"] == "room"


async def test_only_upstreams_peers_have_one_address_of_all_children(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (url,) = await ra.allocate("comm")
        (hyperty,) = await rb.allocate()
        paths = [f"{url}/changes", f"{url}/children/"]

        assert (await rb.ask("subscribe", f"{RB}/sm", SM, resources=paths)).code == 403
        assert (await rb.ask("create", hyperty, f"{url}/children", value=1)).code == 403
        assert (await ra.ask("create", url, f"{url}/children", value=1)).code == 403


@DOORS
async def test_children_reach_upstreams_observers_at_the_one_address_of_all(door, autojump_clock):
    async with met(door) as (world, old, new):
        other = await door(world, "runtime://a.ex/other")
        made = await old.allocate(), await other.allocate()
        children = f"{GUID}/children/"
        own = {"resources": [GUID, f"{GUID}/subscription", children], "source": made[0]}
        await reported(old, "subscribe", SM, own, from_=f"{OLD}/sm")
        child = {"id": 8, "type": "create", "from_": made[1], "to": children, "body": {"value": 1}}
        assert (await other.ask(**child))["body"]["code"] == 403
        path = {"resources": [f"{GUID}/changes", children]}
        sm = f"{other.runtime}/sm"
        await reported(other, "subscribe", SM, path, from_=sm)
        await other.say(**child)

        assert (await old.hear())["to"] == children
        assert await new.silence()


# ---- a reporter of upstream's, an observer of ours


async def reporting(old):
    """Set the paths that upstream's reporter object sets; return the address of its hyperty."""
    hyperty = await old.allocate()
    made = {"resources": [GUID, f"{GUID}/subscription"], "source": hyperty}
    assert (await reported(old, "subscribe", SM, made, from_=f"{OLD}/sm"))[0] == 200
    return hyperty


async def granted(old, hyperty, version):
    """Grant what is asked next as upstream's reporter does; return what was asked.

    The metadata is that of upstream's data objects.
    """
    asked = await old.hear()
    value = {
        "url": GUID, "reporter": hyperty, "runtime": OLD, "schema": SCHEMA, "name": "room",
        "created": "2026-01-01T00:00:00.000Z", "status": "live", "data": {"n": 0},
        "version": version, "childrenObjects": {},
    }  # fmt: skip
    await old.say(
        id=asked["id"], type="response", from_=asked["to"], to=asked["from"],
        body={"code": 200, "schema": SCHEMA, "value": value},
    )  # fmt: skip
    return asked


async def changed(old, hyperty, version):
    await old.say(
        id=40 + version, type="update", from_=GUID, to=f"{GUID}/changes",
        body={"version": version, "source": hyperty, "attribute": "n", "value": version,
              "lastModified": "2026-01-01T00:00:01.000Z"},
    )  # fmt: skip


@DOORS
@pytest.mark.parametrize("first", [0, 3])
async def test_our_observer_follows_an_object_whose_versions_count_from_0(
    door, first, autojump_clock
):
    async with met(door) as (world, old, _), ours(world) as observer:
        reporter, asked = await reporting(old), {}

        async def grant():
            asked.update(await granted(old, reporter, first))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(grant)
            with trio.fail_after(60):
                async with observer.observe(GUID) as copy:
                    for version in range(first + 1, first + 4):
                        await changed(old, reporter, version)
                    await copy.wait_for(lambda value: value["n"] == first + 3)
                    version = copy.version
                    assert await old.silence()

        assert version == max(first, 1) + 3
        assert asked["to"] == f"{GUID}/subscription"
        assert asked["body"]["subscriber"] == asked["body"]["source"] == observer.url


async def test_a_version_0_of_our_own_form_is_passed_on_as_it_is(autojump_clock):
    """Only upstream's reporters count from 0: no observer of ours takes it from others."""
    async with open_world(allow_legacy=True) as world, ours(world) as hyperty:
        ra = await world.peer(RA)
        (url,) = await ra.allocate("comm")
        await ra.ask("subscribe", f"{RA}/sm", SM, resources=[url, f"{url}/subscription"])

        async def report():
            asked = await ra.hear()
            assert "subscriber" not in asked.body
            value = {"url": url, "version": 0, "data": {}, "reporter": url, "runtime": RA}
            await ra.post_answer(asked, 200, value=value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(report)
            with pytest.raises(actors.ObjectError), trio.fail_after(60):
                async with hyperty.observe(url):
                    pass


# ---- a data object is registered before it is claimed


def record(**more):
    return {
        "name": "room", "schema": SCHEMA, "url": GUID, "expires": 3600, "resources": ["chat"],
        "reporter": "hyperty://a.ex/theirs", "dataSchemes": ["comm"], "status": "live",
        "runtime": OLD, "startingTime": "2026-01-01T00:00:00.000Z",
    } | more  # fmt: skip


@DOORS
async def test_a_registration_claims_an_object_that_nobody_owns(door, autojump_clock):
    async with met(door) as (_, old, new):
        hyperty, registry = await old.allocate(), f"{OLD}/registry/"
        wanted = {"value": record(reporter=hyperty), "policy": "policy"}

        assert (await reported(old, "create", DR, wanted, from_=registry))[0] == 200
        made = {"subscribe": [GUID, f"{GUID}/subscription"], "source": hyperty}
        assert (await reported(old, "subscribe", SM, made, from_=f"{OLD}/sm"))[0] == 200
        await new.post("subscribe", f"{RA}/sm", f"{GUID}/subscription", source=f"{RA}/sm")
        assert (await old.hear())["body"]["subscriber"] == "runtime://a.ex/ra/sm"
        assert (await new.ask("subscribe", f"{RA}/sm", SM, resources=[GUID])).code == 403


@DOORS
@pytest.mark.parametrize(
    "value",
    [
        {"reporter": "hyperty://a.ex/somebody"},
        {"reporter": None},
        {"url": "hyperty://a.ex/guid", "reporter": "its own"},
        {"url": "comm://b.ex/guid", "reporter": "its own"},
        {"url": f"{GUID}/changes", "reporter": "its own"},
    ],
)
async def test_nothing_else_is_claimed_by_a_registration(door, value, autojump_clock):
    async with met(door) as (world, old, _):
        hyperty = await old.allocate()
        own = {"reporter": hyperty} if value["reporter"] == "its own" else {}
        code, _ = await reported(
            old, "create", DR, {"value": record(**value | own)}, from_=f"{OLD}/registry/"
        )

        assert code in {400, 403}
        (view,) = [one for one in await world.node.sessions() if one.runtime != RA]
        assert view.addresses == (hyperty,)


@DOORS
async def test_the_object_of_another_session_is_not_registered(door, autojump_clock):
    async with met(door) as (_, old, new):
        await new.ask("subscribe", f"{RA}/sm", SM, resources=[GUID])
        wanted = {"value": record(reporter=await old.allocate())}

        assert (await reported(old, "create", DR, wanted, from_=f"{OLD}/registry/"))[0] == 403


async def test_in_our_own_forms_an_object_is_claimed_before_it_is_registered(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        ra = await world.peer(RA)
        (hyperty,) = await ra.allocate()
        value = record(reporter=hyperty, runtime=RA)

        assert (await ra.ask("create", f"{RA}/registry", DR, value=value)).code == 403
        await ra.ask("subscribe", f"{RA}/sm", SM, resources=[GUID])
        assert (await ra.ask("create", f"{RA}/registry", DR, value=value)).code == 200


# ---- a hyperty is unregistered by a path


@DOORS
async def test_a_hyperty_is_unregistered_by_its_path(door, autojump_clock):
    async with met(door) as (_, old, new):
        url, registry = await old.allocate(), f"{OLD}/registry/"
        value = {
            "url": url, "runtime": OLD, "status": "live", "expires": 3600, "resources": ["chat"],
            "dataSchemes": ["comm"], "descriptor": "hyperty-catalogue://a.ex/Chat",
        }  # fmt: skip
        await reported(old, "create", DR, {"value": value}, from_=registry)
        gone = {"resource": f"/hyperty/{url}", "value": "disconnected", "attribute": "status"}

        assert (await new.ask("update", f"{RA}/registry", DR, **gone)).code == 400
        assert (await reported(old, "update", DR, gone, from_=registry))[0] == 200
        assert (await reported(old, "read", DR, {"resource": url}, from_=registry))[0] == 408
