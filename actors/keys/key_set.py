"""Sets of public keys that verify signatures (RFC 7517), and the accepted algorithms.

For each key only its own algorithms are accepted (RFC 8725, 3.1). Identity providers publish keys
of many kinds in one set, so a key that cannot be used is skipped.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs
import orjson
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from typing_extensions import override

from actors.kit.log import get_logger
from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, JWKS_KEYS, RSA_BITS_MAX, RSA_BITS_MIN

_log = get_logger("actors.keys")

EDDSA: Final = "EdDSA"

_SYNONYMS: Final = MappingProxyType({"Ed25519": EDDSA})
"""Alternative names of algorithms: `Ed25519` means EdDSA with an Ed25519 key (RFC 9864)."""

_BY_KIND: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = MappingProxyType(
    {
        ("OKP", "Ed25519"): (EDDSA,),
        ("EC", "P-256"): ("ES256",),
        ("EC", "P-384"): ("ES384",),
        ("RSA", None): ("RS256", "PS256"),
    }
)
"""The accepted algorithms for each type and curve of key; a key without `alg` has all of them."""

ALGORITHMS: Final = tuple(each for names in _BY_KIND.values() for each in names)
"""The names of the accepted signature algorithms."""

_ACCEPTED_NAMES: Final = frozenset({*ALGORITHMS, *_SYNONYMS})

Key: TypeAlias = OKPKey | ECKey | RSAKey


def canonical(algorithm: str) -> str | None:
    """Return the usual name of a signature algorithm; None: the algorithm is not accepted.

    Args:
        algorithm: A name of the algorithm.
    """
    name = _SYNONYMS.get(algorithm, algorithm)
    return name if name in ALGORITHMS else None


class _Registry(JWSRegistry):
    """Register of the accepted signature algorithms, for the library joserfc.

    The library warns of `EdDSA`, because newer documents call it `Ed25519` (RFC 9864); issuers go
    on using the name of RFC 8037.
    """

    @override
    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in _ACCEPTED_NAMES:
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


REGISTRY: Final = _Registry()
"""The only register of algorithms that is passed to the library joserfc."""


@final
class BadKeysError(ReasonError, public=True):
    """A text is not a usable set of public keys; the author of the text has to act."""

    summary = "no set of keys"


_PRIVATE: Final = "it holds a private key, which must stay secret"

_SECRET: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
"""Names of the members that hold the secret part of a key."""

_MATERIAL: Final = ("kty", "crv", "x", "y", "n", "e")


@attrs.frozen
class VerifyingKey:
    """Public key that verifies signatures by certain algorithms.

    Attributes:
        algorithms: The only algorithms for which the key may be used (RFC 8725, 3.1).
        issuer: The only issuer whose tokens the key verifies (`iss` in the key entry); None: any
            issuer of the set.
    """

    algorithms: tuple[str, ...]
    key: Key
    issuer: str | None = None

    def is_of(self, issuer: Json, *, is_shared: bool) -> bool:
        """Return whether this key may verify tokens of an issuer (RFC 8725, 3.8).

        Args:
            issuer: Name of the issuer.
            is_shared: Whether the set is of several issuers, so that each key must name its issuer.
        """
        return self.issuer == issuer or (self.issuer is None and not is_shared)


Keys: TypeAlias = Mapping[str, VerifyingKey]
"""Public keys by their names; a signature states the name of its key (`kid`)."""


def read_keys(text: bytes, where: str | None = None) -> Keys:
    """Read a JSON Web Key Set; skip the keys that cannot be used.

    Args:
        text: The key set as JSON.
        where: File or URL of the set, for the log entry on skipped keys; None: they are not logged.

    Raises:
        BadKeysError: The text is no key set, has a private key, or no usable key.
    """
    keys, skipped = read_key_set(text)
    if where is not None and skipped:
        log_skipped(where, skipped)
    return keys


def log_skipped(where: str, skipped: Sequence[str]) -> None:
    """Log which keys of a set cannot be used and are skipped.

    Args:
        where: File or URL of the set.
        skipped: Name of each skipped key, with the reason.
    """
    _log.warning("keys skipped", source=where, why="; ".join(skipped))


def read_key_set(text: bytes) -> tuple[Keys, tuple[str, ...]]:
    """Read a JSON Web Key Set; return its keys, and the name of each skipped key with the reason.

    Keys for other uses, such as encryption, are omitted silently.

    Args:
        text: The key set as JSON.

    Raises:
        BadKeysError: The text is no key set, has a private key, or no usable key.
    """
    keys: dict[str, VerifyingKey] = {}
    skipped: list[str] = []
    for number, entry in enumerate(_entries(text), 1):
        kid = entry.get("kid") if isinstance(entry, dict) else None
        name = kid if isinstance(kid, str) else ""
        try:
            key = _read(entry)
            if key is not None:
                keys[_new_name(name, keys)] = key
        except BadKeysError as exc:
            skipped.append(f"key {repr(name[:_NAME_SHOWN]) if name else number}: {exc.reason}")
    if not keys:
        reasons = "".join(f"; {reason}" for reason in skipped[:_REASONS_SHOWN])
        raise BadKeysError(f"no key of it is for {' or '.join(ALGORITHMS)}{reasons}")
    return MappingProxyType(keys), tuple(skipped)


def _new_name(name: str, keys: Keys) -> str:
    if not name:
        raise BadKeysError("it has no 'kid' by which tokens can name it")
    if name in keys:
        raise BadKeysError("two keys have this name")
    return name


_NAME_SHOWN: Final = 64
"""Maximum number of characters of a key's name in an error message."""

