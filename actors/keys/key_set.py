"""A set of public keys that verify signatures (RFC 7517), and their two algorithms.

No other algorithm is accepted (RFC 8725, 3.1).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs
import orjson
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey
from joserfc.jws import JWSRegistry
from typing_extensions import override

from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, JWKS_KEYS

__all__ = ["ALGORITHMS", "EDDSA", "REGISTRY", "BadKeysError", "Keys", "read_keys"]

EDDSA: Final = "EdDSA"

ALGORITHMS: Final = MappingProxyType({("OKP", "Ed25519"): EDDSA, ("EC", "P-256"): "ES256"})
"""By type and curve of a key, the one algorithm it is used with; no others are taken."""

_TAKEN: Final = frozenset(ALGORITHMS.values())


@final
class _Registry(JWSRegistry):
    """Knows two algorithms.

    The library warns of `EdDSA` because newer documents write `Ed25519` for the same
    thing (RFC 9864); issuers go on writing what RFC 8037 says.
    """

    @override
    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in _TAKEN:
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


REGISTRY: Final = _Registry()
"""The algorithms that the library may use."""


@final
class BadKeysError(ReasonError):
    """A text is no set of keys: its author must act."""

    summary = "no set of keys"


_PRIVATE: Final = "it holds a private key, which must stay secret"

_MATERIAL: Final = ("kty", "crv", "x", "y")


@final
@attrs.frozen
class VerifyingKey:
    """A public key.

    Attributes:
        algorithm: What it verifies, and nothing else (RFC 8725, 3.1).
    """

    algorithm: str
    key: OKPKey | ECKey


Keys: TypeAlias = Mapping[str, VerifyingKey]
"""Public keys by what signatures call them (`kid`)."""


def read_keys(text: bytes) -> Keys:
    """Read a set of keys; those that sign nothing we know are passed over.

    Raises:
        BadKeysError: It is none, holds a key twice or a private one, or nothing of use.
    """
    found: dict[str, VerifyingKey] = {}
    for one in _entries(text):
        if not isinstance(one, dict):
            raise BadKeysError("an entry is no object")
        if "d" in one:
            raise BadKeysError(_PRIVATE)
        read = _read(one)
        if read is None:
            continue
        name = one.get("kid")
        if not isinstance(name, str) or not name:
            raise BadKeysError("a key has no 'kid' by which tokens can name it")
        if name in found:
            raise BadKeysError(f"two keys are called {name!r}")
        found[name] = read
    if not found:
        raise BadKeysError("no key of it is for EdDSA or ES256")
    return MappingProxyType(found)


def _entries(text: bytes) -> list[Json]:
    if len(text) > JWKS_BYTES:
        raise BadKeysError(f"it is larger than {JWKS_BYTES} bytes")
    try:
        content: Json = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise BadKeysError("it is no JSON") from exc
    keys = content.get("keys") if isinstance(content, dict) else None
    if isinstance(content, dict) and "d" in content:
        raise BadKeysError(_PRIVATE)
    if not isinstance(keys, list):
        raise BadKeysError("it is no object with a list 'keys'")
    if len(keys) > JWKS_KEYS:
        raise BadKeysError(f"it holds more than {JWKS_KEYS} keys")
    return keys


def _read(entry: JsonObject) -> VerifyingKey | None:
    """Read a key; None: it is not for verifying what we take."""
    kind, curve = entry.get("kty"), entry.get("crv")
    algorithm = ALGORITHMS.get((str(kind), str(curve)))
    if algorithm is None or entry.get("alg", algorithm) != algorithm:
        return None
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not _has(operations, "verify"):
        return None
    material = [(name, entry[name]) for name in _MATERIAL if name in entry]
    words: dict[str, str | list[str]] = {
        name: value for name, value in material if isinstance(value, str)
    }
    try:
        key = OKPKey.import_key(words) if kind == "OKP" else ECKey.import_key(words)
        # Keys are made when first used: a damaged one is found here, not at a login.
        key.check_key_op("verify")
        _ = key.public_key
    except (JoseError, ValueError, KeyError) as exc:
        raise BadKeysError(f"a key for {algorithm} is damaged") from exc
    return VerifyingKey(algorithm, key)


def _has(operations: Json, wanted: str) -> bool:
    return isinstance(operations, list) and wanted in operations
