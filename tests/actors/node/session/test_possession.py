"""Sessions and tokens that belong to a key: what is stolen without the key opens nothing (S4, T1).

SEC-09. The peers here know the documents only: they sign with `cryptography`, and read statements
with PyJWT.
"""

import json
from contextlib import suppress

import jwt
import pytest
import trio

from actors.keys.signing import make_key
from actors.kit.counters import Outcome, Tally
from actors.node.login.provider import Admission
from specs.limits.node import STATEMENT_LIFE
from specs.limits.protocol import MAX_FAILED_OPENS
from tests.support.node.issuer import ALICE, ISSUER, Issuer, login_by
from tests.support.node.key_holder import KeyHolder
from tests.support.node.node_peer import MN, RA, RB, RX, open_world
from transports.errors import LinkError

ALICES, EVES = KeyHolder(), KeyHolder()

PACE = ("rate", "burst")


def bound(issuer, holder=ALICES, **claims):
    return issuer.token(cnf={"jkt": holder.thumbprint}, **claims)


def claims_of(answer):
    """Verify the statement of an answer by the keys beside it, as a peer would."""
    value = answer.body["value"]
    [key] = jwt.PyJWKSet.from_dict(value["domainKeys"]).keys
    header = jwt.get_unverified_header(value["statement"])
    assert header == {"alg": "EdDSA", "kid": key.key_id, "typ": "protofly-statement+jwt"}
    checks = {"verify_exp": False, "verify_iat": False, "verify_sub": False}
    return jwt.decode(value["statement"], key, ["EdDSA"], options=checks)


# ---- with the key


