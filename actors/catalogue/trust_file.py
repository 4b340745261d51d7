"""The trust file: a TOML file that the operator of a runtime writes (T12, T13).

    [domains."b.example"]
    keys = "b.jwks.json"          # or "published", or "first-use"
    publishers = ["acme"]         # publishers whose code is accepted; default: none
    reach = "anywhere"            # also hosts in private networks; default: "public"
    statements = "b.domain.json"  # keys of its statements about its runtimes

    [publishers.acme]
    keys = "acme.jwks.json"

    [[issuer]]                    # an identity provider that is trusted about peers
    name = "https://idp.example"  # as its tokens name it (`iss`)
    keys = "idp.jwks.json"        # or an https URL; each issuer has a set of its own
    audience = ["a.example"]      # default: the domain of the peer, or that domain's node
    clients = ["my-app"]          # to which its tokens were issued (`azp`); default: the audience

Domain `*` stands for all other domains; it has no `statements`, whose keys would sign for each of
them. Key files are relative to the folder of the trust file.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import attrs

from actors.catalogue.errors import TrustFileError
from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.kit.arguments import PathInput, as_path
from actors.kit.files import check_names, errors_of, read_toml
from actors.kit.http_client import HttpUrlError, ServerUrl
from fsm.catalogue.descriptor import Reach, Terms
from specs.addresses.address import parse
from specs.errors import BadUrlError
from specs.limits.node import JWKS_BYTES
from transports.urls import is_plain

ANY: Final = "*"
"""Name of the entry for all domains that are not named."""

_DOMAIN: Final = frozenset({"keys", "publishers", "reach", "statements"})
_PUBLISHER: Final = frozenset({"keys"})
_ISSUER: Final = frozenset({"name", "keys", "audience", "clients"})
_SHARED: Final = (
    "another issuer has the same set, and could sign for this one; give each a set of its own, or "
    "name in the file the issuer beside each key ('iss')"
)
_NO_KEYS: Final[Mapping[str, Keys]] = MappingProxyType({})


class KeyTrust(Enum):
    """Ways to get the keys of a domain for which no key file is configured."""

    PUBLISHED = "published"
    FIRST_USE = "first-use"


@attrs.frozen
class DomainTrust:
    """Trust settings for one domain: its keys and permissions.

    Attributes:
        keys: Keys of its descriptors, or their source.
        terms: Publishers and network addresses that its descriptors may name.
        statements: Keys of its statements about its runtimes; empty: the keys in its descriptor,
            or of its node.
    """

    keys: Keys | KeyTrust
    terms: Terms = attrs.field(factory=Terms)
    statements: Keys = attrs.field(factory=lambda: MappingProxyType({}))


@attrs.frozen
class IssuerTrust:
    """Trust settings for one identity provider: its keys and accepted tokens.

    Attributes:
        keys: Its keys, or the URL of its key set.
        audience: Accepted audiences of its tokens; empty: the domain of the peer.
        clients: Clients to which its tokens may be issued, besides the audience.
    """

    keys: Keys | ServerUrl
    audience: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()


_NO_ISSUERS: Final[Mapping[str, IssuerTrust]] = MappingProxyType({})


@final
@attrs.frozen
class Trust:
    """All trust settings of a runtime, for domains, publishers and identity providers.

    Attributes:
        domains: The trust in each domain, by name; `ANY` for all others.
        publishers: Keys of the publishers whose code may run, by name of the publisher.
        issuers: Trusted identity providers for tokens of peers, by name.
    """

    domains: Mapping[str, DomainTrust]
    publishers: Mapping[str, Keys] = _NO_KEYS
    issuers: Mapping[str, IssuerTrust] = _NO_ISSUERS

    def of(self, domain: str) -> DomainTrust | None:
        """Return the trust in a domain; None: the domain is not trusted."""
        return self.domains.get(domain) or self.domains.get(ANY)


def read_trust(path: PathInput) -> Trust:
    """Read a trust file and the key files that it names. Block.

    Args:
        path: Path of the trust file.

    Raises:
        TypeError: The path is of a wrong kind.
        TrustFileError: A file cannot be read, or the trust file has unknown or wrong entries.
    """
    path = as_path(path, "the trust file")
    with errors_of(path, TrustFileError):
        return _Reader(path.parent).trust(read_toml(path.read_text()))


@attrs.frozen
class _Reader:
    """Read the parts of one trust file; the methods raise `ValueError` or `TypeError` for errors.

    Attributes:
        folder: Folder of the file, for relative paths of key files.
    """

    folder: Path

    def trust(self, content: Mapping[str, object]) -> Trust:
        check_names("the file", content, {"domains", "publishers", "issuer"})
        publishers: dict[str, Keys] = {}
        for name, entry in self._tables(content, "publishers"):
            where = f"publisher {name!r}"
            check_names(where, entry, _PUBLISHER)
            publishers[name] = self._key_file(where, entry.get("keys"))
        domains: dict[str, DomainTrust] = {}
        for written, entry in self._tables(content, "domains"):
            name, trust = self._domain(written, entry, publishers)
            if name in domains:
                raise ValueError(f"domain {name!r} stands there twice")
            domains[name] = trust
        issuers = MappingProxyType(dict(self._issuers(content)))
        return Trust(MappingProxyType(domains), MappingProxyType(publishers), issuers)

    def _tables(
        self, content: Mapping[str, object], name: str
    ) -> Iterable[tuple[str, Mapping[str, object]]]:
        table = content.get(name, {})
        if not isinstance(table, dict):
            raise TypeError(f"{name!r} is no table")
        for key, value in table.items():
            if not isinstance(value, dict):
                raise TypeError(f"[{name}.{key!r}] is no table")
            yield str(key), value

    def _domain(
        self, name: str, entry: Mapping[str, object], publishers: Iterable[str]
    ) -> tuple[str, DomainTrust]:
        where = f"domain {name!r}"
        check_names(where, entry, _DOMAIN)
        allowed = self._publishers(where, entry.get("publishers", []), publishers)
        reach, choices = entry.get("reach", Reach.PUBLIC.value), [each.value for each in Reach]
        if reach not in choices:
            raise ValueError(f"{where}: reach is one of {', '.join(choices)}")
        keys, key_file = entry.get("keys"), entry.get("statements")
        if key_file is not None and name == ANY:
            why = "statements belong to one domain: their keys would speak for all others"
            raise ValueError(f"{where}: {why}")
        is_found = keys in [each.value for each in KeyTrust]
        trust = KeyTrust(keys) if is_found else self._key_file(where, keys)
        statements: Keys = {} if key_file is None else self._key_file(where, key_file)
        return _domain_name(name), DomainTrust(trust, Terms(allowed, Reach(reach)), statements)

    def _issuers(self, content: Mapping[str, object]) -> Iterable[tuple[str, IssuerTrust]]:
        entries = content.get("issuer", [])
        if not isinstance(entries, list):
            raise TypeError("'issuer' is no list of tables such as [[issuer]]")
        names: set[str] = set()
        for entry in entries:
            name = _name_of(entry)
            if not isinstance(entry, dict) or not isinstance(name, str) or not name:
                raise ValueError("an [[issuer]] has no name, or one that is no text")
            if name in names:
                raise ValueError(f"issuer {name!r} stands there twice")
            names.add(name)
            others = [each for each in entries if _name_of(each) != name]
            is_shared = self._place(entry) in map(self._place, others)
            yield name, self._issuer(name, entry, is_shared=is_shared)

    def _place(self, entry: object) -> str:
        """Return the location of an issuer's keys in one spelling, to compare locations."""
        keys = entry.get("keys") if isinstance(entry, dict) else None
        is_file = isinstance(keys, str) and "://" not in keys
        return str((self.folder / str(keys)).resolve()) if is_file else str(keys)

    def _issuer(self, name: str, entry: Mapping[str, object], *, is_shared: bool) -> IssuerTrust:
        where, keys = f"issuer {name!r}", entry.get("keys")
        check_names(where, entry, _ISSUER)
        issuer_keys: Keys | ServerUrl
        if isinstance(keys, str) and "://" in keys:
            if is_shared:
                raise ValueError(f"{where}: {_SHARED}")
            issuer_keys = _url(where, keys)
        else:
            issuer_keys = _own_keys(name, self._key_file(where, keys), is_shared=is_shared)
        audience, clients = (_texts(where, each, entry) for each in ("audience", "clients"))
        return IssuerTrust(issuer_keys, audience, clients)

    def _publishers(self, where: str, names: object, known: Iterable[str]) -> frozenset[str]:
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError(f"{where}: publishers is no list of names")
        for unknown in sorted(set(names) - set(known)):
            raise ValueError(f"{where} allows {unknown!r}, which [publishers] lacks")
        return frozenset(names)

    def _key_file(self, where: str, file_name: object) -> Keys:
        if not isinstance(file_name, str):
            raise TypeError(f"{where}: keys is missing, or no text")
        try:
            with (self.folder / file_name).open("rb") as file:
                return read_keys(file.read(JWKS_BYTES + 1), str(self.folder / file_name))
        except OSError as exc:
            raise ValueError(f"{where}: {file_name} cannot be read") from exc
        except BadKeysError as exc:
            raise ValueError(f"{where}: {file_name} is {exc}") from exc


