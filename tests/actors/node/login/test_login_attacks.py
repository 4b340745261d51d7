"""Tokens that let nobody in, one by one, through a whole node (S4, S5, RFC 8725)."""

import base64
import hashlib
import hmac
import json

import pytest
from joserfc.jwe import encrypt_compact
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from actors.keys.key_set import read_keys
from actors.keys.token import BadTokenError, read_token, read_verified
from actors.kit.counters import Tally
from specs.limits.node import TOKEN_CHARS
from specs.limits.protocol import MAX_JSON_TEXT
from specs.reply_code import Code
from tests.support.node.issuer import FakeKeySource, Issuer, encoded, login_by
from tests.support.node.node_peer import RA, SESSION, open_world
from transports.codec import encode

EDDSA, ES256, OUTSIDER = Issuer(), Issuer.es256("k2"), Issuer()
RSA = RSAKey.generate_key(2048)
ES384 = Issuer(ECKey.generate_key("P-384"), "ES384", "k3")
RS256 = Issuer(RSAKey.generate_key(2048), "RS256", "k4", alg="RS256")
PS256 = Issuer(RSAKey.generate_key(2048), "PS256", "k5", alg="PS256")
ED25519 = Issuer(EDDSA.key, "Ed25519", "k1")
GOOD = {one.algorithm: one for one in (EDDSA, ES256, ES384, RS256, PS256, ED25519)}
KEYS = FakeKeySource(EDDSA.jwks(ES256, ES384, RS256, PS256))


def hmac_signed(algorithm, secret, name="k1"):
    """Confuse a public key with a shared secret (RFC 8725, 2.1)."""
    header = {"alg": algorithm, "kid": name} if name else {"alg": algorithm}
    text = f"{encoded(header)}.{encoded(EDDSA.claims())}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def signed_by(key, algorithm, name):
    return Issuer(key, algorithm, name).token({"kid": name})


def unsigned(algorithm):
    return f"{encoded({'alg': algorithm, 'kid': 'k1'})}.{encoded(EDDSA.claims())}."


def encrypted():
    key = OctKey.generate_key(256)
    return encrypt_compact({"alg": "dir", "enc": "A256GCM"}, EDDSA.token(), key)


def deflated():
    """A small token that would grow to a megabyte."""
    header = {"alg": "dir", "enc": "A256GCM", "zip": "DEF"}
    return encrypt_compact(header, b"0" * 250_000, OctKey.generate_key(256))


def with_header(**more):
    return EDDSA.token(more)


