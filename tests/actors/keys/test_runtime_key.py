"""Keys of runtimes and statements of domains: what is signed, and what is refused."""

import base64

import orjson
import pytest

from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.keys.runtime_key import read_runtime_key
from actors.keys.signing import SigningKey, make_key
from actors.keys.token import BadStatementError, Statement, read_statement, write_statement

# The example of RFC 8037, appendix A.
RFC_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
RFC_D = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
RFC_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


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


def test_a_changed_statement_is_refused() -> None:
    key = make_key("EdDSA")
    head, _, tail = write_statement(SAID, key).split(".")
    body = base64.urlsafe_b64encode(claims_of(sub="runtime://a.example/evil")).decode().rstrip("=")
    for text in (f"{head}.{body}.{tail}", "", "a.b.c", f"{head}.{body}.", "x" * 100_000):
        with pytest.raises(BadStatementError):
            read(text, key)
