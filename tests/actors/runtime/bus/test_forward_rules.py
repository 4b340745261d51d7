"""Messages are copied between addresses of a runtime: BUS-08, BUS-10."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.policy.store import PolicyConfig, read_policies
from fsm.bus.listeners import ForwardRule
from specs.limits.protocol import HOP_LIMIT
from specs.message import MessageType
from specs.reply_code import DropReason
from tests.support.node.policing import one_policy, rule
from tests.support.runtime.domain import DomainOptions, Echo, open_domain


@attrs.frozen
class Scene:
    """A caller elsewhere, and hyperties of one runtime, each with the values that it got."""

    caller: object
    runtime: object
    urls: list
    echoes: list

    def rule(self, source, target, **more):
        return self.runtime.agent.forwarding(
            ForwardRule.of(self.urls[source], self.urls[target], **more)
        )

    async def ask(self, number, value):
        answer = await self.caller.hyperty.request(self.urls[number], value)
        await trio.testing.wait_all_tasks_blocked()
        return answer.code, answer.body.get("value")

    @property
    def heard(self):
        return [echo.heard for echo in self.echoes]

    @property
    def drops(self):
        return dict(self.runtime.counters.ledger().counts)


@asynccontextmanager
async def scene(number, policy=None):
    options = DomainOptions(kinds=(), policies={"bob": policy or PolicyConfig()})
    async with open_domain("alice", "bob", options=options) as domain:
        runtime = domain["bob"].runtime
        echoes = [Echo() for _ in range(number)]
        urls = [await runtime.deploy(f"e{n}", lambda one=one: one) for n, one in enumerate(echoes)]
        yield Scene(domain["alice"], runtime, urls, echoes)


async def test_the_sender_gets_the_answer_of_the_first_receiver_only(autojump_clock):
    class Louder(Echo):
        async def on_request(self, message):
            return f"{await super().on_request(message)}!"

    async with scene(1) as there:
        loud = Louder()
        url = await there.runtime.deploy("loud", lambda: loud)
        async with there.runtime.agent.forwarding(ForwardRule.of(there.urls[0], url)):
            assert await there.ask(0, "hello") == (200, "hello")
        assert loud.heard == ["hello"]
        assert there.drops == dict(there.caller.runtime.counters.ledger().counts) == {}


async def test_an_alias_copies_both_ways_and_ends_for_both(autojump_clock):
    async with scene(2) as there:
        async with there.rule(0, 1, is_alias=True):
            await there.ask(0, "a")
            await there.ask(1, "b")
        await there.ask(0, "c")
        await there.ask(1, "d")
        assert there.heard == [["a", "b", "c"], ["a", "b", "d"]]


async def test_a_chain_is_as_long_as_the_limit_of_hops(autojump_clock):
    """BUS-08: `via` has two stubs, and then each address that a copy was made of."""
    async with scene(HOP_LIMIT + 2) as there:
        await _chained(there, 0)


async def _chained(there, number):
    if number + 1 < len(there.urls):
        async with there.rule(number, number + 1):
            await _chained(there, number + 1)
        return
    assert await there.ask(0, "far") == (200, "far")
    reached = sum(bool(heard) for heard in there.heard)
    assert reached == HOP_LIMIT - 2 + 1
    assert there.drops == {DropReason.LOOP: 1}


async def test_a_copy_passes_the_policy_of_its_receiver(tmp_path, autojump_clock):
    async with scene(2) as there:
        deny = f'effect = "deny"\ntarget.msgTo.equals = "{there.urls[1]}"'
        (tmp_path / "p.toml").write_text(one_policy(rule("r", deny)))
        (policies,) = read_policies([tmp_path / "p.toml"])
        made = await there.runtime.order("ua", MessageType.CREATE, f"{there.runtime.url}/pep",
                                         {"value": policies.document})  # fmt: skip
        assert made.code == 200
        async with there.rule(0, 1):
            assert await there.ask(0, "secret") == (200, "secret")
        assert there.heard == [["secret"], []]
        assert there.drops == {DropReason.DENIED: 1}


async def test_what_a_policy_wants_done_afterwards_is_done_for_each_copy(tmp_path, autojump_clock):
    """POL-13."""
    counting = 'obligations.permit = [{ do = "count", name = "seen", when = "after" }]'
    permit = f'effect = "permit"\ntarget.msgTo.like = "hyperty://*"\n{counting}'
    (tmp_path / "p.toml").write_text(one_policy(rule("r", permit)))
    async with scene(3, tmp_path / "p.toml") as there, there.rule(0, 1), there.rule(0, 2):
        assert await there.ask(0, "x") == (200, "x")
        pep = f"{there.runtime.url}/pep"
        shown = await there.runtime.order("ua", MessageType.READ, pep, {})
        assert shown.body["value"]["counts"] == {"seen": 3}


async def test_a_copy_without_a_receiver_is_counted(autojump_clock):
    async with scene(2) as there, there.rule(0, 1):
        await there.runtime.undeploy(there.urls[1])
        assert await there.ask(0, "gone") == (200, "gone")
        assert there.drops == {DropReason.NO_TARGET: 1}


async def test_only_addresses_of_the_runtime_have_rules(autojump_clock):
    async with scene(1) as there:
        for pair in ((there.urls[0], there.caller.address), (there.caller.address, there.urls[0])):
            with pytest.raises(actors.ForwardRefusedError, match="no address of this runtime"):
                async with there.runtime.agent.forwarding(ForwardRule.of(*pair)):
                    pass


async def test_a_copy_goes_to_another_address_while_the_rule_holds(autojump_clock):
    async with scene(2) as there:
        async with there.rule(0, 1):
            assert await there.ask(0, "copied") == (200, "copied")
            assert await there.ask(1, "alone") == (200, "alone")
        assert await there.ask(0, "after") == (200, "after")
        assert there.heard == [["copied", "after"], ["copied", "alone"]]
        assert there.drops == {}