@pytest.mark.parametrize("admission", Admission)
async def test_who_proves_the_key_of_a_token_opens_a_session(admission, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        answer = await ALICES.enter(await world.outsider(), bound(issuer))

        assert answer.code == 200
        assert claims_of(answer) == {
            "iss": "a.ex", "sub": RA, "cnf": {"jkt": ALICES.thumbprint},
            "iat": 0, "exp": 43_200, "user": ALICE, "idp": ISSUER,
        }  # fmt: skip


async def test_without_logins_a_key_is_proven_all_the_same(autojump_clock):
    key = make_key("EdDSA", "of a.ex")
    async with open_world(domain_keys=(key,)) as world:
        answer = await ALICES.enter(await world.outsider())

        assert answer.body["value"]["domainKeys"] == {"keys": [key.public()]}
        assert claims_of(answer) == {
            "iss": "a.ex", "sub": RA, "cnf": {"jkt": ALICES.thumbprint},
            "iat": 0, "exp": STATEMENT_LIFE,
        }  # fmt: skip


async def test_who_shows_no_key_is_a_bearer_as_ever(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await world.outsider()
        answer = await peer.control("open", runtimeURL=RA, token=issuer.token())
        assert answer.code == 200
        assert answer.body["value"].keys() == {"sessionToken", "identity", *PACE}
        again = await world.outsider()
        token = answer.body["value"]["sessionToken"]
        assert (await again.control("re-open", runtimeURL=RA, token=token)).code == 200


async def test_a_session_that_belongs_to_a_key_is_resumed_with_a_proof(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        first, again = await world.outsider(), await world.outsider()
        await ALICES.enter(first, bound(issuer))
        answer = await ALICES.enter(again, first.token, "re-open")
        assert answer.code == 200
        assert claims_of(answer)["user"] == ALICE


async def test_a_new_login_of_the_user_gives_the_session_to_another_key(autojump_clock):
    """A runtime whose key ended with its process is not locked out."""
    issuer, anew = Issuer(), KeyHolder()
    async with open_world(login=login_by(issuer)) as world:
        await ALICES.enter(await world.outsider(), bound(issuer))
        answer = await anew.enter(await world.outsider(), bound(issuer, anew))
        assert claims_of(answer)["cnf"] == {"jkt": anew.thumbprint}


async def test_of_runtimes_of_other_domains_nothing_is_stated(autojump_clock):
    async with open_world() as world:
        answer = await ALICES.enter(await world.outsider(RX))
        assert answer.code == 200
        assert answer.body["value"].keys() == {"sessionToken", "domainKeys", "identity", *PACE}


async def test_a_challenge_is_no_refusal_and_no_failure(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        for _ in range(3 * MAX_FAILED_OPENS):
            await ALICES.challenged(peer)
        assert not world.node.counters.tallies[Tally.REFUSALS]
        assert (await ALICES.enter(peer)).code == 200


# ---- a proof that proves something else

PURPOSES = {
    "for another runtime": {"runtime": RB},
    "for another domain": {"domain": "b.ex"},
    "for the address of the node": {"domain": MN},
    "over another token": {"token": "another"},
    "over no token": {"token": None},
    "for another method": {"method": "re-open"},
    "over another challenge": {"challenge": "0" * 64},
}


@pytest.mark.parametrize("changed", PURPOSES.values(), ids=PURPOSES)
async def test_a_proof_is_good_for_one_thing_only(changed, autojump_clock):
    """The token is not used up by the attempt: its holder opens the session afterwards."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer, token = await world.outsider(), bound(issuer)
        challenge = await ALICES.challenged(peer, token=token)
        good = {"challenge": challenge, "runtime": RA, "token": token, "method": "open"}
        proof = ALICES.proof(**{**good, **changed})
        answer = await peer.control("open", **ALICES.shown(RA, token, proof=proof))
        assert (answer.code, answer.body["description"]) == (
            401, "the proof of the key does not fit",
        )  # fmt: skip
        assert (await ALICES.enter(peer, token)).code == 200


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


async def test_a_challenge_is_good_once(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        challenge = await ALICES.challenged(peer)
        shown = ALICES.shown(RA, proof=ALICES.proof(challenge, RA, None, "open"))
        assert (await peer.control("open", **shown)).code == 200
        assert (await peer.control("open", **shown)).code == 401


async def test_a_newer_challenge_voids_the_older_one(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        older = await ALICES.challenged(peer)
        newer = await ALICES.challenged(peer)
        assert older != newer
        shown = ALICES.shown(RA, proof=ALICES.proof(older, RA, None, "open"))
        assert (await peer.control("open", **shown)).code == 401


async def test_a_failed_proof_uses_the_challenge_up(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        challenge = await ALICES.challenged(peer)
        bad = ALICES.shown(RA, proof=EVES.proof(challenge, RA, None, "open"))
        good = ALICES.shown(RA, proof=ALICES.proof(challenge, RA, None, "open"))
        assert (await peer.control("open", **bad)).code == 401
        assert (await peer.control("open", **good)).code == 401


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ({"proof": "p"}, "params.proof is of no key; params.key is missing"),
        ({"key": ""}, "params.key: "),
        ({"key": "AA"}, "params.key: "),
        ({"key": "!" * 43}, "params.key: "),
        ({"key": ALICES.public + "="}, "params.key: "),
        ({"key": 5}, "params.key must be text"),
        ({"key": ALICES.public, "proof": {}}, "params.proof must be text"),
    ],
)
async def test_what_is_no_key_is_refused(shown, why, autojump_clock):
    async with open_world() as world:
        answer = await (await world.outsider()).control("open", runtimeURL=RA, **shown)
        assert answer.code == 400
        assert why in answer.body["description"]


@pytest.mark.parametrize("proof", ["", "AA", "=" * 86, "A" * 86, "🙂"])
async def test_what_is_no_signature_is_refused(proof, autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        await ALICES.challenged(peer)
        answer = await peer.control("open", **ALICES.shown(RA, proof=proof))
        assert answer.code == 401


# ---- stolen things


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


async def test_a_stolen_token_is_not_spent_by_asking_the_identity_connector(autojump_clock):
    """A session may have an assertion validated (M-55); only its bearer can prove the key."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        eve, token = await world.outsider(RB), bound(issuer)
        await EVES.enter(eve, bound(issuer, EVES, sub="user://idp.ex/eve"))
        params = {"assertion": token, "origin": "a.ex", "key": ALICES.thumbprint}
        answer = await eve.ask(
            "execute", f"{RB}/x", "domain://idm.a.ex", method="validateAssertion", params=params
        )
        assert answer.code == 401
        assert (await ALICES.enter(await world.outsider(), token)).code == 200


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


@pytest.mark.parametrize("way", ["no key", "another key", "a bad proof"])
async def test_attempts_with_a_stolen_session_token_are_counted(way, autojump_clock):
    async with open_world() as world:
        victim, thief, answered = await world.outsider(), await world.outsider(), 0
        await ALICES.enter(victim)
        with suppress(LinkError):
            for _ in range(3 * MAX_FAILED_OPENS):
                match way:
                    case "no key":
                        await thief.control("re-open", runtimeURL=RA, token=victim.token)
                    case "another key":
                        await EVES.enter(thief, victim.token, "re-open")
                    case _:
                        shown = ALICES.shown(RA, victim.token, proof="A" * 86)
                        await thief.control("re-open", **shown)
                answered += 1
        assert answered == MAX_FAILED_OPENS + 1


async def test_a_bearer_session_gives_no_statement_to_the_key_of_a_thief(autojump_clock):
    """Or a stolen session token would be worth a statement of the domain."""
    async with open_world() as world:
        victim, thief = await world.peer(), await world.outsider()
        answer = await EVES.enter(thief, victim.token, "re-open")
        assert answer.code == 200
        assert "statement" not in answer.body["value"]
        assert (await thief.control("renew")).code == 404


# ---- over a restart


@pytest.mark.parametrize("has_login", [True, False])
async def test_a_restarted_node_knows_whose_key_it_was(has_login, tmp_path):
    path, issuer = tmp_path / "state.sqlite", Issuer()
    login = login_by(issuer, clock=lambda: 0.0)
    config = {"state": path, "login": login if has_login else None}
    async with open_world(**config) as world:
        victim = await world.outsider()
        assert (await ALICES.enter(victim, bound(issuer) if has_login else None)).code == 200
        await victim.control("ping")
    async with open_world(**config) as world:
        thief = await world.outsider()
        assert (await EVES.enter(thief, victim.token, "re-open")).code == 401
        assert (await thief.control("re-open", runtimeURL=RA, token=victim.token)).code == 401
        answer = await ALICES.enter(await world.outsider(), victim.token, "re-open")
        assert answer.code == 200
        assert claims_of(answer).get("user") == (ALICE if has_login else None)


# ---- statements anew


async def test_a_statement_is_renewed_while_the_session_is_open(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        await ALICES.enter(peer)
        autojump_clock.jump(100.0)
        answer = await peer.control("renew")
        assert answer.code == 200
        assert claims_of(answer)["iat"] == 100


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


async def test_a_link_without_a_session_renews_nothing(autojump_clock):
    async with open_world() as world:
        assert (await (await world.outsider()).control("renew")).code == 401


async def test_nothing_secret_is_in_the_trace(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        token = bound(issuer)
        peer = await world.outsider()
        answer = await ALICES.enter(peer, token)
        text = json.dumps([repr(fact) for fact in world.tracer.facts])
        for secret in (token, peer.token, answer.body["value"]["statement"]):
            assert secret not in text
