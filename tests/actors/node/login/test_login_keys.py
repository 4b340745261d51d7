"""Where the keys come from: changed, gone, slow, damaged, moved (CON-01, T19)."""

import json

import pytest
import trio

from actors.keys.key_set import BadKeysError, read_keys
from actors.keys.key_source import KeysAwayError, KeyUrl
from actors.keys.token import read_token, read_verified
from actors.kit.http_client import ServerUrl
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login, Nobody
from specs.limits.node import JWKS_KEYS, KEYS_PAUSE, KEYS_STALE
from tests.support.log import captured_log
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.issuer import ALICE, FakeKeySource, Issuer, login_by, opened
from tests.support.node.node_peer import RA, open_world

OLD, NEW = Issuer(name="old"), Issuer(name="new")


async def code_of(world, token, runtime=RA):
    peer = await world.outsider(runtime)
    answer = await opened(peer, token)
    await peer.link.aclose()
    return answer.code


# ---- reading a set


def key_set(**changed):
    entry = {**OLD.public(), **changed}
    return json.dumps({"keys": [{k: v for k, v in entry.items() if v is not None}]}).encode()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kid": None}, "no 'kid'"),
        ({"kid": 1}, "no 'kid'"),
        ({"use": "enc"}, "no key of it is for EdDSA or ES256 or"),
        ({"key_ops": ["sign"]}, "no key of it is for EdDSA or ES256 or"),
        ({"key_ops": "verify"}, "no key of it is for EdDSA or ES256 or"),
        ({"alg": "HS256"}, "no key of it is for EdDSA or ES256 or"),
        ({"d": "AAAA"}, "private"),
    ],
)
def test_a_key_that_is_not_for_this_is_not_taken(changed, said):
    with pytest.raises(BadKeysError, match=said):
        read_keys(key_set(**changed))


def test_there_are_not_too_many():
    many = [Issuer(OLD.key, name=str(number)) for number in range(JWKS_KEYS)]
    with pytest.raises(BadKeysError, match="more than"):
        read_keys(OLD.jwks(*many))


ENTRY = OLD.public()
SKIPPED = {
    "no kid": ({k: v for k, v in ENTRY.items() if k != "kid"}, "key 1: it has no 'kid'"),
    "unknown type": (
        {"kty": "AKP", "alg": "ML-DSA-44", "kid": "pq"},
        "key 'pq': it is for none of",
    ),
    "secret": ({"kty": "oct", "k": "AAAA", "kid": "s"}, "key 's': it is for none of"),
    "damaged": ({**ENTRY, "kid": "bad", "x": "AAAA"}, "key 'bad': it is damaged"),
    "damaged curve": (
        {"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AAAA", "y": "AAAA"},
        "key 'ec': it is damaged",
    ),
    "damaged RSA": ({"kty": "RSA", "kid": "r", "n": "é", "e": "AQAB"}, "key 'r': it is damaged"),
    "no object": (7, "key 1: it is no object"),
    "strange issuer": ({**ENTRY, "kid": "i", "iss": 7}, "key 'i': its 'iss' names no issuer"),
}


@pytest.mark.parametrize("kind", SKIPPED)
async def test_a_key_that_cannot_be_used_is_skipped_and_named_and_the_others_serve(
    kind, autojump_clock
):
    """Once, and again only when the set has changed; at the start as later (RFC 7517)."""
    entry, why = SKIPPED[kind]
    good = Issuer(OLD.key, name="old")
    text = json.dumps({"keys": [entry, good.public(), NEW.public()]})
    shelf = FakeKeySource(text.encode(), fresh=30.0)
    login = Login(provider=by_keys(shelf, terms_of("a.ex")), clock=lambda: 0.0)
    with captured_log() as logs:
        async with open_world(login=login) as world:
            assert await code_of(world, good.token()) == 200
            await trio.sleep(60)
            assert await code_of(world, good.token({"kid": None})) == 200
    [line] = [line for line in logs if line["event"] == "keys skipped"]
    assert shelf.fetched > 1
    assert why in line["why"]
    assert "'old'" not in line["why"]


def test_the_first_of_two_keys_of_one_name_serves():
    first = Issuer(name="old")
    with captured_log() as logs:
        keys = read_keys(first.jwks(OLD, NEW), "idp.jwks.json")
    assert [*keys] == ["old", "new"]
    assert read_verified(read_token(first.token()), keys)["sub"] == ALICE
    assert logs[0]["why"] == "key 'old': two keys have this name"
    assert logs[0]["source"] == "idp.jwks.json"


# ---- keys of several issuers (RFC 8725, 3.8)

MINE, THEIRS = "https://idp.ex", "https://other.ex"


def issuers():
    """Return two issuers, and a set of the keys of both that says whose each is."""
    mine, theirs = Issuer(name="mine"), Issuer(name="theirs")
    keys = [{**mine.public(), "iss": MINE}, {**theirs.public(), "iss": THEIRS}]
    return mine, theirs, json.dumps({"keys": keys}).encode()


