"""A session is opened by a login: who comes, for how long, and what comes before it."""

import pytest
import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.node.login.provider import Admission
from actors.node.policy_hook import Asker, Policy
from actors.policy.engine import Decision, Ruling
from specs.reply_code import DropReason
from tests.support.node.issuer import ALICE, BOB, ISSUER, FakeKeySource, Issuer, login_by, opened
from tests.support.node.node_peer import ALLOCATION, DOMAIN, MN, RA, RB, SESSION, SM, open_world
from transports.errors import LinkError

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


@pytest.mark.parametrize("issuer", [Issuer(), Issuer.es256()], ids=["EdDSA", "ES256"])
async def test_a_good_token_opens_a_session(issuer, autojump_clock):
    """MN-04, MN-05, M-14, M-55."""
    async with open_world(login=login_by(issuer)) as world:
        peer = await world.outsider()

        assert (await opened(peer, issuer.token())).code == 200
        assert await peer.allocate()
        assert await world.states() == {RA: "open"}


async def test_the_connector_is_asked_by_message(autojump_clock):
    """CON-01, SC-40 steps 7 and 8."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        await opened(await world.outsider(), issuer.token())

        facts = [one for one in world.tracer.facts if IDM in {one.from_, one.to}]
        assert [(one.op, one.from_, one.to, one.code) for one in facts] == [
            ("deliver", SESSION, IDM, None),
            ("deliver", IDM, SESSION, 200),
        ]


@pytest.mark.parametrize("method", ["open", "re-open"])
async def test_without_a_login_nothing_is_done(method, autojump_clock):
    """I-M1: 401 before any allocation, subscription or routing; nothing is left."""
    issuer, policy = Issuer(), Listener()
    async with open_world(login=login_by(issuer), policy=policy) as world:
        there = await world.outsider(RB)
        await opened(there, issuer.token(sub=BOB))
        peer, before = await world.outsider(), len(policy.asked)
        tries = [
            await peer.control(method, runtimeURL=RA),
            await peer.ask("create", f"{RA}/ua", ALLOCATION, scheme="hyperty", value={"number": 1}),
            await peer.ask("subscribe", f"{RA}/sm", SM, resources=[f"{RA}/x"], source=RA),
            await peer.ask("create", f"{RA}/ua", f"{RB}/ua", value=1),
            await peer.ask("read", f"{RA}/registry", f"domain://registry.{DOMAIN}", resource=RA),
            await peer.ask("execute", RA, IDM, method="validateAssertion", params={}),
            await peer.control("ping"),
            await peer.control("close"),
        ]

        assert {answer.code for answer in tries} == {401}
        assert len(policy.asked) == before
        assert await there.silence()
        assert {view.runtime: view.addresses for view in await world.node.sessions()} == {
            RB: view_of(await world.node.sessions())
        }


def view_of(views):
    [view] = views
    return view.addresses


async def test_during_a_login_other_messages_are_refused(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, FakeKeySource(issuer.jwks(), delay=1.0))) as world:
        peer = await world.outsider()
        wanted = await peer.post(
            "execute", peer.stub, SESSION, method="open",
            params={"runtimeURL": RA, "token": issuer.token()},
        )  # fmt: skip
        early = await peer.ask("create", f"{RA}/ua", ALLOCATION, scheme="hyperty")
        second = await peer.control("open", runtimeURL=RA, token=issuer.token())
        answer = await peer.hear()

        assert (early.code, second.code) == (401, 409)
        assert (answer.id, answer.code) == (wanted.id, 200)


async def test_a_link_that_goes_while_it_waits_leaves_nothing(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, FakeKeySource(issuer.jwks(), delay=1.0))) as world:
        peer = await world.outsider()
        await peer.post(
            "execute", peer.stub, SESSION, method="open",
            params={"runtimeURL": RA, "token": issuer.token()},
        )  # fmt: skip
        await peer.link.aclose()
        await trio.sleep(2)

        assert await world.states() == {}
        assert world.steps("session") == []
        # Nobody waits for the answer: it is no login, good or bad.
        assert world.node.counters.drops[DropReason.UNMATCHED] == 1
        assert not world.node.counters.tallies[Tally.LOGINS]


async def test_a_login_on_two_links_opens_one_session(autojump_clock):
    """Both logins are good: the later has the session, and hears nothing that was the first's."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer, FakeKeySource(issuer.jwks(), delay=1.0))) as world:
        first, second = await world.outsider(), await world.outsider()
        for peer in (first, second):
            params = {"runtimeURL": RA, "token": issuer.token()}
            await peer.post("execute", peer.stub, SESSION, method="open", params=params)
            await trio.sleep(0.1)
        token = (await second.hear()).body["value"]["sessionToken"]
        with pytest.raises(LinkError):
            await first.read_on()

        assert await second.silence()
        third = await world.outsider()
        assert (await third.control("re-open", runtimeURL=RA, token=token)).code == 200
        assert await world.states() == {RA: "open"}


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


async def test_a_node_stops_although_a_peer_waits(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, FakeKeySource(issuer.jwks(), delay=1.0))) as world:
        peer = await world.outsider()
        await peer.post(
            "execute", peer.stub, SESSION, method="open",
            params={"runtimeURL": RA, "token": issuer.token()},
        )  # fmt: skip
        await trio.sleep(0.5)

    assert world.steps("session") == []


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


async def test_a_user_refused_by_policy_gets_no_session(autojump_clock):
    issuer, policy = Issuer(), Listener(Decision.DENY)
    async with open_world(login=login_by(issuer), policy=policy) as world:
        answer = await opened(await world.outsider(), issuer.token())

        assert (answer.code, answer.body["description"]) == (403, "not today")
        assert await world.states() == {}


# ---- who need not log in


async def test_without_required_logins_credentials_are_still_checked(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=Admission.ANYBODY)) as world:
        assert (await opened(await world.outsider(), None)).code == 200
        assert (await opened(await world.outsider(RB), "rubbish")).code == 401
        assert (await opened(await world.outsider(RB), issuer.token())).code == 200


async def test_a_legacy_peer_logs_in_nowhere(autojump_clock):
    """Its forms bring no credentials, so where a login is asked for it is shown out."""
    from tests.support.node.legacy_peer import plain_peer

    issuer = Issuer()
    async with open_world(login=login_by(issuer), allow_legacy=True) as world:
        peer = await plain_peer(world)

        assert (await peer.hear())["body"]["code"] == 401
        with pytest.raises(LinkError):
            await peer.read_on()


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


async def test_without_a_login_there_is_no_connector(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()

        assert (await peer.ask("execute", f"{RA}/ua", IDM, method="validateAssertion")).code == 404
        assert MN
