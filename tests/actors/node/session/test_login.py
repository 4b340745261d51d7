"""A session is opened by a login: who comes, for how long, and what comes before it."""

import pytest
import trio
from typing_extensions import override

from actors.node.policy_hook import Asker, Policy
from actors.policy.engine import Decision, Ruling
from tests.support.node.issuer import ALICE, BOB, ISSUER, FakeKeySource, Issuer, login_by, opened
from tests.support.node.node_peer import ALLOCATION, DOMAIN, RA, SESSION, open_world

IDM = f"domain://idm.{DOMAIN}"


class Listener(Policy):
    """Permits, unless ordered otherwise, and remembers who asked."""

    def __init__(self, decision=Decision.PERMIT):
        self.decision = decision
        self.asked: list[tuple[str, Asker]] = []

    @override
    def judge(self, message, asker):
        self.asked.append((message.body.get("method", message.type), asker))
        return Ruling(self.decision, "test", "not today")


async def test_a_link_closed_during_its_login_does_not_block_the_next_one(autojump_clock):
    """What was said over the first, also after the wish, does nothing."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer, FakeKeySource(issuer.jwks(), delay=1.0))) as world:
        first = await world.outsider()
        params = {"runtimeURL": RA, "token": issuer.token()}
        await first.post("execute", first.stub, SESSION, method="open", params=params)
        await first.post("create", f"{RA}/ua", ALLOCATION, scheme="hyperty", value={"number": 1})
        await first.link.aclose()
        second = await world.outsider()
        assert (await opened(second, issuer.token())).code == 200
        await trio.sleep(2)

        [view] = await world.node.sessions()
        assert (view.state, view.addresses) == ("open", ())
        assert (await second.control("ping")).code == 200


async def test_policy_is_asked_once_and_knows_the_user(autojump_clock):
    """POL-18, I-M8."""
    issuer, policy = Issuer(), Listener()
    async with open_world(login=login_by(issuer), policy=policy) as world:
        peer = await world.outsider()
        await opened(peer, issuer.token(roles=["admin"]))
        await peer.control("ping")

        assert [method for method, _ in policy.asked] == ["open", "ping"]
        for _, asker in policy.asked:
            assert asker.runtime == RA
            assert (asker.identity.user, asker.identity.issuer) == (ALICE, ISSUER)
            assert asker.identity.roles == {"admin"}


# ---- the connector as others see it


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"method": "getLoginEndpoint"}, 404),
        ({"method": "generateAssertion", "params": {}}, 404),
        ({"method": "somethingElse"}, 404),
        ({"method": "validateAssertion"}, 400),
        ({"method": "validateAssertion", "params": {"assertion": 1}}, 400),
        ({"method": "validateAssertion", "params": {"assertion": "rubbish"}}, 401),
        ({}, 400),
    ],
)
async def test_the_connector_says_what_it_does_not_do(body, code, autojump_clock):
    """M-55."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await world.outsider()
        await opened(peer, issuer.token())
        answer = await peer.ask("execute", f"{RA}/ua", IDM, **body)

        assert (answer.code, answer.from_) == (code, IDM)


async def test_a_hyperty_may_have_a_token_validated(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await world.outsider()
        await opened(peer, issuer.token())
        ask = {"method": "validateAssertion", "params": {"assertion": issuer.token(sub="bob")}}
        answer = await peer.ask("execute", f"{RA}/ua", IDM, **ask)
        again = await peer.ask("execute", f"{RA}/ua", IDM, **ask)

        assert answer.body["value"] == {"user": BOB, "issuer": ISSUER, "roles": []}
        assert again.code == 401
