"""A set of public keys that verify signatures (RFC 7517), and their algorithms.

Each key has one algorithm, and no other algorithm is accepted (RFC 8725, 3.1).
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs
import orjson
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from typing_extensions import override

from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, JWKS_KEYS, RSA_BITS_MAX, RSA_BITS_MIN

__all__ = [
    "ALGORITHMS",
    "EDDSA",
    "REGISTRY",
    "BadKeysError",
    "Key",
    "Keys",
    "VerifyingKey",
    "algorithm_of",
    "canonical",
    "import_key",
    "read_keys",
]

EDDSA: Final = "EdDSA"

_SYNONYMS: Final = MappingProxyType({"Ed25519": EDDSA})
"""The same algorithm by another name: EdDSA with a key for Ed25519 (RFC 9864)."""

_BY_KIND: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = MappingProxyType(
    {
        ("OKP", "Ed25519"): (EDDSA,),
        ("EC", "P-256"): ("ES256",),
        ("EC", "P-384"): ("ES384",),
        ("RSA", None): ("RS256", "PS256"),
    }
)
"""By type and curve of a key, its possible algorithms; the first is that of a key without `alg`."""

ALGORITHMS: Final = tuple(one for names in _BY_KIND.values() for one in names)
"""The accepted algorithms, each by its usual name."""

_TAKEN: Final = frozenset({*ALGORITHMS, *_SYNONYMS})

Key: TypeAlias = OKPKey | ECKey | RSAKey


def canonical(algorithm: str) -> str | None:
    """Return the usual name of an algorithm; None: it is not accepted.

    Args:
        algorithm: A name of it.
    """
    name = _SYNONYMS.get(algorithm, algorithm)
    return name if name in ALGORITHMS else None


@final
class _Registry(JWSRegistry):
    """Knows the accepted algorithms.

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

_SECRET: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
"""Members of a key that belong to its private part."""

_MATERIAL: Final = ("kty", "crv", "x", "y", "n", "e")


@final
@attrs.frozen
class VerifyingKey:
    """A public key.

    Attributes:
        algorithm: What it verifies, and nothing else (RFC 8725, 3.1).
    """

    algorithm: str
    key: Key


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
        if _SECRET & one.keys():
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
        raise BadKeysError(f"no key of it is for {' or '.join(ALGORITHMS)}")
    return MappingProxyType(found)


def _entries(text: bytes) -> list[Json]:
    if len(text) > JWKS_BYTES:
        raise BadKeysError(f"it is larger than {JWKS_BYTES} bytes")
    try:
        content: Json = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise BadKeysError("it is no JSON") from exc
    keys = content.get("keys") if isinstance(content, dict) else None
    if isinstance(content, dict) and _SECRET & content.keys():
        raise BadKeysError(_PRIVATE)
    if not isinstance(keys, list):
        raise BadKeysError("it is no object with a list 'keys'")
    if len(keys) > JWKS_KEYS:
        raise BadKeysError(f"it holds more than {JWKS_KEYS} keys")
    return keys


def algorithm_of(entry: JsonObject) -> str | None:
    """Return the one algorithm of a key; None: it has none that is accepted.

    Args:
        entry: The key as a set has it; of an RSA key without `alg` it is RS256, as identity
            providers mean it.
    """
    kind = str(entry.get("kty"))
    names = _BY_KIND.get((kind, None if kind == "RSA" else str(entry.get("crv"))))
    if names is None:
        return None
    algorithm = canonical(str(entry.get("alg", names[0])))
    return algorithm if algorithm in names else None


def _read(entry: JsonObject) -> VerifyingKey | None:
    """Read a key; None: it is not for verifying what we take."""
    algorithm = algorithm_of(entry)
    if algorithm is None:
        return None
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not _has(operations, "verify"):
        return None
    try:
        _check_size(entry)
        key = import_key(entry, _MATERIAL)
        # Keys are made when first used: a damaged one is found here, not at a login.
        key.check_key_op("verify")
        _ = key.public_key
    except (JoseError, ValueError, KeyError) as exc:
        raise BadKeysError(f"a key for {algorithm} is damaged") from exc
    return VerifyingKey(algorithm, key)


def import_key(entry: JsonObject, members: tuple[str, ...]) -> Key:
    """Make a key of some members of an entry.

    Args:
        entry: The key as a set or file has it.
        members: The members that are read.

    Raises:
        JoseError: The members are no key.
        ValueError: As above.
        KeyError: As above.
    """
    material = [(name, entry[name]) for name in members if name in entry]
    words: dict[str, str | list[str]] = {
        name: value for name, value in material if isinstance(value, str)
    }
    match words.get("kty"):
        case "OKP":
            return OKPKey.import_key(words)
        case "EC":
            return ECKey.import_key(words)
        case _:
            return RSAKey.import_key(words)


def _check_size(entry: JsonObject) -> None:
    """Refuse an RSA key of another size, before the library warns of it."""
    modulus = entry.get("n")
    if entry.get("kty") != "RSA" or not isinstance(modulus, str):
        return
    bits = int.from_bytes(urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4))).bit_length()
    if not RSA_BITS_MIN <= bits <= RSA_BITS_MAX:
        raise BadKeysError(
            f"the RSA key {entry.get('kid')!r} has {bits} bits; "
            f"{RSA_BITS_MIN} to {RSA_BITS_MAX} are accepted"
        )


def _has(operations: Json, wanted: str) -> bool:
    return isinstance(operations, list) and wanted in operations
