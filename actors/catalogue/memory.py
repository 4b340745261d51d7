"""The memory of a runtime about catalogues, which prevents rollbacks (T14, T15, CAT-11).

It contains the newest descriptor of each address with its counter, the newest revocations of each
domain, and the keys that were trusted at first use. Texts are stored as they were signed, and are
verified again at each use. Packages are stored by their hash.
"""

import fcntl
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import attrs
import orjson
import trio
from typing_extensions import override

from actors.catalogue.errors import CatalogueFileError, RefusalError, refuse_if
from actors.catalogue.seal import flaw_of, known_revocations
from actors.catalogue.source import Source, package_path
from actors.kit.files import write_whole
from fsm.catalogue.descriptor import Seen
from specs.addresses.address import Entry, read_entry
from specs.descriptor import SourcePackage
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.limits.foreign_code import CATALOGUE_MEMORY_BYTES, PACKAGE_BYTES
from specs.limits.protocol import MAX_ID


@attrs.frozen
class Known:
    """The newest accepted descriptor of an address, with its counter."""

    seen: Seen
    text: str = attrs.field(repr=False)


@attrs.frozen
class Kept:
    """Everything that a catalogue client remembers about catalogues.

    Attributes:
        known: The newest descriptor of each address.
        revoked: Lists of revocations by domain, as they were signed.
        keys: Key sets by domain, as they were first published.
    """

    known: Mapping[Entry, Known] = attrs.field(factory=dict)
    revoked: Mapping[str, str] = attrs.field(factory=dict)
    keys: Mapping[str, str] = attrs.field(factory=dict)


