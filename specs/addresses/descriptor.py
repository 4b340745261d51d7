"""Places of descriptors: `hyperty-catalogue://catalogue.<d>/.well-known/<type>/<name>`.

ADR-09, CAT-09, C-39. The host may be written without `catalogue.`, and the type of stubs
as `protostub`; neither spelling is ever passed on.
"""

import re
from enum import StrEnum, unique
from typing import Final, final

import attrs

from specs.addresses.address import parse
from specs.errors import BadUrlError

WELL_KNOWN: Final = ".well-known"
"""First segment of every path of a catalogue (RFC 8615)."""

DOMAIN_KEYS: Final = f"{WELL_KNOWN}/actors.json"
"""Path of the public keys of the domain, a JSON Web Key Set (T12)."""

REVOKED: Final = f"{WELL_KNOWN}/actors-revoked.jws"
"""Path of the signed list of revocations of the domain (T14)."""

_SCHEME: Final = "hyperty-catalogue"
_HOST: Final = "catalogue."
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


@final
@unique
class CatalogueType(StrEnum):
    """The kind of a descriptor."""

    HYPERTY = "hyperty"
    STUB = "protocolstub"
    RUNTIME = "runtime"
    SCHEMA = "dataschema"
    IDP_PROXY = "idp-proxy"


_OTHER_STUBS: Final = frozenset({"default", "P2PHandler"})
_TYPES: Final = {**{str(one): one for one in CatalogueType}, "protostub": CatalogueType.STUB}


@final
@attrs.frozen(slots=True, order=True)
class Entry:
    """A place in the catalogue of a domain.

    Attributes:
        domain: The domain, without `catalogue.`.
        type: What is described there.
        name: Its name among those of its type.
    """

    domain: str
    type: CatalogueType
    name: str

    @property
    def address(self) -> str:
        """The address, as it is written canonically."""
        return f"{_SCHEME}://{_HOST}{self.domain}/{self.path}"

    @property
    def path(self) -> str:
        """The path below the root of the catalogue."""
        return f"{WELL_KNOWN}/{self.type}/{self.name}"

    @property
    def described(self) -> str:
        """The name in a sentence."""
        return f"the {self.type} {self.name!r} of {self.domain}"


def is_entry_name(text: str) -> bool:
    """Return whether something can be the name of an entry, and of a file."""
    return _NAME.fullmatch(text) is not None


def entry_at(domain: str, kind: str, name: str) -> Entry | None:
    """Return the entry at a path of a domain's catalogue; None: there can be none."""
    known = _TYPES.get(kind)
    if known is None or not is_entry_name(name):
        return None
    return Entry(domain, known, name)


def read_entry(text: str) -> tuple[Entry, str | None]:
    """Read the address of an entry, and the attribute of it if one is named.

    Raises:
        BadUrlError: It is no address of a catalogue.
    """
    url = parse(text)
    where, *rest = url.path or ("",)
    domain = url.domain.removeprefix(_HOST)
    entry = entry_at(domain, rest[0], rest[1]) if len(rest) in {2, 3} else None
    attribute = rest[2] if entry is not None and len(rest) > 2 else None  # noqa: PLR2004 - the third
    if url.scheme != _SCHEME or where != WELL_KNOWN or entry is None or not domain:
        raise BadUrlError(text, f"it is not of the form {_SCHEME}://{_HOST}DOMAIN/.well-known/...")
    if attribute is not None and not _ATTRIBUTE.fullmatch(attribute):
        raise BadUrlError(text, f"{attribute!r} is no attribute of a descriptor")
    return entry, attribute


def is_other_stub(address: str) -> bool:
    """Return whether a catalogue address is known to be of something else than a P2P requester.

    That is known of what is no stub, of the stub of a domain's node (ADR-09), and of the
    P2P handler. Any other address may be one: its descriptor says.
    """
    try:
        entry, _ = read_entry(address)
    except BadUrlError:
        return False
    return entry.type is not CatalogueType.STUB or entry.name in _OTHER_STUBS
