"""The domain registry as others see it (M-21..M-30, CON-02, CON-08, I-G1..I-G6)."""

import pytest
import trio

from specs.limits.protocol import REGISTRATION_EXPIRES, REGISTRATION_GRAVE
from tests.support.node.node_peer import DR, RA, RB, SM, open_world

BOB = "user://idp.ex/bob"


def record(url, runtime=RB, **more):
    return {
        "url": url, "runtime": runtime, "status": "live", "user": BOB,
        "resources": ["chat"], "dataSchemes": ["comm"], **more,
    }  # fmt: skip


async def registered(peer, **more):
    """Allocate an address and register it."""
    (url,) = await peer.allocate()
    answer = await peer.ask("create", f"{peer.runtime}/registry", DR, value=record(url, **more))
    assert answer.code == 200, answer.body
    return url


async def read(peer, resource, **more):
    return await peer.ask("read", f"{peer.runtime}/registry", DR, resource=resource, **more)


async def update(peer, url, **more):
    return await peer.ask("update", f"{peer.runtime}/registry", DR, resource=url, **more)


async def test_a_registered_record_is_found_with_all_fields(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb, p2pHandler=f"{RB}/p2phandler/1", unheard_of=1)

        answer = await read(ra, url)

        assert answer.code == 200
        assert answer.body["value"] == record(url, p2pHandler=f"{RB}/p2phandler/1", unheard_of=1)
        assert answer.from_ == DR


async def test_an_unregistered_address_gets_404(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)

        assert (await read(ra, "hyperty://a.ex/nobody")).code == 404
        assert (await update(ra, "hyperty://a.ex/nobody")).code == 404
        assert (await read(ra, "user://idp.ex/nobody")).code == 404


@pytest.mark.parametrize(
    "more",
    [{"runtime": RA}, {"p2pHandler": f"{RA}/p2phandler/1"}, {"url": "hyperty://a.ex/not-mine"}],
)
async def test_a_record_that_is_not_the_runtimes_own_gets_403(more, autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        (url,) = await rb.allocate()

        answer = await rb.ask("create", f"{RB}/registry", DR, value={**record(url), **more})

        assert answer.code == 403


async def test_only_its_runtime_changes_a_record(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)

        answer = await update(ra, url, attribute="status", value="disconnected")

        assert answer.code == 403
        assert (await read(ra, url)).code == 200


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("create", {"value": {"url": "nonsense", "runtime": RB}}),
        ("create", {"value": [1]}),
        ("create", {}),
        ("update", {}),
        ("update", {"resource": "nonsense"}),
        ("update", {"resource": "hyperty://a.ex/x", "value": 7}),
        ("read", {}),
        ("read", {"resource": "nonsense"}),
        ("delete", {"resource": "hyperty://a.ex/x"}),
    ],
)
async def test_an_invalid_request_gets_400(type_, body, autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)

        assert (await rb.ask(type_, f"{RB}/registry", DR, **body)).code == 400


@pytest.mark.parametrize(
    ("resource", "criteria", "code"),
    [
        (BOB, None, 200),
        (f"/hyperty/user/{BOB}", {"resources": ["chat"], "dataSchemes": ["comm"]}, 200),
        (f"/hyperty/user/{BOB}", {"resources": ["chat", "video"]}, 404),
        (f"/comm/user/{BOB}", None, 404),
        ("user-guid://g1", None, 200),
        ("/hyperty/idp-identifier/bob@idp.ex", None, 200),
        ("/hyperty/idp-identifier/eve@idp.ex", None, 404),
        ("/hyperty/name/greeter", None, 200),
        ("/hyperty/resources/chat", None, 200),
        ("/hyperty/resources/chat", {"name": "greeter", "user": BOB}, 200),
        ("/hyperty/resources/chat", {"name": "clock"}, 404),
        ("/hyperty/resources/chat", {"user": "user://idp.ex/eve"}, 404),
        ("/hyperty/resources/video", None, 404),
        ("/hyperty/dataSchemes/comm", {"resources": ["chat"]}, 200),
        ("/hyperty/dataSchemes/ctxt", None, 404),
        (f"/hyperty/user/{BOB}", {"name": "greeter"}, 200),
        (f"/hyperty/user/{BOB}", {"name": "clock"}, 404),
    ],
)
async def test_searches_find_what_fits(resource, criteria, code, autojump_clock):
    """MSG-11: by a resource and criteria."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb, guid="user-guid://g1", name="greeter")

        answer = await read(ra, resource, **({"criteria": criteria} if criteria else {}))

        assert answer.code == code
        assert [one["url"] for one in answer.body.get("value", [])] == ([url] * (code == 200))


async def test_one_attribute_of_a_record_is_read(autojump_clock):
    """MSG-11: as one record and a page of a search are."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)

        assert (await read(ra, url)).body["value"] == record(url)
        assert (await read(ra, url, attribute="user")).body["value"] == BOB
        assert (await read(ra, BOB, limit=1)).body["value"] == [record(url)]


