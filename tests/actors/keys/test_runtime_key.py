"""Keys of runtimes and statements of domains: what is signed, and what is refused."""

import base64
import hashlib

import attrs
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import OKPKey

from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.keys.runtime_key import (
    is_signed,
    make_runtime_key,
    read_runtime_key,
    thumbprint_of,
)
from actors.keys.signing import SigningKey, make_key
from actors.keys.token import BadStatementError, Statement, read_statement, write_statement

# The example of RFC 8037, appendix A.
RFC_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
RFC_D = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
RFC_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_the_thumbprint_is_that_of_the_example_in_rfc_8037() -> None:
    text = orjson.dumps({"kty": "OKP", "crv": "Ed25519", "x": RFC_X, "d": RFC_D})
    assert read_runtime_key(text).thumbprint == RFC_THUMBPRINT
    assert thumbprint_of(RFC_X) == RFC_THUMBPRINT


def test_the_library_of_tokens_gives_a_key_the_same_thumbprint() -> None:
    key = make_runtime_key()
    words: dict[str, str | list[str]] = {"kty": "OKP", "crv": "Ed25519", "x": key.public}
    assert OKPKey.import_key(words).thumbprint() == key.thumbprint


def test_a_stored_key_is_read_again() -> None:
    key = make_runtime_key()
    again = read_runtime_key(key.to_jwk())
    assert again.thumbprint == key.thumbprint
    assert is_signed(key.public, "open", ["a"], again.signature("open", ["a"]))


def test_a_key_shows_nothing_of_its_private_part() -> None:
    key = make_runtime_key()
    assert orjson.loads(key.to_jwk())["d"] not in repr(key)


def test_a_signature_fits_only_its_key_purpose_and_texts() -> None:
    key, other = make_runtime_key(), make_runtime_key()
    signature = key.signature("open", ["ab", "c"])
    assert is_signed(key.public, "open", ["ab", "c"], signature)
    assert not is_signed(other.public, "open", ["ab", "c"], signature)
    assert not is_signed(key.public, "link", ["ab", "c"], signature)
    for texts in (["a", "bc"], ["ab", "c", ""], ["abc"], ["c", "ab"], []):
        assert not is_signed(key.public, "open", texts, signature)


@pytest.mark.parametrize("damage", ["", "A", "!", "=", "\u00e9", "A" * 10_000])
def test_a_damaged_signature_or_key_is_void(damage: str) -> None:
    key = make_runtime_key()
    signature = key.signature("open", ["a"])
    assert not is_signed(key.public, "open", ["a"], damage)
    assert not is_signed(key.public, "open", ["a"], signature + damage + "A")
    assert not is_signed(damage, "open", ["a"], signature)


def test_a_second_spelling_of_a_signature_is_void() -> None:
    key = make_runtime_key()
    signature = key.signature("open", ["a"])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = signature[:-1] + letters[letters.index(signature[-1]) + 1]
    raw = base64.urlsafe_b64decode(signature + "==")
    assert base64.urlsafe_b64decode(other + "==") == raw
    assert not is_signed(key.public, "open", ["a"], other)


def test_what_is_signed_is_what_the_page_of_signatures_says() -> None:
    # An implementation in another language needs only RFC 8032 and JSON.
    key = Ed25519PrivateKey.generate()
    public = base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")
    signature = key.sign(b'["protofly/1","open","x","y"]')
    text = base64.urlsafe_b64encode(signature).decode().rstrip("=")
    assert is_signed(public, "open", ["x", "y"], text)
    canonical = b'{"crv":"Ed25519","kty":"OKP","x":"%b"}' % public.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()).decode().rstrip("=")
    assert thumbprint_of(public) == digest


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        orjson.dumps({"kty": "OKP", "crv": "Ed25519", "x": RFC_X}),
        orjson.dumps({"kty": "OKP", "crv": "X25519", "x": RFC_X, "d": RFC_D}),
        orjson.dumps({"kty": "OKP", "crv": "Ed25519", "x": RFC_D, "d": RFC_D}),
        orjson.dumps({"kty": "OKP", "crv": "Ed25519", "x": RFC_X, "d": RFC_D[:-3]}),
        orjson.dumps({"kty": "OKP", "crv": "Ed25519", "x": RFC_X, "d": "!"}),
    ],
)
def test_a_file_that_holds_no_key_is_refused(text: bytes) -> None:
    with pytest.raises(BadKeysError):
        read_runtime_key(text)


