"""The sync manager between whole runtimes: create, invite, observe, change, delete (SYN-01..22)."""

from functools import partial

import attrs
import pytest
import trio

from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.domain import DomainOptions, open_domain
from tests.support.runtime.parties import SCHEMA, SILENT, Party, parties, slow


async def test_an_invited_observer_gets_the_object_and_then_its_changes_in_order(autojump_clock):
    """SYN-13: as they were published."""
    async with parties() as (alice, bob):
        url = await alice.create(t=0)
        assert (await alice.invite(url, bob)).code == 200
        await alice.change(url, "t", 1)
        snapshot = (await bob.observe(url)).body["value"]
        assert (snapshot["version"], snapshot["data"]) == (2, {"t": 1})
        for number in (2, 3, 4):
            await alice.change(url, "t", number)
        await trio.sleep(1)
        reported = [
            (each.body["version"], each.body["value"]) for each in bob.member.hyperty.events
        ]
        assert reported == [(3, 2), (4, 3), (5, 4)]


async def test_the_lists_of_children_are_reported_before_the_object_comes(autojump_clock):
    """SYN-07, C-51: so that nothing is missed that is created meanwhile."""
    async with parties() as (alice, bob):
        url = await alice.create()
        assert (await alice.invite(url, bob)).code == 200
        assert (await bob.observe(url)).code == 200
        manager = f"{bob.member.runtime.url}/sm"
        codes = [
            fact.code
            for fact in bob.member.facts(Op.CALLBACK)
            if (fact.from_, fact.to) == (manager, bob.url)
        ]
    assert codes == [100, 200]


