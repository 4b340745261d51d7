"""Read and build addresses, `scheme://domain/path` (ADR-01..09), and check public hosts (S15).

Inside the process an address is its canonical text, a plain `str`: routing compares texts and never
parses. `parse` is called once, when an address arrives; the other functions expect canonical text.

The checks of hosts protect this machine from addresses that a peer has chosen. A host is public if
it is global by every interpretation of its address; an IPv6 address that embeds an IPv4 address
(NAT64, 6to4, Teredo, mapped) is always refused: no domain is served there.
"""

import re
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

import attrs

from specs.errors import BadUrlError

RUNTIME_SCHEME: Final = "hyperty-runtime"
"""Canonical scheme of runtimes; `runtime` is its alias on the wire (C-37)."""

SCHEME_ALIASES: Final = {"runtime": RUNTIME_SCHEME}

_IDP_SCHEME: Final = "domain-idp"

BACKEND_SCHEMES: Final = frozenset({"domain", "global"})
"""Schemes of services that only message nodes provide (RES-01), as do all `domain-*` schemes."""

NO_OBJECT_SCHEMES: Final = frozenset(
    {"hyperty", RUNTIME_SCHEME, *SCHEME_ALIASES, "user", "hyperty-catalogue"}
)
"""Schemes of peers, users and descriptors; addresses of data objects have other schemes."""

SERVICE_HOSTS: Final = ("msg-node.", "registry.", "idm.", "qos.", "catalogue.")
"""Host prefixes that name a service of a domain, not a domain (ADR-04, ADR-09)."""

GLOBAL_REGISTRY: Final = "global://registry"
"""Address of the global registry, `GR`, which all domains share (CON-03)."""

MAX_ADDRESS: Final = 2048
"""Largest number of characters in one address. Source: the common limit of URL consumers."""

_NODE: Final = "domain://msg-node."
_HYPERTY: Final = "hyperty://"
INBOX: Final = "events"
"""Last segment of the address at which a hyperty receives events; an addition of this project."""

_EVENTS: Final = f"/{INBOX}"
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@#%-]+|[a-z][a-z0-9+.-]*:")


@attrs.frozen(slots=True)
class Url:
    """A parsed address.

    Attributes:
        scheme: The canonical scheme in lower case (`hyperty-runtime`, never `runtime`).
        domain: The authority in lower case; never empty.
        path: Segments after the authority, unchanged and not empty.
    """

    scheme: str
    domain: str
    path: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The canonical text, without a trailing slash."""
        return "/".join((f"{self.scheme}://{self.domain}", *self.path))


@lru_cache(maxsize=4096)
def parse(text: str) -> Url:
    """Split the text of an address, canonical or with accepted aliases, into its parts (N12).

    Raises:
        BadUrlError: The text is no address.
    """
    if len(text) > MAX_ADDRESS:
        raise BadUrlError(text[:40] + "...", f"longer than {MAX_ADDRESS} characters")
    scheme, separator, rest = text.partition("://")
    if not text.isascii():
        raise BadUrlError(text, "has characters beyond ASCII")
    scheme = scheme.lower()
    if not separator or not _SCHEME.fullmatch(scheme):
        raise BadUrlError(text, "no scheme such as hyperty:// in front")
    domain, *path = rest.removesuffix("/").split("/")
    domain = domain.lower()
    if not _DOMAIN.fullmatch(domain) or ".." in domain:
        raise BadUrlError(text, "no plain domain name behind ://")
    for segment in path:
        _check_segment(text, segment)
    return Url(SCHEME_ALIASES.get(scheme, scheme), domain, tuple(path))


def _check_segment(text: str, segment: str) -> None:
    if not _SEGMENT.fullmatch(segment):
        raise BadUrlError(text, f"path segment {segment!r} is empty or has odd characters")
    if segment in {".", ".."}:
        raise BadUrlError(text, "dot segments are not resolved")


def canonical(text: str) -> str:
    """Return the canonical text of an address.

    Raises:
        BadUrlError: The text is no address.
    """
    return parse(text).text


def scheme_of(address: str) -> str:
    """Return the scheme of a canonical address."""
    return address.partition("://")[0]


def host_of(address: str) -> str:
    """Return the authority of a canonical address, service prefixes included."""
    return address.partition("://")[2].partition("/")[0]


@lru_cache(maxsize=4096)
def domain_of(address: str) -> str:
    """Return the domain that serves a canonical address.

    `domain://msg-node.a.ex/sm` and `hyperty://a.ex/1` are both of `a.ex`.
    """
    host = host_of(address)
    if is_backend(address):
        for prefix in SERVICE_HOSTS:
            if host.startswith(prefix):
                return host.removeprefix(prefix)
    return host


def is_backend(address: str) -> bool:
    """Return whether messages to the address must go to a message node, never a peer (RES-01)."""
    scheme = scheme_of(address)
    return scheme in BACKEND_SCHEMES or scheme.startswith("domain-")


def is_below(address: str, root: str) -> bool:
    """Return whether an address equals `root`, or begins with `root` and a slash (ADR-08)."""
    return address == root or address.startswith(root + "/")


def last_segment(address: str) -> str:
    """Return the text after the last slash of a canonical address."""
    return address.rpartition("/")[2]


def is_inbox(address: str) -> bool:
    """Return whether an address is the inbox of a hyperty, at which the hyperty receives events."""
    return address.startswith(_HYPERTY) and address.endswith(_EVENTS)


def inbox_of(hyperty: str) -> str:
    """Return the address at which a hyperty receives events; such an address is returned as is."""
    return hyperty if is_inbox(hyperty) else f"{hyperty}{_EVENTS}"


def status_of(address: str) -> str:
    """Return the address to which status events of a stub or data object are sent (ADR-06)."""
    return f"{address}/status"


def runtime(domain: str, name: str) -> str:
    """Return the address of the runtime with a name in a domain (`R` in the protocol pages)."""
    return canonical(f"{RUNTIME_SCHEME}://{domain}/{name}")


def domain_name(text: str) -> str:
    """Check the name of a domain, and return the name in lower case.

    Raises:
        BadUrlError: The text is no name of a domain.
    """
    try:
        url = parse(f"domain://{text}")
    except BadUrlError as exc:
        raise BadUrlError(text, "it is no domain name such as a.example") from exc
    if url.path:
        raise BadUrlError(text, "it is no domain name such as a.example")
    return url.domain


def runtime_name(text: str) -> str:
    """Check the name of a runtime, and return the name unchanged.

    Raises:
        BadUrlError: The text cannot be part of a runtime's address.
    """
    try:
        is_name = parse(runtime("a.example", text)).path == (text,)
    except BadUrlError:
        is_name = False
    if not is_name:
        raise BadUrlError(text, "it is no name of a runtime such as alice")
    return text


def runtime_of(address: str) -> str:
    """Return the address of the runtime that a component or stub belongs to.

    The first path segment names the runtime: `R/registry` belongs to `R`.
    """
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{'/'.join(rest.split('/')[:2])}"


def message_node(domain: str) -> str:
    """Return the address of a domain's message node, `MN(d)`."""
    return f"domain://msg-node.{domain}"