_REASONS_SHOWN: Final = 4
"""Maximum number of skipped keys that the error message about an unusable set lists."""


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
    if any(isinstance(entry, dict) and _SECRET & entry.keys() for entry in keys):
        raise BadKeysError(_PRIVATE)
    return keys


def algorithms_of(entry: JsonObject) -> tuple[str, ...]:
    """Return the accepted algorithms for a key; empty: no accepted algorithm fits the key.

    Args:
        entry: The entry of the key in its set. An RSA key without `alg` has both algorithms of its
            type; identity providers mean the first one.
    """
    kind = str(entry.get("kty"))
    names = _BY_KIND.get((kind, None if kind == "RSA" else str(entry.get("crv"))), ())
    if "alg" not in entry:
        return names
    algorithm = canonical(str(entry["alg"]))
    return tuple(name for name in names if name == algorithm)


def _read(entry: Json) -> VerifyingKey | None:
    """Read one key of a set; None: the key is not for signatures.

    Raises:
        BadKeysError: The key cannot be used.
    """
    if not isinstance(entry, dict):
        raise BadKeysError("it is no object")
    if entry.get("use", "sig") != "sig" or not _has(entry.get("key_ops", ["verify"]), "verify"):
        return None
    algorithms, issuer = algorithms_of(entry), entry.get("iss")
    if not algorithms:
        raise BadKeysError(f"it is for none of {', '.join(ALGORITHMS)}")
    if issuer is not None and (not isinstance(issuer, str) or not issuer):
        raise BadKeysError("its 'iss' names no issuer")
    try:
        _check_size(entry)
        key = import_key(entry, _MATERIAL)
        # The library decodes keys at their first use: detect damage now, not at a login.
        key.check_key_op("verify")
        _ = key.public_key
    except (JoseError, ValueError, KeyError) as exc:
        raise BadKeysError("it is damaged") from exc
    return VerifyingKey(algorithms, key, issuer)


def import_key(entry: JsonObject, members: tuple[str, ...]) -> Key:
    """Make a key object from some members of a JSON Web Key.

    Args:
        entry: The entry of the key in a set or file.
        members: Names of the members that are used; all others are ignored.

    Raises:
        JoseError: The members form no key.
        ValueError: The members form no key.
        KeyError: The members form no key.
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
    """Refuse an RSA key that is too short or too long, before the library logs a warning."""
    modulus = entry.get("n")
    if entry.get("kty") != "RSA" or not isinstance(modulus, str):
        return
    bits = int.from_bytes(urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4))).bit_length()
    if not RSA_BITS_MIN <= bits <= RSA_BITS_MAX:
        raise BadKeysError(f"it has {bits} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX} are accepted")


def _has(operations: Json, wanted: str) -> bool:
    return isinstance(operations, list) and wanted in operations
