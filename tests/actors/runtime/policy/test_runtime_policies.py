"""Policy files judge the messages of a runtime; `R/pep` manages them (POL-05, POL-17)."""

import tomllib

import attrs
import pytest
import trio

from actors.policy.store import PolicyConfig, PolicyFileError, read_policies
from actors.runtime.own_sender import OwnSender
from actors.runtime.policing import Policing
from specs.identity import SenderIdentity, VouchedBy
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from specs.trace import Kind
from tests.support.log import captured_log
from tests.support.node.policing import one_policy, rule
from tests.support.runtime.domain import DOMAIN, DomainOptions, open_domain

BOB = f"hyperty-runtime://{DOMAIN}/bob"
PEP = f"{BOB}/pep"


def denial(name: str, text: str = "", reason: str = "hush") -> str:
    return rule(name, f'effect = "deny"\nreason = "{reason}"\n{text}')


INCOMING = one_policy(denial("no-guests", 'direction = "in"\ntarget.msgTo.like = "hyperty://*"'))
OUTGOING = one_policy(denial("no-calls", 'direction = "out"\ntarget.msgTo.like = "hyperty://*"'))
CALM = tomllib.loads(one_policy(denial("all", 'target.msgTo.like = "hyperty://*"'), name="calm"))


def given(folder, text: str, name: str = "p.toml"):
    (folder / name).write_text(text)
    return folder / name


def judged_by(policy) -> DomainOptions:
    """A domain in which Bob's runtime has policies, and no direct links."""
    return DomainOptions(kinds=(), policies={"bob": policy})


def rulings(member) -> list:
    return [
        fact for fact in member.tracer.facts if fact.k is Kind.AUTHZ and fact.decision == "deny"
    ]


async def order(runtime, type_, **body):
    """A request of the runtime's own program to the part that has the policies."""
    return await runtime.order("ua", MessageType(type_), PEP, body)


async def test_incoming_messages_have_rules_of_their_own(tmp_path, autojump_clock):
    options = judged_by(given(tmp_path, INCOMING))
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        refused = await alice.ask(bob, 1)
        assert (refused.code, refused.body["description"]) == (403, "hush")
        assert (await bob.ask(alice, 2)).code == 200
        assert bob.hyperty.heard == []
        (ruling,) = rulings(bob)
        assert (ruling.policy, ruling.version, ruling.direction) == ("s/p/no-guests", 1, "in")


async def test_outgoing_messages_have_rules_of_their_own(tmp_path, autojump_clock):
    options = judged_by(str(given(tmp_path, OUTGOING)))
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        assert (await bob.ask(alice, 2)).code == 403
        assert [one.direction for one in rulings(bob)] == ["out"]


async def test_a_refused_message_is_counted(tmp_path, autojump_clock):
    options = judged_by(given(tmp_path, INCOMING))
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await alice.post(bob, 1)
        with trio.fail_after(60):
            await bob.tracer.until(lambda: _is_denied(bob))
        assert bob.runtime.counters.ledger().counts[DropReason.DENIED] == 1


async def _is_denied(member) -> bool:
    return bool(member.runtime.counters.ledger().counts)


async def test_sets_that_the_program_has_read_are_policies(tmp_path, autojump_clock):
    sets = read_policies([given(tmp_path, INCOMING)])
    async with open_domain("alice", "bob", options=judged_by(sets)) as domain:
        assert (await domain["alice"].ask(domain["bob"], 1)).code == 403


async def test_obligations_are_fulfilled_before_and_after_and_messages_are_stamped(
    tmp_path, autojump_clock
):
    tasks = 'obligations.permit = [{ do = "count", name = "in", when = "after" }, { do = "stamp" }]'
    text = one_policy(rule("ok", f'effect = "permit"\ntarget.msgTo.like = "hyperty://*"\n{tasks}'))
    async with open_domain("alice", "bob", options=judged_by(given(tmp_path, text))) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, 1)).code == 200
        shown = (await order(bob.runtime, "read")).body["value"]
        assert shown["counts"] == {"in": 1}
        authz = [fact for fact in bob.tracer.facts if fact.k is Kind.AUTHZ and fact.obligations]
        assert [fact.obligations for fact in authz] == ["count:in@after,stamp"]