class CatalogueStore:
    """Store of accepted descriptors that lasts until the process ends; packages are not kept."""

    def __init__(self) -> None:
        self._kept = Kept()

    async def load(self) -> Kept:
        """Return the whole memory.

        If cancelled, nothing has changed.

        Raises:
            ProtoflyError: The memory cannot be read; nothing can be trusted without it.
        """
        await trio.lowlevel.checkpoint()
        return self._kept

    async def save(self, kept: Kept) -> None:
        """Store the whole memory; a store in files outlives the process.

        If cancelled before the write begins, nothing is saved; a write that has begun is completed.

        Raises:
            ProtoflyError: The memory cannot be written.
        """
        self._kept = kept
        await trio.lowlevel.checkpoint()

    async def package(self, digest: str) -> bytes | None:  # noqa: ARG002 - used by subclasses
        """Return the stored package with a hash, which is computed again; None: not stored.

        If cancelled, nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        return None

    async def keep_package(self, digest: str, content: bytes) -> None:  # noqa: ARG002 - as above
        """Store a package by its SHA-256; a failure to store is ignored.

        If cancelled, the package may be kept.

        Args:
            digest: SHA-256, in hexadecimal digits.
            content: Bytes of the package.
        """
        await trio.lowlevel.checkpoint()


class FolderStore(CatalogueStore):
    """Store of accepted descriptors and packages in a folder, which outlives the process.

    Descriptors are in a JSON file, which is replaced as a whole at each change; concurrent changes
    of other processes are merged. Packages are files: the returned bytes are the ones whose hash
    was computed, as the file is read once.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path: Final = folder / "memory.json"
        self._packages: Final = folder / "packages"

    @override
    async def load(self) -> Kept:
        return await trio.to_thread.run_sync(self.read)

    @override
    async def save(self, kept: Kept) -> None:
        await trio.to_thread.run_sync(self._add, kept)

    @override
    async def package(self, digest: str) -> bytes | None:
        return await trio.to_thread.run_sync(self._read_package, digest)

    @override
    async def keep_package(self, digest: str, content: bytes) -> None:
        with suppress(OSError):
            await trio.to_thread.run_sync(write_whole, self._packages / digest, content)

    def _read_package(self, digest: str) -> bytes | None:
        try:
            with (self._packages / digest).open("rb") as file:
                content = file.read(PACKAGE_BYTES + 1)
        except OSError:
            return None
        return content if sha256(content).hexdigest() == digest else None

    def read(self) -> Kept:
        """Return the whole memory; block.

        Raises:
            CatalogueFileError: The memory cannot be read; nothing can be trusted without it.
        """
        try:
            with self.path.open("rb") as file:
                text = file.read(CATALOGUE_MEMORY_BYTES + 1)
        except FileNotFoundError:
            return Kept()
        except OSError as exc:
            raise CatalogueFileError(self.path, exc.strerror or "it cannot be read") from exc
        try:
            content: Json = orjson.loads(text)
            return _read(content)
        except (BadUrlError, TypeError, ValueError) as exc:
            reason = "it is damaged; restore it, or delete it if old descriptors may be taken again"
            raise CatalogueFileError(self.path, reason) from exc

    def _add(self, kept: Kept) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(f"{self.path.name}-lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._write(orjson.dumps(_to_json(_newest(self.read(), kept))))
        except OSError as exc:
            raise CatalogueFileError(self.path, exc.strerror or "it cannot be written") from exc

    def _write(self, text: bytes) -> None:
        if len(text) > CATALOGUE_MEMORY_BYTES:
            raise CatalogueFileError(self.path, f"it would have {len(text)} bytes; start a new one")
        write_whole(self.path, text)


async def fetched_package(store: CatalogueStore, source: Source, promised: SourcePackage) -> bytes:
    """Return the package that a verified descriptor promises, and store it.

    A kept package is verified like a fetched one, as its store may have changed it.

    If cancelled, the package may be kept.

    Args:
        store: Store of packages.
        source: Place of the catalogue.
        promised: The promised package.

    Raises:
        RefusalError: The package is not served, or is not the promised one.
    """
    stored = await store.package(promised.sha256)
    if stored is not None and flaw_of(promised, stored) is None:
        return stored
    content = await source.read(package_path(promised.sha256), PACKAGE_BYTES)
    refuse_if(flaw_of(promised, content))
    await store.keep_package(promised.sha256, content)
    return content


def _newest(old: Kept, new: Kept) -> Kept:
    """Merge two memories; counters never decrease."""
    known = dict(old.known)
    for entry, each in new.known.items():
        if entry not in known or known[entry].seen.counter <= each.seen.counter:
            known[entry] = each
    revoked = dict(old.revoked)
    for domain, text in new.revoked.items():
        if domain not in revoked or _counter(revoked[domain]) <= _counter(text):
            revoked[domain] = text
    return Kept(known, revoked, {**old.keys, **new.keys})


def _counter(text: str) -> int:
    """Return the counter of a list of revocations; 0 for an invalid text."""
    try:
        return known_revocations(text).counter
    except RefusalError:
        return 0


def _to_json(kept: Kept) -> JsonObject:
    known: JsonObject = {
        entry.address: {"counter": each.seen.counter, "digest": each.seen.digest, "text": each.text}
        for entry, each in kept.known.items()
    }
    return {"version": 1, "known": known, "revoked": {**kept.revoked}, "keys": {**kept.keys}}


def _read(content: Json) -> Kept:
    """Read a stored memory.

    Raises:
        TypeError: The content has another form.
    """
    match content:
        case {"version": 1, "known": dict(known), "revoked": dict(revoked), "keys": dict(keys)}:
            entries = {read_entry(address)[0]: _read_known(each) for address, each in known.items()}
            return Kept(entries, _texts(revoked), _texts(keys))
        case _:
            raise TypeError


def _read_known(fields: Json) -> Known:
    match fields:
        case {"counter": int(counter), "digest": str(digest), "text": str(text)} if (
            0 <= counter <= MAX_ID
        ):
            return Known(Seen(counter, digest), text)
        case _:
            raise TypeError


def _texts(values: JsonObject) -> dict[str, str]:
    return {name: text for name, text in values.items() if isinstance(text, str)}