def _own_keys(name: str, keys: Keys, *, is_shared: bool) -> Keys:
    """Return the keys of a set that verify tokens of an issuer; refuse a key without an issuer."""
    if is_shared and any(key.issuer is None for key in keys.values()):
        raise ValueError(f"issuer {name!r}: {_SHARED}")
    own = {kid: key for kid, key in keys.items() if key.is_of(name, is_shared=is_shared)}
    if not own:
        raise ValueError(f"issuer {name!r}: no key of its set is its own")
    return MappingProxyType(own)


def _url(where: str, text: str) -> ServerUrl:
    try:
        url = ServerUrl.read(text)
    except HttpUrlError as exc:
        raise ValueError(f"{where}: {exc}") from exc
    if is_plain(url.text):
        why = "keys come by https, or from this machine"
        raise ValueError(f"{where}: {text} cannot be used: {why}")
    return url


def _texts(where: str, name: str, entry: Mapping[str, object]) -> frozenset[str]:
    value = entry.get(name, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{where}: {name} is no list of texts")
    return frozenset(texts)


def _domain_name(name: str) -> str:
    if name == ANY:
        return name
    try:
        return parse(f"domain://{name}").domain
    except BadUrlError as exc:
        raise ValueError(f"{name!r} is no domain such as b.example") from exc


def _name_of(entry: object) -> object:
    return entry.get("name") if isinstance(entry, dict) else None