async def test_an_attribute_that_is_null_is_read_as_null_and_not_as_absent(autojump_clock):
    """MSG-11."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb, note=None)

        answer = await read(ra, url, attribute="note")

        assert (answer.code, answer.body) == (200, {"code": 200, "value": None})


async def test_a_changed_list_is_found_by_its_new_texts_only(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        mixed = ["video", {"a": 1}, "video", 7]
        assert (await update(rb, url, attribute="resources", value=mixed)).code == 200
        assert (await read(ra, "/hyperty/resources/chat")).code == 404
        found = (await read(ra, "/hyperty/resources/video")).body["value"]
        assert [one["url"] for one in found] == [url]


async def test_only_a_runtime_itself_reads_all_that_it_has_registered(autojump_clock):
    """ALC-02: it looks for the addresses that it had."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        assert [one["url"] for one in (await read(rb, f"/hyperty/runtime/{RB}")).body["value"]] == [
            url
        ]
        assert (await read(ra, f"/hyperty/runtime/{RB}")).code == 403


async def test_without_keep_alive_a_record_expires(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        url = await registered(rb, expires=60)
        await rb.silence(50)
        assert (await update(rb, url)).code == 200
        await rb.silence(50)
        assert (await read(rb, url)).code == 200

        await rb.silence(20)

        answer = await read(rb, url)
        assert (answer.code, answer.body["value"][0]["status"]) == (408, "disconnected")


async def test_a_keep_alive_brings_an_expired_record_back(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        url = await registered(rb, expires=60)
        await rb.silence(100)

        await update(rb, url)

        assert (await read(rb, url)).code == 200
        assert [new for _, _, new in world.steps("registration")] == [
            "live", "disconnected", "live",
        ]  # fmt: skip


async def test_an_unclaimed_record_ends(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        url = await registered(rb)
        await update(rb, url, attribute="status", value="disconnected")
        await rb.control("close")

        await trio.sleep(REGISTRATION_GRAVE + 1)

        again = await world.peer(RB)
        assert (await read(again, url)).code == 404
        assert world.steps("registration")[-1] == (url, "disconnected", "dead")


async def test_a_closed_session_takes_its_records_with_it(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)

        await rb.control("close")

        assert (await read(ra, url)).code == 408


async def test_a_drained_node_leaves_no_record_live(autojump_clock):
    async with open_world() as world:
        url = await registered(await world.peer(RB), expires=REGISTRATION_EXPIRES)

    assert world.steps("registration")[-1] == (url, "live", "disconnected")


async def test_only_real_changes_are_reported(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await registered(rb)
        await ra.ask("subscribe", f"{RA}/registry", SM, resources=[f"{url}/registration"])

        await update(rb, url, value={"status": "live", "user": BOB})
        await update(rb, url)
        await update(rb, url, attribute="status", value="disconnected")
        await update(rb, url, attribute="status", value="disconnected")
        await update(rb, url, value={"status": "live"})

        reported = [(await ra.hear()).body["value"] for _ in range(2)]
        assert reported == ["disconnected", "live"]
        assert await ra.silence()