@lru_cache(maxsize=4096)
def is_node(address: str) -> bool:
    """Return whether a canonical address is a message node itself, not a component of the node."""
    return address.startswith(_NODE) and address.count("/") == _NODE.count("/")


def subscription_manager(domain: str) -> str:
    """Return the address of the subscription manager of a domain's node, `MN(d)/sm`.

    Runtimes ask there for messages to certain addresses to be delivered to them.
    """
    return f"{message_node(domain)}/sm"


def address_allocation(domain: str) -> str:
    """Return the address of the service that allocates addresses of a domain (N16)."""
    return f"{message_node(domain)}/address-allocation"


def session_manager(domain: str) -> str:
    """Return the address of the service of a domain's node that opens sessions (M-14)."""
    return f"{message_node(domain)}/session"


def domain_registry(domain: str) -> str:
    """Return the address of a domain's registry, `DR(d)`."""
    return f"domain://registry.{domain}"


def identity_manager(domain: str) -> str:
    """Return the address of the service that validates identities for a domain (CON-01, C-59)."""
    return f"domain://idm.{domain}"


def quality_broker(domain: str) -> str:
    """Return the address of the service that reserves network resources (CON-04, C-60)."""
    return f"domain://qos.{domain}"


def policy_manager(domain: str) -> str:
    """Return the address of the service that manages the policies of a domain's node (POL-05)."""
    return f"{message_node(domain)}/policy"


def push_manager(domain: str) -> str:
    """Return the address of the service that registers and wakes devices of users (PFY-09)."""
    return f"{message_node(domain)}/push"


def catalogue_stub(domain: str) -> str:
    """Return the catalogue address of the stub that connects to a domain's node (ADR-09)."""
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/protocolstub/default"


def idp_proxy(domain: str) -> str:
    """Return the address of the identity provider of a domain (M-55, C-59)."""
    return f"{_IDP_SCHEME}://{domain}"


def is_idp_proxy(address: str) -> bool:
    """Return whether an address is that of an identity provider, to which a special stub leads."""
    return scheme_of(address) == _IDP_SCHEME


def catalogue_idp(domain: str) -> str:
    """Return the catalogue address of the stub of a domain's identity provider (CAT-06)."""
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/idp-proxy/default"


# ---- hosts


_EMBEDDING: Final = tuple(
    IPv6Network(text)
    for text in (
        "::/96",
        "::ffff:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
    )
)
"""IPv6 networks that embed an IPv4 address (RFC 3056, 4291, 4380, 6052, 8215)."""

_LOCAL_NAMES: Final = ("localhost", "local", "internal", "home.arpa")
"""Host names, and endings of names, that are valid in a local network only (RFC 6761, 6762)."""


def is_public_address(text: str) -> bool:
    """Return whether a text is a numeric address of the public internet; a name is not."""
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and (
        address.is_site_local or any(address in each for each in _EMBEDDING)
    ):
        return False
    return address.is_global and not address.is_multicast


