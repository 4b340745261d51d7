"""Policies are managed by messages of administrators: POL-05, C-62."""

import tomllib

import attrs
import pytest

from specs.bodies.policy import UNTIL_STOP, PoliciesChanged, PoliciesListed, PoliciesShown
from tests.support.node.issuer import Issuer
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.node.policing import POLICY, logged_in, one_policy, optional_login, policed, rule
from transports.bodies import read_body

NOTHING = one_policy()
CALM = tomllib.loads(one_policy(rule("calm", 'effect = "deny"\nreason = "hush"\n'
                                'target.msgTo.like = "*/ua"'), name="calm"))  # fmt: skip
LOUD = {**CALM, "version": 2, "policies": [{**CALM["policies"][0], "rules": []}]}


@attrs.frozen
class Office:
    """An administrator, and somebody who is none."""

    admin: object
    other: object

    async def ask(self, type_: str, **body: object):
        return await self.admin.ask(type_, f"{RA}/admin", POLICY, **body)

    async def is_hushed(self) -> bool:
        answer = await self.other.ask("create", f"{RB}/ua", f"{RA}/ua", value=1)
        assert (answer.code == 403) is (answer.body.get("description") == "hush")
        return answer.code == 403


async def office(world, issuer) -> Office:
    admin = await logged_in(world, issuer, RA, roles=["admin", "staff"])
    return Office(admin, await logged_in(world, issuer, RB, roles=["staff"]))


@pytest.fixture
def issuer():
    return Issuer()


@pytest.fixture
def reported(tmp_path, issuer):
    return {**policed(tmp_path, NOTHING), **optional_login(issuer)}


async def test_a_set_is_added_replaced_and_removed(reported, issuer, autojump_clock):
    async with open_world(**reported) as world:
        there = await office(world, issuer)
        await there.other.post("create", f"{RB}/ua", f"{RA}/ua", value=1)
        assert (await there.admin.hear()).to == f"{RA}/ua"

        added = read_body(await there.ask("create", value=CALM), PoliciesChanged)
        assert (added.value.version, added.value.lasts) == (2, UNTIL_STOP)
        assert await there.is_hushed()

        changed = read_body(await there.ask("update", resource="calm", value=LOUD), PoliciesChanged)
        assert changed.value.version == 3
        await there.other.post("create", f"{RB}/ua", f"{RA}/ua", value=1)
        assert (await there.admin.hear()).to == f"{RA}/ua"

        await there.ask("update", resource="calm", value=CALM)
        assert await there.is_hushed()
        removed = read_body(await there.ask("delete", resource="calm"), PoliciesChanged)
        assert removed.value.version == 5
        await there.other.post("create", f"{RB}/ua", f"{RA}/ua", value=1)
        assert (await there.admin.hear()).to == f"{RA}/ua"


async def test_sets_are_listed_and_shown_as_their_authors_wrote_them(
    reported, issuer, autojump_clock
):
    async with open_world(**reported) as world:
        there = await office(world, issuer)
        await there.ask("create", value=CALM)

        book = read_body(await there.ask("read"), PoliciesListed).value
        assert (book.version, book.combining, book.default) == (2, "denyOverrides", "permit")
        assert [(one.id, one.rules) for one in book.sets] == [("s", 0), ("calm", 1)]
        assert book.sets[1].source == "user://idp.ex/alice"
        shown = read_body(await there.ask("read", resource="calm"), PoliciesShown)
        assert shown.value == CALM


REQUESTS = [
    ("read", {}),
    ("read", {"resource": "s"}),
    ("create", {"value": CALM}),
    ("update", {"resource": "s", "value": {**CALM, "id": "s"}}),
    ("delete", {"resource": "s"}),
    ("execute", {"method": "reload"}),
    ("subscribe", {"resource": "comm://a.ex/o"}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=[one[0] for one in REQUESTS])
@pytest.mark.parametrize("who", ["staff", "nobody"])
async def test_a_user_who_is_no_administrator_gets_403_and_changes_nothing(
    who, request_, reported, issuer, autojump_clock
):
    type_, body = request_
    async with open_world(**reported) as world:
        admin = await logged_in(world, issuer, RA, roles=["admin"])
        staff = logged_in(world, issuer, RB, roles=["staff", "administrator", "Admin"])
        other = await (staff if who == "staff" else world.peer(RB))
        if who == "nobody":
            staff.close()
        answer = await other.ask(type_, f"{RB}/ua", POLICY, **body)

        assert answer.code == 403
        assert "admin" in answer.body["description"]
        listed = await admin.ask("read", f"{RA}/ua", POLICY)
        book = read_body(listed, PoliciesListed).value
        assert (book.version, [one.id for one in book.sets]) == (1, ["s"])


WRONG = [
    ("create", {}, 400, "value"),
    ("create", {"value": {"id": "x", "polices": []}}, 400, "write policies"),
    ("create", {"value": {**CALM, "id": "s"}}, 409, "replace it by update"),
    ("create", {"value": {"policies": []}}, 400, "value.id"),
    ("update", {"resource": "gone", "value": {**CALM, "id": "gone"}}, 404, "gone"),
    ("update", {"resource": "s", "value": CALM}, 400, "value.id is calm"),
    ("delete", {}, 400, "resource"),
    ("delete", {"resource": "gone"}, 404, "gone"),
    ("read", {"resource": "gone"}, 404, "gone"),
    ("execute", {"method": "obey"}, 400, "reload"),
    ("subscribe", {"resource": "comm://a.ex/o"}, 400, "not subscribe"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{one[0]}-{one[3]}" for one in WRONG])
async def test_an_impossible_change_is_answered_and_changes_nothing(
    wrong, reported, issuer, autojump_clock
):
    type_, body, code, why = wrong
    async with open_world(**reported) as world:
        there = await office(world, issuer)
        answer = await there.ask(type_, **body)

        assert answer.code == code
        assert why in answer.body["description"]
        assert read_body(await there.ask("read"), PoliciesListed).value.version == 1


async def test_counters_of_policies_are_reported(tmp_path, issuer, autojump_clock):
    text = one_policy(
        rule("r", 'effect = "permit"\ntarget.actionType.equals = "open"\n'
             'obligations.permit = [{ do = "count", name = "opened" }]')
    )  # fmt: skip
    async with open_world(**policed(tmp_path, text), **optional_login(issuer)) as world:
        there = await office(world, issuer)
        book = read_body(await there.ask("read"), PoliciesListed).value
        assert book.counts == {"opened": 2}


async def test_there_is_an_end_to_the_number_of_sets(reported, issuer, autojump_clock):
    async with open_world(**reported) as world:
        there = await office(world, issuer)
        codes = [(await there.ask("create", value={"id": f"more-{n}"})).code for n in range(64)]
        assert codes == [200] * 63 + [413]


async def test_policies_also_apply_to_policy_management(tmp_path, issuer, autojump_clock):
    text = one_policy(rule("shut", 'effect = "deny"\ntarget.msgType.equals = "policyManagement"'))
    reported = {**policed(tmp_path, text), **optional_login(issuer)}
    async with open_world(**reported) as world:
        there = await office(world, issuer)
        assert (await there.ask("read")).code == 403
