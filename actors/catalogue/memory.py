"""The memory of a runtime about catalogues, so that nothing is rolled back (T14, CAT-11).

It has the newest descriptor of each address with its counter, the newest revocations of each
domain, and the keys that were trusted at first use. Texts are kept as they were signed, and are
verified again each time they are used.
"""

import fcntl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

import attrs
import orjson
import trio
from typing_extensions import override

from actors.catalogue.errors import CatalogueFileError
from actors.catalogue.package.opening import known_revocations
from actors.catalogue.package_store import write_whole
from actors.catalogue.refusals import RefusalError
from fsm.catalogue.descriptor_io import Seen
from specs.addresses.descriptor import Entry, read_entry
from specs.errors import BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.limits.catalogue import CATALOGUE_MEMORY_BYTES
from specs.limits.protocol import MAX_ID

__all__ = ["CatalogueMemory", "FileMemory", "Kept", "Known", "VolatileMemory"]

_VERSION: Final = 1


@final
@attrs.frozen
class Known:
    """The newest descriptor of an address.

    Attributes:
        seen: Its counter and hash.
        text: Its text, as it was signed.
    """

    seen: Seen
    text: str = attrs.field(repr=False)


@final
@attrs.frozen
class Kept:
    """All that is remembered.

    Attributes:
        known: Descriptors by address.
        revoked: Lists of revocations by domain, as they were signed.
        keys: Key sets by domain, as they were first published.
    """

    known: Mapping[Entry, Known] = attrs.field(factory=dict)
    revoked: Mapping[str, str] = attrs.field(factory=dict)
    keys: Mapping[str, str] = attrs.field(factory=dict)


class CatalogueMemory(ABC):
    """Remembers what was accepted of catalogues."""

    @abstractmethod
    async def load(self) -> Kept:
        """Return all that is remembered.

        If cancelled, nothing has changed.

        Raises:
            CatalogueFileError: It cannot be read; nothing can be trusted without it.
        """

    @abstractmethod
    async def save(self, kept: Kept) -> None:
        """Remember all this; on return it outlives the process.

        If cancelled before the write begins, nothing is saved; a write that has begun is completed.

        Raises:
            CatalogueFileError: It cannot be written.
        """


@final
class VolatileMemory(CatalogueMemory):
    """Remembers until the process ends, for runtimes without a file."""

    def __init__(self) -> None:
        self._kept = Kept()

    @override
    async def load(self) -> Kept:
        await trio.lowlevel.checkpoint()
        return self._kept

    @override
    async def save(self, kept: Kept) -> None:
        self._kept = kept
        await trio.lowlevel.checkpoint()


@final
class FileMemory(CatalogueMemory):
    """Remembers in a JSON file, which is replaced as a whole at each change.

    What another process has stored there meanwhile is kept.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    @override
    async def load(self) -> Kept:
        return await trio.to_thread.run_sync(self.read)

    def read(self) -> Kept:
        """Return all that is remembered; blocks.

        Raises:
            CatalogueFileError: It cannot be read; nothing can be trusted without it.
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
        except (orjson.JSONDecodeError, BadUrlError, TypeError, KeyError, ValueError) as exc:
            reason = "it is damaged; restore it, or delete it if old descriptors may be taken again"
            raise CatalogueFileError(self.path, reason) from exc

    @override
    async def save(self, kept: Kept) -> None:
        await trio.to_thread.run_sync(self._add, kept)

    def _add(self, kept: Kept) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(f"{self.path.name}-lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._write(orjson.dumps(_written(_newest(self.read(), kept))))
        except OSError as exc:
            raise CatalogueFileError(self.path, exc.strerror or "it cannot be written") from exc

    def _write(self, text: bytes) -> None:
        if len(text) > CATALOGUE_MEMORY_BYTES:
            raise CatalogueFileError(self.path, f"it would have {len(text)} bytes; start a new one")
        write_whole(self.path, text)


def _newest(old: Kept, new: Kept) -> Kept:
    """Merge two memories; no counter goes back."""
    known = dict(old.known)
    for entry, one in new.known.items():
        if entry not in known or known[entry].seen.counter <= one.seen.counter:
            known[entry] = one
    revoked = dict(old.revoked)
    for domain, text in new.revoked.items():
        if domain not in revoked or _counter(revoked[domain]) <= _counter(text):
            revoked[domain] = text
    return Kept(known, revoked, {**old.keys, **new.keys})


def _counter(text: str) -> int:
    """Return the counter of a list of revocations; 0: the text is none, and any other is newer."""
    try:
        return known_revocations(text).counter
    except RefusalError:
        return 0


def _written(kept: Kept) -> JsonObject:
    known: JsonObject = {
        entry.address: {"counter": one.seen.counter, "digest": one.seen.digest, "text": one.text}
        for entry, one in kept.known.items()
    }
    return {
        "version": _VERSION,
        "known": known,
        "revoked": {**kept.revoked},
        "keys": {**kept.keys},
    }


def _read(content: Json) -> Kept:
    """Read what was written.

    Raises:
        TypeError: It was not.
    """
    whole = _table(content)
    if whole.get("version") != _VERSION:
        raise TypeError
    known = {
        read_entry(address)[0]: _known(_table(one))
        for address, one in _table(whole["known"]).items()
    }
    return Kept(known, _texts(whole["revoked"]), _texts(whole["keys"]))


def _known(said: JsonObject) -> Known:
    counter, digest, text = said["counter"], said["digest"], said["text"]
    if not isinstance(counter, int) or not 0 <= counter <= MAX_ID:
        raise TypeError
    if not isinstance(digest, str) or not isinstance(text, str):
        raise TypeError
    return Known(Seen(counter, digest), text)


def _table(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _texts(value: Json) -> dict[str, str]:
    return {name: text for name, text in _table(value).items() if isinstance(text, str)}
