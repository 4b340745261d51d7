"""Sessions and tokens that belong to a key: what is stolen without the key opens nothing (S4, T1).

SEC-09. The peers here know the documents only: they sign with `cryptography`, and read statements
with PyJWT."""

import jwt
import pytest
import trio

from actors.kit.counters import Outcome, Tally
from actors.node.login.provider import Admission
from tests.actors.node.key_holder import KeyHolder
from tests.support.node.issuer import Issuer, login_by
from tests.support.node.node_peer import RA, open_world
from transports.errors import LinkError

ALICES, EVES = KeyHolder(), KeyHolder()


def bound(issuer, holder=ALICES, **claims):
    return issuer.token(cnf={"jkt": holder.thumbprint}, **claims)


async def test_a_proof_that_was_overheard_is_void_on_another_link(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        victim, thief = await world.outsider(), await world.outsider()
        token = bound(issuer)
        challenge = await ALICES.challenged(victim, token=token)
        stolen = ALICES.shown(RA, token, proof=ALICES.proof(challenge, RA, token, "open"))
        assert (await thief.control("open", **stolen)).code == 401
        await ALICES.challenged(thief, token=token)
        assert (await thief.control("open", **stolen)).code == 401
        assert (await victim.control("open", **stolen)).code == 200


@pytest.mark.parametrize(("holder", "code"), [(ALICES, 200), (EVES, 401)])
async def test_a_challenge_is_used_up_by_a_proof_and_by_a_failed_one(holder, code, autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        challenge = await ALICES.challenged(peer)
        first = ALICES.shown(RA, proof=holder.proof(challenge, RA, None, "open"))
        again = ALICES.shown(RA, proof=ALICES.proof(challenge, RA, None, "open"))
        assert (await peer.control("open", **first)).code == code
        assert (await peer.control("open", **again)).code == 401


async def refused(world, token, why, *holders):
    """Whatever a thief does with a token: each attempt is 401 for this reason."""
    for holder in holders:
        thief = await world.outsider()
        answer = (
            await thief.control("open", runtimeURL=RA, token=token)
            if holder is None
            else await holder.enter(thief, token)
        )
        assert answer.code == 401
        assert why in answer.body["description"]
        await thief.link.aclose()


@pytest.mark.parametrize("admission", Admission)
async def test_a_stolen_token_opens_nothing_and_stays_good_for_its_owner(admission, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        token = bound(issuer)
        await refused(world, token, "bound to a key", None, EVES)
        assert world.node.counters.tallies[Tally.LOGINS] == {(Outcome.REFUSED,): 2}
        peer = await world.outsider()
        assert (await ALICES.enter(peer, token)).code == 200
        await peer.control("ping")
        # Its one use is over, for the owner, too.
        other = await world.outsider()
        assert (await ALICES.enter(other, token)).code == 401


@pytest.mark.parametrize("method", ["re-open", "open"])
async def test_a_stolen_session_token_opens_nothing(method, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        victim = await world.outsider()
        await ALICES.enter(victim, bound(issuer))
        for holder in (None, EVES):
            thief = await world.outsider()
            answer = (
                await thief.control(method, runtimeURL=RA, token=victim.token)
                if holder is None
                else await holder.enter(thief, victim.token, method)
            )
            assert answer.code == 401
            assert "key of its runtime" in answer.body["description"]
        assert await world.states() == {RA: "open"}
        assert (await victim.control("ping")).code == 200
        assert (await ALICES.enter(await world.outsider(), victim.token, "re-open")).code == 200


def claims_of(answer):
    """Verify the statement of an answer by the keys beside it, as a peer would."""
    value = answer.body["value"]
    [key] = jwt.PyJWKSet.from_dict(value["domainKeys"]).keys
    header = jwt.get_unverified_header(value["statement"])
    assert header == {"alg": "EdDSA", "kid": key.key_id, "typ": "protofly-statement+jwt"}
    checks = {"verify_exp": False, "verify_iat": False, "verify_sub": False}
    return jwt.decode(value["statement"], key, ["EdDSA"], options=checks)


async def test_a_statement_ends_with_the_login(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, life=50.0)) as world:
        peer = await world.outsider()
        answer = await ALICES.enter(peer, bound(issuer))
        await trio.sleep(20)
        again = await peer.control("renew")
        assert claims_of(answer)["exp"] == claims_of(again)["exp"] == 50
        await trio.sleep(30)
        with pytest.raises(LinkError):
            await peer.read_on()
