"""The trust file: a TOML file that the operator of a runtime writes (T12, T13).

    [domains."b.example"]
    keys = "b.jwks.json"          # or "published", or "first-use"
    publishers = ["acme"]         # whose code may come from there; left out: none
    reach = "anywhere"            # it may name places in private networks; left out: "public"

    [publishers.acme]
    keys = "acme.jwks.json"

Domain `*` stands for all other domains. Key files are relative to the folder of the trust
file.
"""

import tomllib
from collections.abc import Iterable, Mapping
from enum import Enum, unique
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import attrs

from actors.catalogue.errors import TrustFileError
from actors.keys.key_set import BadKeysError, Keys, read_keys
from fsm.catalogue.descriptor_io import Reach, Terms
from specs.addresses.address import parse
from specs.errors import BadUrlError
from specs.limits.node import JWKS_BYTES

__all__ = ["DomainTrust", "KeyTrust", "Trust", "read_trust"]

ANY: Final = "*"
"""Stands for every domain that is not named."""

_DOMAIN: Final = frozenset({"keys", "publishers", "reach"})
_PUBLISHER: Final = frozenset({"keys"})
_NO_KEYS: Final[Mapping[str, Keys]] = MappingProxyType({})


@final
@unique
class KeyTrust(Enum):
    """Source of the keys of a domain if the trust file has none."""

    PUBLISHED = "published"
    FIRST_USE = "first-use"


@final
@attrs.frozen
class DomainTrust:
    """The trust in one domain.

    Attributes:
        terms: Publishers and network addresses that it may name.
    """

    keys: Keys | KeyTrust
    terms: Terms = attrs.field(factory=Terms)


@final
@attrs.frozen
class Trust:
    """The trust of a runtime in domains and publishers.

    Attributes:
        domains: The trust in each domain, by name; `ANY` for all others.
        publishers: Keys of the publishers whose code may run, by name.
    """

    domains: Mapping[str, DomainTrust]
    publishers: Mapping[str, Keys] = _NO_KEYS

    def of(self, domain: str) -> DomainTrust | None:
        """Return the trust in a domain; None: it is not trusted."""
        return self.domains.get(domain) or self.domains.get(ANY)


def read_trust(path: Path) -> Trust:
    """Read a trust file and the key files that it names. Blocks while it reads.

    Args:
        path: Path of the trust file.

    Raises:
        TrustFileError: A file cannot be read, or the trust file has unknown or wrong entries.
    """
    try:
        content: dict[str, object] = tomllib.loads(path.read_text())
    except OSError as exc:
        raise TrustFileError(path, exc.strerror or "it cannot be read") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise TrustFileError(path, f"it is no TOML: {exc}") from exc
    reader = _Reader(path)
    reader.known("the file", content, {"domains", "publishers"})
    publishers = {
        name: reader.publisher(name, said) for name, said in reader.tables(content, "publishers")
    }
    domains: dict[str, DomainTrust] = {}
    for written, said in reader.tables(content, "domains"):
        name, trust = reader.domain(written, said, publishers)
        if name in domains:
            raise TrustFileError(path, f"domain {name!r} stands there twice")
        domains[name] = trust
    return Trust(MappingProxyType(domains), MappingProxyType(publishers))


@final
@attrs.frozen
class _Reader:
    """Reads the parts of one file."""

    path: Path

    def tables(
        self, content: Mapping[str, object], name: str
    ) -> Iterable[tuple[str, Mapping[str, object]]]:
        table = content.get(name, {})
        if not isinstance(table, dict):
            raise TrustFileError(self.path, f"{name!r} is no table")
        for key, value in table.items():
            if not isinstance(value, dict):
                raise TrustFileError(self.path, f"[{name}.{key!r}] is no table")
            yield str(key), value

    def known(self, where: str, said: Iterable[str], names: Iterable[str]) -> None:
        for odd in sorted(set(said) - set(names)):
            raise TrustFileError(self.path, f"{where} says {odd!r}, which has no meaning")

    def publisher(self, name: str, said: Mapping[str, object]) -> Keys:
        self.known(f"publisher {name!r}", said, _PUBLISHER)
        return self._key_file(f"publisher {name!r}", said.get("keys"))

    def domain(
        self, name: str, said: Mapping[str, object], publishers: Iterable[str]
    ) -> tuple[str, DomainTrust]:
        where = f"domain {name!r}"
        self.known(where, said, _DOMAIN)
        allowed = self._publishers(where, said.get("publishers", []), publishers)
        terms = Terms(allowed, self._reach(where, said.get("reach", Reach.PUBLIC.value)))
        keys = said.get("keys")
        if keys in [one.value for one in KeyTrust]:
            return self._name(name), DomainTrust(KeyTrust(keys), terms)
        return self._name(name), DomainTrust(self._key_file(where, keys), terms)

    def _name(self, name: str) -> str:
        if name == ANY:
            return name
        try:
            return parse(f"domain://{name}").domain
        except BadUrlError as exc:
            raise TrustFileError(self.path, f"{name!r} is no domain such as b.example") from exc

    def _reach(self, where: str, said: object) -> Reach:
        words = [one.value for one in Reach]
        if said not in words:
            raise TrustFileError(self.path, f"{where}: reach is one of {', '.join(words)}")
        return Reach(said)

    def _publishers(self, where: str, said: object, known: Iterable[str]) -> frozenset[str]:
        if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
            raise TrustFileError(self.path, f"{where}: publishers is no list of names")
        for odd in sorted(set(said) - set(known)):
            raise TrustFileError(self.path, f"{where} allows {odd!r}, which [publishers] lacks")
        return frozenset(said)

    def _key_file(self, where: str, said: object) -> Keys:
        if not isinstance(said, str):
            raise TrustFileError(self.path, f"{where}: keys is missing, or no text")
        try:
            with (self.path.parent / said).open("rb") as file:
                return read_keys(file.read(JWKS_BYTES + 1))
        except OSError as exc:
            raise TrustFileError(self.path, f"{where}: {said} cannot be read") from exc
        except BadKeysError as exc:
            raise TrustFileError(self.path, f"{where}: {said} is {exc}") from exc