def is_public_host(host: str) -> bool:
    """Return whether a host, by its text, may be public; the addresses of a name must be checked.

    A numeric host must be a public address; a name must contain a dot and not be a local one.
    """
    name = host.rstrip(".").lower()
    if not name or any(name == each or name.endswith(f".{each}") for each in _LOCAL_NAMES):
        return False
    if is_numeric(name):
        return is_public_address(name)
    return "." in name


def is_numeric(name: str) -> bool:
    """Return whether some resolver reads a host as a number, such as `127.1` or `0x7f000001`."""
    last = name.rpartition(".")[2]
    return ":" in name or last.isdecimal() or last.startswith("0x")


_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.~-]+)?)\]|([^\[\]:]*))(?::[0-9]*)?")


def host_in_authority(authority: str) -> str:
    """Return the host of `host:port` in lower case; empty if the text has another form.

    Brackets must contain the whole host, an IPv6 address: `[::1].example` is no host.
    """
    match = _AUTHORITY.fullmatch(authority)
    return "" if match is None else (match[1] or match[2]).lower()


def host_in(url: str) -> str | None:
    """Return the host of a URL, or None if it has none."""
    try:
        authority = urlsplit(url).netloc
    except ValueError:
        return None
    return host_in_authority(authority.rpartition("@")[2]) or None


# Addresses of descriptors: `hyperty-catalogue://catalogue.<d>/.well-known/<type>/<name>`.

WELL_KNOWN: Final = ".well-known"
"""First segment of every path of a catalogue (RFC 8615)."""

DOMAIN_KEYS: Final = f"{WELL_KNOWN}/actors.json"
"""Path of the public keys of the domain, a JSON Web Key Set (T12)."""

REVOKED: Final = f"{WELL_KNOWN}/actors-revoked.jws"
"""Path of the signed list of revocations of the domain (T14)."""

_DESCRIPTOR_SCHEME: Final = "hyperty-catalogue"
_HOST: Final = "catalogue."
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


class CatalogueType(StrEnum):
    """Kinds of descriptors in a catalogue, as they are written in addresses of a catalogue."""

    HYPERTY = "hyperty"
    STUB = "protocolstub"
    RUNTIME = "runtime"
    SCHEMA = "dataschema"
    IDP_PROXY = "idp-proxy"


_OTHER_STUBS: Final = frozenset({"default", "P2PHandler"})
_TYPES: Final = {**{str(each): each for each in CatalogueType}, "protostub": CatalogueType.STUB}


@attrs.frozen(slots=True, order=True)
class Entry:
    """The parts of the address of a descriptor in the catalogue of a domain.

    Attributes:
        domain: The domain, without `catalogue.`.
        type: The kind of the descriptor.
        name: The name of the descriptor, unique among those of its kind.
    """

    domain: str
    type: CatalogueType
    name: str

    @property
    def address(self) -> str:
        """The canonical address of the descriptor."""
        return f"{_DESCRIPTOR_SCHEME}://{_HOST}{self.domain}/{self.path}"

    @property
    def path(self) -> str:
        """The path of the descriptor below the root of the catalogue."""
        return f"{WELL_KNOWN}/{self.type}/{self.name}"

    @property
    def described(self) -> str:
        """A phrase for people that names kind, name and domain of the descriptor."""
        return f"the {self.type} {self.name!r} of {self.domain}"


def is_entry_name(text: str) -> bool:
    """Return whether a text can be the name of a descriptor, and so of its file."""
    return _NAME.fullmatch(text) is not None


def entry_at(domain: str, kind: str, name: str) -> Entry | None:
    """Return the catalogue entry for the kind and name in a path, or None if they are invalid."""
    known = _TYPES.get(kind)
    if known is None or not is_entry_name(name):
        return None
    return Entry(domain, known, name)


def read_entry(text: str) -> tuple[Entry, str | None]:
    """Read a catalogue address; return the entry, and the attribute if the address names one.

    Raises:
        BadUrlError: The text is no address of a catalogue.
    """
    url = parse(text)
    root, *rest = url.path or ("",)
    domain = url.domain.removeprefix(_HOST)
    entry = entry_at(domain, rest[0], rest[1]) if len(rest) in {2, 3} else None
    attribute = rest[2] if entry is not None and len(rest) > 2 else None  # noqa: PLR2004 - the third
    if url.scheme != _DESCRIPTOR_SCHEME or root != WELL_KNOWN or entry is None or not domain:
        raise BadUrlError(
            text, f"it is not of the form {_DESCRIPTOR_SCHEME}://{_HOST}DOMAIN/.well-known/..."
        )
    if attribute is not None and not _ATTRIBUTE.fullmatch(attribute):
        raise BadUrlError(text, f"{attribute!r} is no attribute of a descriptor")
    return entry, attribute


def is_other_stub(address: str) -> bool:
    """Return whether the descriptor at a catalogue address is certainly no P2P requester stub.

    That is certain for descriptors of other kinds than stubs, for the stub of a domain's node
    (ADR-09), and for the P2P handler stub. For other stubs the descriptor must be read.
    """
    try:
        entry, _ = read_entry(address)
    except BadUrlError:
        return False
    return entry.type is not CatalogueType.STUB or entry.name in _OTHER_STUBS
