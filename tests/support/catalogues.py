"""Catalogues that tests make: domains, publishers, and what is wrong with what they sign."""

import time
from hashlib import sha256
from pathlib import Path

import attrs
import orjson
import trio

from actors.catalogue.archive import pack
from actors.catalogue.client import CatalogueClient
from actors.catalogue.errors import SourceAwayError
from actors.catalogue.memory import CatalogueStore
from actors.catalogue.publishing import (
    describe_package,
    revocation_list,
    seal_content,
    signed_draft,
)
from actors.catalogue.seal import SealType
from actors.catalogue.source import MemorySource, Places, Source, package_path
from actors.catalogue.trust_file import DomainTrust, Trust
from actors.keys.key_set import read_keys
from actors.keys.signing import SigningKey, make_key
from fsm.catalogue.descriptor import Here, Level, Reach, Terms
from fsm.machine_list import fingerprint
from fsm.machines.stub_connection import STUB_CONNECTION
from specs.addresses.address import DOMAIN_KEYS, REVOKED, CatalogueType, Entry
from specs.descriptor import Revoked

B = "b.ex"
STUB_B = Entry(B, CatalogueType.STUB, "default")
DAY = 86_400
MACHINE = fingerprint(STUB_CONNECTION)
NODE_B = "wss://node.b.ex/link"
HERE = Here(frozenset({"websocket"}), frozenset({MACHINE}), frozenset(Level))
SOURCES = {"stub.py": "def activate(context):\n    raise SystemExit('this must never run')\n"}
ENTRY_POINT = "stub:activate"


def key_set(*keys: SigningKey) -> bytes:
    return orjson.dumps({"keys": [key.public() for key in keys]})


def keys_of(*keys: SigningKey):
    return read_keys(key_set(*keys))


def sources(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Write the sources of a package."""
    for name, text in (SOURCES if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


class AwaySource(Source):
    """A catalogue that nobody reaches."""

    proves_domain = True

    def __init__(self, name: str) -> None:
        self.name = name

    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        raise SourceAwayError(self.name, "nobody is there")

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@attrs.define
class Publishing:
    """A domain that publishes, and a publisher whose code it offers.

    Attributes:
        files: What its catalogue serves, by path.
        now: Seconds since the epoch, for what it signs.
        is_away: Whether its catalogue cannot be read.
    """

    domain: str = B
    key: SigningKey = attrs.field(factory=lambda: make_key("EdDSA", "domain"))
    acme: SigningKey = attrs.field(factory=lambda: make_key("EdDSA", "acme-1"))
    files: dict[str, bytes] = attrs.field(factory=dict)
    now: int = attrs.field(factory=lambda: int(time.time_ns() / 1e9))
    is_away: bool = False

    def __attrs_post_init__(self) -> None:
        self.files[DOMAIN_KEYS] = key_set(self.key)

    @property
    def entry(self) -> Entry:
        return Entry(self.domain, CatalogueType.STUB, "default")

    def draft(self, **more):
        common = {"version": "1", "counter": 1, "expires": self.now + DAY}
        return {**common, **more}

    def profile(self, endpoint=NODE_B, **more):
        said = {"stub": "websocket", "endpoint": endpoint}
        return self.draft(profile=said, **more)

    def offers(self, **more) -> None:
        """Publish a profile, signed as it should be."""
        self.serves(self.profile(**more))

    def serves(self, draft, key=None) -> str:
        text = signed_draft(self.entry, draft, key or self.key)
        self.files[self.entry.path] = text.encode()
        return text

    def describes(self, kind: CatalogueType, name: str, **fields) -> str:
        """Publish a descriptor of any type and name; return its catalogue address."""
        entry = Entry(self.domain, kind, name)
        text = signed_draft(entry, self.draft(**fields), self.key)
        self.files[entry.path] = text.encode()
        return entry.address

    def serves_raw(self, text: str | bytes) -> None:
        self.files[self.entry.path] = text.encode() if isinstance(text, str) else text

    def code(self, archive: bytes, **more):
        """Describe a package, and serve it."""
        said = describe_package(self.entry, archive, ENTRY_POINT, "acme", self.acme)
        self.files[package_path(sha256(archive).hexdigest())] = archive
        ours = {"machine": MACHINE, "endpoints": [NODE_B], "language": "python"}
        return self.draft(**ours, **said, **more)

    def revokes(self, *revoked: Revoked, counter=1, life=DAY, key=None) -> None:
        text = revocation_list(self.domain, counter, self.now + life, revoked, key or self.key)
        self.files[REVOKED] = text.encode()

    def as_listed(self, content, kind=SealType.DESCRIPTOR) -> str:
        """Sign anything."""
        return seal_content(content, kind, self.key)

    def trust(self, reach=Reach.PUBLIC, publishers=(), keys=None) -> Trust:
        said = DomainTrust(
            keys_of(self.key) if keys is None else keys, Terms(frozenset(publishers), reach)
        )
        return Trust({self.domain: said}, {"acme": keys_of(self.acme)})

    def source(self, _domain: str = B) -> Source:
        name = f"memory:{self.domain}"
        return AwaySource(name) if self.is_away else MemorySource(name, self.files)

    @property
    def places(self) -> Places:
        return Places({self.domain: self.source})


def archive_of(folder: Path, files: dict[str, str] | None = None) -> bytes:
    return pack(sources(folder, files))


def noise(size: int) -> dict[str, str]:
    """Return sources that have some more bytes than this once they are packed, by a tenth."""
    digest, files = b"", dict(SOURCES)
    for number in range(1 + size // 40_000):
        lines = []
        for _ in range(1000):
            digest = sha256(digest).digest()
            lines.append(f"# {digest.hex()}")
        files[f"m{number}.py"] = "\n".join(lines)
    return files


def client_of(publishing: Publishing, trust: Trust | None = None, memory=None, here=HERE):
    shelf = CatalogueStore() if memory is None else memory
    trusted = publishing.trust() if trust is None else trust
    return CatalogueClient(publishing.places, trusted, here, shelf, Wall(publishing).offset)


@attrs.frozen
class Wall:
    """The clock on the wall of a test, which begins when the publishing says."""

    publishing: Publishing

    @property
    def offset(self) -> float:
        return self.publishing.now - trio.current_time()
