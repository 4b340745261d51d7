"""Tokens in the shapes of identity providers, made by PyJWT and by `jose` of npm.

`tests/fixtures/sign-provider-tokens.mjs` made those of `jose`.
"""

import json
from functools import cache
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login
from tests.support.node.issuer import FakeKeySource
from tests.support.node.key_holder import KeyHolder
from tests.support.node.node_peer import open_world

FIXTURES = Path(__file__).parents[3] / "fixtures"
SHAPES = json.loads((FIXTURES / "provider-tokens.json").read_text())
NOW = SHAPES["now"]
BY_NAME = {one["name"]: one for one in SHAPES["tokens"]}
BY_JOSE = json.loads((FIXTURES / "provider-tokens-jose.json").read_text())


@cache
def private_key(algorithm):
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "EdDSA" | "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(65537, 2048)


def by_pyjwt(shape):
    """Return a token and the keys that its provider publishes."""
    header, key = shape["header"], private_key(shape["header"]["alg"])
    # PyJWT knows the newer name of the algorithm in keys only; it signs the header as given.
    signer = jwt.PyJWS()
    if header["alg"] not in get_default_algorithms():
        signer.register_algorithm(header["alg"], get_default_algorithms()["EdDSA"])
    more = {"typ": None, **header}
    claims = json.dumps(shape["claims"]).encode()
    token = signer.encode(claims, key, algorithm=header["alg"], headers=more)
    public = json.loads(signer.get_algorithm_by_name(header["alg"]).to_jwk(key.public_key()))
    public.pop("key_ops", None)
    alg = {} if header["alg"] == "RS256" else {"alg": header["alg"]}
    return token, [{**public, "kid": header.get("kid", "unnamed"), "use": "sig", **alg}]


def by_jose(shape):
    made = BY_JOSE[shape["name"]]
    return made["token"], made["keys"]


def a_node(shape, keys, **terms):
    shelf = FakeKeySource(json.dumps({"keys": keys}).encode())
    provider = by_keys(shelf, terms_of("a.ex", **{**shape["node"], **terms}))
    return open_world(login=Login(provider=provider, clock=lambda: NOW))


async def answers_to(world, *tokens):
    for token in tokens:
        peer = await world.outsider()
        answer = await peer.control("open", runtimeURL=peer.runtime, token=token)
        if answer.code == 200:
            await peer.control("ping")
        await peer.link.aclose()
        yield answer


@pytest.mark.parametrize("maker", [by_pyjwt, by_jose])
@pytest.mark.parametrize("name", BY_NAME)
async def test_a_token_of_this_shape_opens_one_session(name, maker, autojump_clock):
    shape = BY_NAME[name]
    token, keys = maker(shape)
    async with a_node(shape, keys) as world:
        first, second = [one async for one in answers_to(world, token, token)]

        assert (first.code, first.body.get("description")) == (200, None)
        assert second.code == 401


@pytest.mark.parametrize("name", BY_NAME)
async def test_it_opens_nothing_at_another_node(name, autojump_clock):
    shape = BY_NAME[name]
    token, keys = by_jose(shape)
    async with a_node(shape, keys, issuers=["https://other.example"]) as world:
        [answer] = [one async for one in answers_to(world, token)]

        assert answer.code == 401


def test_jose_has_signed_each_shape_as_it_stands():
    for name, shape in BY_NAME.items():
        token = BY_JOSE[name]["token"]
        assert jwt.get_unverified_header(token) == shape["header"]
        assert jwt.decode(token, options={"verify_signature": False}) == shape["claims"]


@pytest.mark.parametrize("name", BY_NAME)
async def test_a_token_of_this_shape_may_be_bound_to_a_key(name, autojump_clock):
    """As providers issue them by DPoP (RFC 9449): its holder opens a session, nobody else."""
    holder, shape = KeyHolder(), BY_NAME[name]
    claims = {**shape["claims"], "cnf": {"jkt": holder.thumbprint}}
    token, keys = by_pyjwt({**shape, "claims": claims})
    async with a_node(shape, keys) as world:
        [bearer] = [one async for one in answers_to(world, token)]
        thief = await KeyHolder().enter(await world.outsider(), token)
        owner = await holder.enter(await world.outsider(), token)

        assert (bearer.code, thief.code, owner.code) == (401, 401, 200)