async def test_an_invitation_reports_its_answerer(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        assert (await alice.invite(url, bob)).body["source"] == bob.url


async def test_an_uninvited_observer_is_decided_on_by_the_reporter(autojump_clock):
    """SYN-11."""
    async with parties() as (alice, bob):
        url = await alice.create(t=7)
        answer = await bob.observe(url)
        assert (answer.code, answer.body["value"]["data"]) == (200, {"t": 7})


async def test_a_refused_observer_is_notified_and_hears_nothing(autojump_clock):
    """SYN-11, U-25."""
    async with parties() as (alice, bob):
        url = await alice.create()
        alice.member.hyperty.on_request = refuse_all
        assert (await bob.observe(url)).code == 403
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert bob.member.hyperty.events == []


async def refuse_all(message):
    from actors.runtime.hyperty.hyperty import Refused
    from specs.reply_code import Code

    raise Refused(Code.FORBIDDEN, "no")


async def test_the_decision_of_the_reporter_answers_all_repeated_requests(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        decide, codes = slow(alice), []
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(collect, codes, bob.observe, url)
            await trio.sleep(1)
            assert codes == []
            decide.set()
        assert codes == [200, 200]


async def test_an_object_deleted_while_the_reporter_decides_is_not_found(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        decide, codes = slow(alice), []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, codes, bob.observe, url)
            await trio.sleep(1)
            await alice.ask(MessageType.DELETE, resource=url)
            decide.set()
        assert codes == [404]


async def collect(codes, ask, *args):
    codes.append((await ask(*args)).code)


async def test_a_component_cannot_subscribe_for_a_part_of_another_runtime(autojump_clock):
    """Only whoever runs it, or its own sync manager, speaks for a stub."""
    async with parties() as (alice, bob):
        url = await alice.create(secret=1)
        victim = f"{alice.member.runtime.url}/p2phandler/1"
        for verb in (MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE):
            answer = await alice.ask(verb, f"{url}/subscription", source=victim)
            assert answer.code == 403
        assert (await bob.observe(url)).code == 200


async def test_an_observer_that_left_receives_nothing_more(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert bob.member.hyperty.events == []
        assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200


async def test_observers_read_and_outsiders_do_not(autojump_clock):
    """SYN-18, SYN-19."""
    async with parties() as (alice, bob):
        url = await alice.create(t=1)
        assert (await bob.ask(MessageType.READ, url)).code == 401
        await bob.observe(url)
        assert (await bob.ask(MessageType.READ, url)).body["value"]["data"] == {"t": 1}


async def test_observers_read_one_attribute_and_outsiders_do_not(autojump_clock):
    """MSG-11, SYN-18, SYN-19."""
    async with parties() as (alice, bob):
        url = await alice.create(t={"deep": [1, None]})
        read = partial(bob.ask, MessageType.READ, url)
        assert (await read(attribute="t.deep")).code == 401
        await bob.observe(url)
        answer = (await read(attribute="t.deep.1")).body
        assert (answer["code"], answer["value"], answer["version"]) == (200, None, 1)
        absent = await read(attribute="t.deep.2")
        assert (absent.code, absent.body["description"]) == (404, "the object has no t.deep.2")
        assert (await read(attribute="")).code == 400
        await alice.change(url, "u", 1)
        await trio.sleep(1)
        assert [each.body["value"] for each in bob.member.hyperty.events] == [1]


async def test_a_deleted_attribute_is_deleted_for_all_observers(autojump_clock):
    """MSG-13, M-46: by its reporter, as an ordered change; the object stays."""
    async with parties() as (alice, bob):
        url = await alice.create(t=1, u=2)
        await bob.observe(url)
        gone = partial(alice.ask, MessageType.DELETE, resource=url, attribute="t")
        assert (await gone()).body == {"code": 200, "version": 2}
        assert (await gone()).body == {"code": 200}
        assert (await bob.ask(MessageType.READ, url)).body["value"]["data"] == {"u": 2}
        await trio.sleep(1)
        (event,) = bob.member.hyperty.events
        assert (event.body["version"], event.body["attribute"]) == (2, "t")
        assert "value" not in event.body


async def test_a_deleted_object_is_deleted_for_all_observers(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        assert (await alice.ask(MessageType.DELETE, resource=url)).code == 200
        assert (await alice.change(url, "t", 1)).code == 404
        assert (await bob.observe(url)).code == 404
        assert (await bob.ask(MessageType.READ, url)).code == 404


@pytest.mark.parametrize("verb", ["change", "invite", "delete"])
async def test_only_the_reporter_writes_invites_and_deletes(verb, autojump_clock):
    async with open_domain("alice", options=SILENT) as domain:
        alice = Party(domain["alice"])
        url = await alice.create()
        other = Party(attrs.evolve(domain["alice"], hyperty=await second(domain), address="unused"))
        asked = {
            "change": lambda: other.change(url, "t", 1),
            "invite": lambda: other.invite(url, alice),
            "delete": lambda: other.ask(MessageType.DELETE, resource=url),
        }
        assert (await asked[verb]()).code == 403


async def second(domain):
    from tests.support.runtime.domain import Echo

    hyperty = Echo()
    await domain["alice"].runtime.deploy("second", lambda: hyperty)
    return hyperty


@pytest.mark.parametrize(
    ("type_", "body", "code"),
    [
        (MessageType.UPDATE, {"resource": "comm://a.example/none", "attribute": "t"}, 404),
        (MessageType.DELETE, {"resource": "comm://a.example/none"}, 404),
        (MessageType.DELETE, {}, 400),
        (MessageType.EXECUTE, {"method": "dance"}, 400),
        (MessageType.SUBSCRIBE, {"resource": "comm://a.example/none"}, 404),
        (
            MessageType.CREATE,
            {
                "resource": "comm://a.example/none",
                "schema": SCHEMA,
                "authorise": ["hyperty://a.example/x"],
                "value": {},
            },
            404,
        ),
        (
            MessageType.CREATE,
            {"resource": "comm://a.example/none", "schema": SCHEMA, "authorise": []},
            400,
        ),
        (MessageType.CREATE, {"value": {}}, 400),
    ],
)
async def test_nonsense_is_refused(type_, body, code, autojump_clock):
    async with open_domain("alice", options=SILENT) as domain:
        answer = await Party(domain["alice"]).ask(type_, **body)
        assert answer.code == code


async def test_one_invitation_per_observer(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        both = await alice.ask(
            MessageType.CREATE, resource=url, schema=SCHEMA, authorise=[bob.url, alice.url]
        )
        assert both.code == 400


async def test_an_object_without_an_allocated_address_is_refused(autojump_clock):
    options = DomainOptions(kinds=(), object_schemes=frozenset())
    async with open_domain("alice", options=options) as domain:
        alice = Party(domain["alice"])
        value = {"reporter": alice.url, "runtime": alice.manager, "data": {}}
        assert (await alice.ask(MessageType.CREATE, schema=SCHEMA, value=value)).code == 400