NOW = 1_000_000.0
SAID = Statement(
    domain="a.example",
    runtime="runtime://a.example/r",
    thumbprint=RFC_THUMBPRINT,
    issued=NOW,
    until=NOW + 60,
    user="user://idp.example/bob",
    issuer="https://idp.example",
)


def keys_of(*keys: SigningKey) -> Keys:
    return read_keys(orjson.dumps({"keys": [key.public() for key in keys]}))


def read(text: str, key: SigningKey, domain: str = "a.example", now: float = NOW) -> Statement:
    return read_statement(text, domain, keys_of(key), now)


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256"])
@pytest.mark.parametrize(
    "said", [SAID, attrs.evolve(SAID, user=None, issuer=None)], ids=["all", "least"]
)
def test_a_statement_is_read_as_it_was_written(said: Statement, algorithm: str) -> None:
    key = make_key(algorithm)
    assert read(write_statement(said, key), key) == said


def test_a_statement_holds_for_its_time_and_its_domain() -> None:
    key = make_key("EdDSA")
    text = write_statement(SAID, key)
    for now in (NOW - 60, NOW + 59):
        assert read(text, key, now=now) == SAID
    for now, why in ((NOW + 60, "over"), (NOW - 61, "not begun")):
        with pytest.raises(BadStatementError, match=why):
            read(text, key, now=now)
    with pytest.raises(BadStatementError, match=r"a\.example"):
        read(text, key, domain="b.example")


def claims_of(**changes: object) -> bytes:
    plain = {
        "iss": "a.example",
        "sub": "runtime://a.example/r",
        "cnf": {"jkt": RFC_THUMBPRINT},
        "iat": int(NOW),
        "exp": int(NOW) + 60,
    }
    return orjson.dumps({**plain, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": None},
        {"sub": 7},
        {"cnf": {}},
        {"cnf": {"jkt": 7}},
        {"exp": "later"},
        {"iat": None},
        {"user": 7},
        {"idp": []},
    ],
)
def test_a_statement_with_an_odd_claim_is_refused(changes: dict[str, object]) -> None:
    key = make_key("EdDSA")
    text = key.sealed(claims_of(**changes), "protofly-statement+jwt")
    with pytest.raises(BadStatementError):
        read(text, key)


def test_only_a_key_of_the_domain_makes_statements() -> None:
    key, other = make_key("EdDSA", "k"), make_key("EdDSA", "k")
    with pytest.raises(BadStatementError, match="no key"):
        read(write_statement(SAID, other), key)
    with pytest.raises(BadStatementError, match="no key"):
        read(write_statement(SAID, make_key("EdDSA", "unknown")), key)


def test_a_token_of_another_kind_is_no_statement() -> None:
    # The same key may sign login tokens and descriptors: none of them is a statement.
    key = make_key("EdDSA")
    for kind in ("JWT", "at+jwt", "protofly-descriptor"):
        with pytest.raises(BadStatementError):
            read(key.sealed(claims_of(), kind), key)


def test_a_changed_statement_is_refused() -> None:
    key = make_key("EdDSA")
    head, _, tail = write_statement(SAID, key).split(".")
    body = base64.urlsafe_b64encode(claims_of(sub="runtime://a.example/evil")).decode().rstrip("=")
    for text in (f"{head}.{body}.{tail}", "", "a.b.c", f"{head}.{body}.", "x" * 100_000):
        with pytest.raises(BadStatementError):
            read(text, key)