async def test_the_program_manages_policies_at_run_time(autojump_clock):
    async with open_domain("alice", "bob", options=judged_by(PolicyConfig())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        added = await order(bob.runtime, "create", value=CALM)
        assert added.body["value"]["version"] == 2
        assert (await alice.ask(bob, 1)).code == 403
        listed = (await order(bob.runtime, "read")).body["value"]
        assert [(one["id"], one["rules"]) for one in listed["sets"]] == [("calm", 1)]
        assert (await order(bob.runtime, "read", resource="calm")).body["value"] == CALM
        loud = {**CALM, "policies": []}
        assert (await order(bob.runtime, "update", resource="calm", value=loud)).code == 200
        assert (await alice.ask(bob, 2)).code == 200
        assert (await order(bob.runtime, "delete", resource="calm")).code == 200
        assert (await order(bob.runtime, "delete", resource="calm")).code == 404
        assert (await order(bob.runtime, "create", value={"id": 7, "x": 1})).code == 400


async def test_a_policy_against_everything_does_not_lock_the_program_out(autojump_clock):
    everything = tomllib.loads(one_policy(denial("all"), name="all"))
    async with open_domain("bob", options=judged_by(PolicyConfig())) as domain:
        runtime = domain["bob"].runtime
        assert (await order(runtime, "create", value=everything)).code == 200
        assert (await order(runtime, "delete", resource="all")).code == 200


@pytest.mark.parametrize("who", ["alice", "bob"])
@pytest.mark.parametrize("type_", ["read", "create", "delete", "execute"])
async def test_strangers_and_the_runtimes_own_hyperties_manage_nothing(who, type_, autojump_clock):
    async with open_domain("alice", "bob", options=judged_by(PolicyConfig())) as domain:
        sender = domain[who].hyperty
        answer = await sender.request(PEP, CALM, MessageType(type_))
        assert answer.code == 403
        assert (await order(domain["bob"].runtime, "read")).body["value"]["sets"] == []


async def test_files_are_read_again_or_all_policies_are_kept(tmp_path):
    file = given(tmp_path, one_policy())
    async with open_domain("alice", "bob", options=judged_by(file)) as domain:
        alice, bob = domain["alice"], domain["bob"]
        given(tmp_path, INCOMING)
        assert (await alice.ask(bob, 1)).code == 200
        assert await bob.runtime.reload_policies() == ""
        assert (await alice.ask(bob, 2)).code == 403
        given(tmp_path, "id = ")
        with captured_log() as lines:
            assert "no TOML" in await bob.runtime.reload_policies()
        assert [one["event"] for one in lines] == ["policies kept"]
        assert (await alice.ask(bob, 3)).code == 403
        reloaded = await order(bob.runtime, "execute", method="reload")
        assert (reloaded.code, "stay as they are" in reloaded.body["description"]) == (502, True)


async def test_a_runtime_does_not_start_with_a_file_that_cannot_be_used(tmp_path):
    with pytest.RaisesGroup(PolicyFileError, allow_unwrapped=True, flatten_subgroups=True):
        async with open_domain("bob", options=judged_by(given(tmp_path, "id = "))):
            pass


# ---- who manages

ME, EVE = "user://idp.ex/bob", "user://idp.ex/eve"
OWN = OwnSender.of(BOB)
ELSEWHERE = f"hyperty-runtime://{DOMAIN}/phone"


def sent(from_: str, identity: SenderIdentity | None = None) -> Message:
    return Message(1, MessageType.READ, from_, PEP, {}, identity)


def policing(user: str | None, own: OwnSender) -> Policing:
    return Policing(PolicyConfig(), DOMAIN, user, own, lambda: 0.0)


MANAGERS = [
    (sent(f"{BOB}/ua"), True),
    (sent(f"{BOB}x/ua"), False),
    (sent("hyperty://a.ex/1"), False),
    (sent("hyperty://a.ex/1", SenderIdentity(ELSEWHERE, ME, VouchedBy.IDENTITY_PROVIDER)), True),
    (sent("hyperty://a.ex/1", SenderIdentity(ELSEWHERE, EVE, VouchedBy.DOMAIN)), False),
    (sent("hyperty://a.ex/1", SenderIdentity(ELSEWHERE)), False),
    (sent("hyperty://a.ex/1", SenderIdentity(BOB, ME, VouchedBy.IDENTITY_PROVIDER)), False),
]  # fmt: skip


@pytest.mark.parametrize(("message", "may"), MANAGERS)
def test_the_program_and_the_user_elsewhere_manage_policies(message, may):
    assert policing(ME, OWN).may_manage(message) is may


def test_the_user_is_the_one_of_the_login_if_none_is_configured():
    message = sent("hyperty://a.ex/1", SenderIdentity(ELSEWHERE, ME, VouchedBy.DOMAIN))
    assert not policing(None, OWN).may_manage(message)
    logged_in = OwnSender(attrs.evolve(OWN.identity, user=ME, vouched_by=VouchedBy.DOMAIN))
    assert policing(None, logged_in).may_manage(message)