def damaged(place):
    parts = EDDSA.token().split(".")
    byte = bytearray(base64.urlsafe_b64decode(parts[place] + "=="))
    byte[len(byte) // 2] ^= 1
    parts[place] = encoded(bytes(byte))
    return ".".join(parts)


def twisted(**claims):
    """The other signature that fits, as ECDSA has two: made by whoever saw one."""
    text, _, signature = ES256.token(**claims).rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    other = order - int.from_bytes(raw[32:])
    return f"{text}.{signature}", f"{text}.{encoded(raw[:32] + other.to_bytes(32))}"


def own_key():
    """A key of the attacker's own, sent along."""
    return OUTSIDER.token({"jwk": OUTSIDER.key.as_dict(private=False)})


ATTACKS = {
    "no signature": lambda: unsigned("none"),
    "no signature, spelt otherwise": lambda: unsigned("nOnE"),
    "signature left out": lambda: EDDSA.token().rpartition(".")[0] + ".",
    "two parts": lambda: EDDSA.token().rpartition(".")[0],
    "public key as a secret": lambda: hmac_signed("HS256", EDDSA.key.as_bytes(private=False)),
    "key set as a secret": lambda: hmac_signed("HS256", KEYS.text),
    "RSA key as a secret": lambda: hmac_signed("HS256", RS256.key.as_pem(private=False), "k4"),
    "RSA key as a secret, in DER": lambda: hmac_signed(
        "HS256", RS256.key.as_der(private=False), "k4"
    ),
    "RSA key as a secret, its modulus": lambda: hmac_signed(
        "HS256", base64.urlsafe_b64decode(RS256.public()["n"] + "=="), "k4"
    ),
    "RSA key as a secret, RS256 named": lambda: hmac_signed(
        "RS256", RS256.key.as_pem(private=False), "k4"
    ),
    "key as a secret, no key named": lambda: hmac_signed(
        "HS256", RS256.key.as_pem(private=False), None
    ),
    "empty secret": lambda: hmac_signed("HS256", b""),
    "RS256": lambda: signed_by(RSA, "RS256", "k1"),
    "PS256": lambda: signed_by(RSA, "PS256", "k1"),
    "ES256 named, signed by Ed25519": lambda: EDDSA.token({"alg": "ES256"}),
    "EdDSA named, signed by P-256": lambda: ES256.token({"alg": "EdDSA"}),
    "RS256 by a key for PS256": lambda: signed_by(PS256.key, "RS256", "k5"),
    "PS256 by a key for RS256": lambda: signed_by(RS256.key, "PS256", "k4"),
    "RS256 by a key for PS256, unnamed": lambda: Issuer(PS256.key, "RS256").token({"kid": None}),
    "RS256 named, signed by PS256": lambda: PS256.token({"alg": "RS256", "kid": "k4"}),
    "PS256 named, signed by RS256": lambda: RS256.token({"alg": "PS256", "kid": "k5"}),
    "RS256 named, key of ES256": lambda: RS256.token({"kid": "k2"}),
    "ES256 named, key of ES384": lambda: ES256.token({"kid": "k3"}),
    "ES384 named, key of ES256": lambda: ES384.token({"kid": "k2"}),
    "Ed25519 named, signed by P-256": lambda: ES256.token({"alg": "Ed25519"}),
    "ES512": lambda: signed_by(ECKey.generate_key("P-521"), "ES512", "k3"),
    "RS384": lambda: signed_by(RS256.key, "RS384", "k4"),
    "RS512": lambda: signed_by(RS256.key, "RS512", "k4"),
    "PS384": lambda: signed_by(PS256.key, "PS384", "k5"),
    "ES256K": lambda: signed_by(ECKey.generate_key("secp256k1"), "ES256K", "k2"),
    "another curve": lambda: signed_by(ECKey.generate_key("P-384"), "ES384", "k2"),
    "another curve of Edwards": lambda: signed_by(OKPKey.generate_key("Ed448"), "EdDSA", "k1"),
    "unknown key": lambda: OUTSIDER.token({"kid": "k9"}),
    "known name, another key": OUTSIDER.token,
    "another's key name": lambda: EDDSA.token({"kid": "k2", "alg": "ES256"}),
    "no key named": lambda: OUTSIDER.token({"kid": None}),
    "empty name of a key": lambda: with_header(kid=""),
    "key named by a list": lambda: with_header(kid=["k1"]),
    "key named by a path": lambda: with_header(kid="../../../dev/null"),
    "key by statement": lambda: with_header(kid="k1' or '1'='1"),
    "key sent along": own_key,
    "key by URL": lambda: with_header(jku="https://evil.ex/keys"),
    "certificate by URL": lambda: with_header(x5u="https://evil.ex/cert"),
    "certificate sent along": lambda: with_header(x5c=["MIIB"]),
    "certificate by thumbprint": lambda: with_header(x5t="AAAA"),
    "critical extension": lambda: with_header(crit=["exp"], exp=1),
    "empty list of extensions": lambda: with_header(crit=[]),
    "payload not encoded": lambda: with_header(crit=["b64"], b64=False),
    "nested": lambda: EDDSA.signed(EDDSA.token().encode(), {"cty": "JWT"}),
    "token of another kind": lambda: with_header(typ="logout+jwt"),
    "kind that is no text": lambda: with_header(typ=["JWT"]),
    "encrypted": encrypted,
    "encrypted and compressed": deflated,
    "header damaged": lambda: damaged(0),
    "claims damaged": lambda: damaged(1),
    "signature damaged": lambda: damaged(2),
    "signature of another token": lambda: (
        EDDSA.token().rpartition(".")[0] + "." + EDDSA.token().rpartition(".")[2]
    ),
    "white space": lambda: " " + EDDSA.token(),
    "line break": lambda: EDDSA.token() + "\n",
    "padding": lambda: EDDSA.token() + "==",
    "as JSON": lambda: json.dumps({"payload": "", "signatures": []}),
    "claims are a list": lambda: EDDSA.signed([EDDSA.claims()]),
    "claims are no JSON": lambda: EDDSA.signed(b"{"),
    "claims are deep": lambda: EDDSA.signed(b"[" * 5000 + b"]" * 5000),
    "header is a list": lambda: f"{encoded(['alg'])}.{encoded(EDDSA.claims())}.AAAA",
    "header is a text": lambda: f"{encoded('alg')}.{encoded(EDDSA.claims())}.AAAA",
    "empty": lambda: "",
    "dots": lambda: "..",
    "long": lambda: EDDSA.token(note="x" * TOKEN_CHARS),
    "longer than a message may be": lambda: "x" * (MAX_JSON_TEXT - 1),
    "issued by nobody": lambda: EDDSA.token(iss=None),
    "for another node": lambda: EDDSA.token(aud="b.ex"),
    "for another node as well": lambda: EDDSA.token(aud=["a.ex", "b.ex"]),
    "for another party": lambda: EDDSA.token(azp="b.ex"),
    "expired": lambda: EDDSA.token(iat=-900, exp=-61),
    "not yet good": lambda: EDDSA.token(nbf=100),
    "issued in the future": lambda: EDDSA.token(iat=100, exp=200),
    "good for a year": lambda: EDDSA.token(exp=31_536_000),
    "good for ever": lambda: EDDSA.token(exp=None),
    "name that is no text": lambda: EDDSA.token(jti=7),
    "empty name": lambda: EDDSA.token(jti=""),
    "good for more than a day": lambda: EDDSA.token(exp=86_401),
    "without a subject": lambda: EDDSA.token(sub=None),
    "for another runtime": lambda: EDDSA.token(runtime="hyperty-runtime://a.ex/rb"),
}

LATER = {"not yet good": 40.0, "issued in the future": 40.0}
"""Seconds until a token is good, by a clock that may be a minute behind."""


async def answer_to(world, token):
    peer = await world.outsider()
    answer = await peer.control("open", runtimeURL=RA, token=token)
    if answer.code == Code.OK:
        # Its runtime shows that the answer came.
        await peer.control("ping")
    await peer.link.aclose()
    return answer


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_wrong_token_opens_no_session(attack, autojump_clock):
    """SEC-03."""
    token = ATTACKS[attack]()
    async with open_world(login=login_by(EDDSA, KEYS)) as world:
        answer = await answer_to(world, token)

        assert answer.code == 401
        assert answer.body.get("retryAfter") == LATER.get(attack)
        assert await world.states() == {}
        assert world.steps("session") == []
        assert world.node.counters.tallies[Tally.REFUSALS] == {(Code.UNAUTHENTICATED,): 1}
        assert not token or token not in encode(answer).decode()


REASONS = {
    "public key as a secret": "signed by none of EdDSA, ES256",
    "RSA key as a secret": "signed by none of EdDSA, ES256",
    "RSA key as a secret, RS256 named": "signature does not fit",
    "RS256": "not for the algorithm",
    "RS256 by a key for PS256": "not for the algorithm",
    "PS256 by a key for RS256": "not for the algorithm",
    "RS256 by a key for PS256, unnamed": "signature does not fit",
    "RS256 named, signed by PS256": "signature does not fit",
    "ES384 named, key of ES256": "not for the algorithm",
    "RS512": "signed by none of",
    "ES256 named, signed by Ed25519": "not for the algorithm",
    "EdDSA named, signed by P-256": "not for the algorithm",
    "unknown key": "the key that it names is unknown",
    "known name, another key": "signature does not fit",
    "signature damaged": "signature does not fit",
    "no key named": "signature does not fit",
    "key named by a list": "does not name the key",
    "key sent along": "more than alg, kid and typ",
    "critical extension": "more than alg, kid and typ",
    "encrypted": "encrypted",
    "long": "longer than",
}


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("attack", REASONS)
def test_each_attack_is_refused_for_its_own_reason(attack):
    """Nothing is left to the next check."""
    with pytest.raises(BadTokenError) as refused:
        read_verified(read_token(ATTACKS[attack]()), read_keys(KEYS.text))

    assert REASONS[attack] in refused.value.reason


@pytest.mark.parametrize("name", [True, False], ids=["key named", "no key named"])
@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
async def test_the_tokens_of_all_issuers_are_otherwise_good(kind, name, autojump_clock):
    async with open_world(login=login_by(EDDSA, KEYS)) as world:
        for issuer in GOOD.values():
            header = {"typ": kind} if name else {"typ": kind, "kid": None}
            assert (await answer_to(world, issuer.token(header))).code == 200


@pytest.mark.parametrize("issuer", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("again", ["jti", "no jti"])
async def test_a_token_opens_one_session_by_its_name_or_by_its_hash(issuer, again, autojump_clock):
    """SEC-03."""
    token = issuer.token(**({} if again == "jti" else {"jti": None}))
    async with open_world(login=login_by(EDDSA, KEYS)) as world:
        assert (await answer_to(world, token)).code == 200
        answer = await answer_to(world, token)

        assert (answer.code, "used already" in answer.body["description"]) == (401, True)


@pytest.mark.parametrize("issuer", [EDDSA, ES256], ids=["EdDSA", "ES256"])
async def test_a_captured_open_opens_nothing(issuer, autojump_clock):
    """S5: the very frame again, over another link, also for another runtime."""
    async with open_world(login=login_by(EDDSA, KEYS)) as world:
        peer = await world.outsider()
        frame = await peer.post(
            "execute", peer.stub, SESSION, method="open",
            params={"runtimeURL": RA, "token": issuer.token()},
        )  # fmt: skip
        assert (await peer.hear()).code == 200
        await peer.control("close")
        thief = await world.outsider()
        await thief.raw(encode(frame))
        answer = await thief.hear()

        assert (answer.code, "used already" in answer.body["description"]) == (
            401, True,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("name", [{}, {"jti": None}], ids=["jti", "no jti"])
async def test_the_other_signature_of_a_captured_token_opens_nothing(name, autojump_clock):
    seen, forged = twisted(**name)
    keys = Issuer(ES256.key, "ES256", "k2")
    algorithm = JWSRegistry.algorithms["ES256"]
    text, _, signature = forged.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    assert algorithm.verify(text.encode(), raw, keys.key)
    async with open_world(login=login_by(EDDSA, KEYS)) as world:
        assert (await answer_to(world, seen)).code == 200
        assert (await answer_to(world, forged)).code == 401