async def codes_of(world, mine, theirs):
    """Return how own tokens of both fare, and tokens that each signs as the other one."""
    codes = []
    for issuer, name in ((mine, MINE), (theirs, THEIRS), (mine, THEIRS), (theirs, MINE)):
        for header in ({}, {"kid": None}):
            host = name.removeprefix("https://")
            token = issuer.token(header, iss=name, sub=f"user://{host}/{issuer.name}")
            runtime = f"hyperty-runtime://a.ex/r{len(codes)}"
            codes.append(await code_of(world, token, runtime))
    return codes


@pytest.mark.parametrize("named", [(MINE, THEIRS), ()], ids=["issuers named", "none named"])
async def test_a_key_beside_the_name_of_its_issuer_signs_for_no_other(named, autojump_clock):
    mine, theirs, text = issuers()
    provider = by_keys(FakeKeySource(text), terms_of("a.ex", named))
    async with open_world(login=Login(provider=provider, clock=lambda: 0.0)) as world:
        assert await codes_of(world, mine, theirs) == [200] * 4 + [401] * 4
        as_other = theirs.token(iss=THEIRS, sub=ALICE)
        assert await code_of(world, as_other, "hyperty-runtime://a.ex/other") == 401


async def test_each_issuer_has_the_keys_of_its_own_source(autojump_clock):
    mine, theirs, _ = issuers()
    sources = {MINE: FakeKeySource(mine.jwks()), THEIRS: FakeKeySource(theirs.jwks())}
    provider = by_keys(sources, terms_of("a.ex", (MINE, THEIRS)))
    async with open_world(login=Login(provider=provider, clock=lambda: 0.0)) as world:
        assert await codes_of(world, mine, theirs) == [200] * 4 + [401] * 4
        strange = mine.token(iss="https://third.ex", sub="user://third.ex/x")
        assert await code_of(world, strange) == 401
        sources[THEIRS].why = "away"
        await trio.sleep(KEYS_STALE)
        mine.now = theirs.now = 0.0
        assert await code_of(world, mine.token()) == 200
    assert all(source.closed for source in sources.values())


def test_sources_of_other_issuers_than_the_accepted_ones_are_refused():
    with pytest.raises(ValueError, match="each accepted issuer"):
        by_keys({MINE: FakeKeySource(b"")}, terms_of("a.ex", (MINE, THEIRS)))


# ---- a source that changes


async def test_a_token_that_names_no_key_has_the_set_got_anew_as_well(autojump_clock):
    shelf = FakeKeySource(OLD.jwks())
    async with open_world(login=login_by(OLD, shelf)) as world:
        assert await code_of(world, OLD.token({"kid": None})) == 200
        shelf.text = NEW.jwks()
        assert await code_of(world, NEW.token({"kid": None})) == 401
        await trio.sleep(KEYS_PAUSE)
        assert await code_of(world, NEW.token({"kid": None})) == 200
        assert shelf.fetched == 2


async def test_keys_with_a_lost_source_are_used_until_they_are_stale(autojump_clock):
    shelf, issuer = FakeKeySource(OLD.jwks()), Issuer(OLD.key, name="old")
    async with open_world(login=login_by(OLD, shelf)) as world:
        assert await code_of(world, issuer.token()) == 200
        shelf.why = "no way there"
        await trio.sleep(KEYS_STALE - 60)
        issuer.now = trio.current_time()
        assert await code_of(world, issuer.token()) == 200
        await trio.sleep(60)
        issuer.now = trio.current_time()
        assert await code_of(world, issuer.token()) == 503


async def test_a_source_that_never_answers_is_given_up(autojump_clock):
    shelf = FakeKeySource(OLD.jwks(), delay=3600)
    async with open_world(login=login_by(OLD, shelf)) as world:
        assert await code_of(world, OLD.token()) == 503
        assert trio.current_time() < 3


async def test_without_configured_keys_no_runtime_is_admitted(autojump_clock):
    async with open_world(login=Login(provider=lambda _: Nobody())) as world:
        assert await code_of(world, OLD.token()) == 401
        assert await code_of(world, None) == 401


# ---- a server


def answering(said):
    async def handler(call):
        await trio.lowlevel.checkpoint()
        if isinstance(said, Exception):
            raise said
        return said

    return handler


async def fetched(url):
    source = KeyUrl(ServerUrl.read(url))
    try:
        return await source.fetch()
    finally:
        await source.aclose()


async def test_keys_come_from_a_server():
    async with open_http_server(answering(Said(raw=OLD.jwks()))) as server:
        assert [*await fetched(f"{server.url}/keys")] == ["old"]
        assert server.calls[0].segments == ("keys",)


async def test_a_server_that_is_too_slow_is_not_waited_for(hasty_clock):
    async def handler(call):
        await trio.sleep_forever()

    async with open_http_server(handler) as server:
        with trio.fail_after(60), pytest.raises(KeysAwayError, match="no answer within"):
            await fetched(server.url)
