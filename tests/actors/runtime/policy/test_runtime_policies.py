"""Policy files judge the messages of a runtime; `R/pep` manages them (POL-05, POL-17)."""

import tomllib

from actors.policy.store import PolicyConfig
from specs.message import MessageType
from tests.support.node.policing import one_policy, rule
from tests.support.runtime.domain import DOMAIN, DomainOptions, open_domain

BOB = f"hyperty-runtime://{DOMAIN}/bob"
PEP = f"{BOB}/pep"


def denial(name: str, text: str = "", reason: str = "hush") -> str:
    return rule(name, f'effect = "deny"\nreason = "{reason}"\n{text}')


CALM = tomllib.loads(one_policy(denial("all", 'target.msgTo.like = "hyperty://*"'), name="calm"))


def judged_by(policy) -> DomainOptions:
    """A domain in which Bob's runtime has policies, and no direct links."""
    return DomainOptions(kinds=(), policies={"bob": policy})


async def order(runtime, type_, **body):
    """A request of the runtime's own program to the part that has the policies."""
    return await runtime.order("ua", MessageType(type_), PEP, body)


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
