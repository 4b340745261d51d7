"""Catalogue of a domain: all nodes of a group serve the same files, stored as rows of the engine.

The engine is the store that the nodes share. A row holds one signed file, and the package whose
hash the file contains. A node compares its own directory with the rows, and writes the files of
which it has newer versions, by compare-and-set. Only rows are served, whatever the directory
contains.

Of two descriptors, or lists of revocations, the one with the higher counter is valid; if the
counters are equal, the engine's is valid, and the other is reported. The public keys of the domain
have no counter: the engine's keys are valid until others are published in the directory of a node
while it runs.

A descriptor that disappears from a node's directory, and is equal to the engine's, is withdrawn: it
comes back with a higher counter only. So its row stays, without text: at any time a directory may
contain a copy of it, or a node may come back that has served it.

A file is written only if a key of the domain has signed it. A file that a node has served is
written again if an engine comes back without it, with an older version, or with an unreadable one.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import attrs
import orjson

from specs.addresses.address import DOMAIN_KEYS, REVOKED, WELL_KNOWN, entry_at
from specs.limits.engine import ROW_VALUE
from specs.limits.group import (
    GROUP_CATALOGUE_BYTES,
    GROUP_CATALOGUE_FILES,
    GROUP_CATALOGUE_NAMES,
    GROUP_CATALOGUE_WRITES,
    GROUP_FILE_BYTES,
)

if TYPE_CHECKING:
    from specs.jsonvalue import Json


# ---- the row


CATALOGUE: Final = "catalogue/"
"""Prefix of the keys of all rows with files; the path of the file follows."""


@attrs.frozen(slots=True)
class CatalogueRow:
    """Row of the shared store that contains one file of the catalogue.

    Attributes:
        path: Its path below the root of the catalogue.
        version: The counter of a signed file; for keys, the time of their publication in
            nanoseconds since the epoch, or a number above that of the earlier keys.
        text: The contents of the file; None: the descriptor of this version was withdrawn.
        package: The package that belongs to the file; None: the file has no package.
    """

    path: str
    version: int
    text: str | None = attrs.field(repr=False)
    package: bytes | None = attrs.field(default=None, repr=False)

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return CATALOGUE + self.path

    @property
    def rank(self) -> tuple[int, bool]:
        """Version for comparisons of two rows: the row with the higher rank is valid."""
        return self.version, self.text is None

    @property
    def size(self) -> int:
        """The number of bytes of the file and its package."""
        return len((self.text or "").encode()) + len(self.package or b"")


def counter_of(text: str) -> int | None:
    """Return the counter in a signed text, or None if the text has no valid counter.

    Args:
        text: The text; its signature is not verified.
    """
    parts = text.split(".")
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        content: Json = orjson.loads(payload)
    except (IndexError, ValueError):
        return None
    counter = content.get("counter") if isinstance(content, dict) else None
    return counter if isinstance(counter, int) and _is_number(counter) else None


def write_file(row: CatalogueRow) -> bytes:
    """Return a row encoded as its value in the shared store: a line of JSON, then the package."""
    head = orjson.dumps({"version": row.version, "text": row.text})
    return head if row.package is None else head + b"\n" + row.package


def read_file(path: str, value: bytes) -> CatalogueRow | None:
    """Decode the row of a file, or return None if the value is malformed.

    Args:
        path: The path in its key.
        value: Its value.
    """
    head, line, package = value.partition(b"\n")
    try:
        fields: Json = orjson.loads(head) if len(value) <= ROW_VALUE else None
    except ValueError:
        return None
    match fields:
        case {"version": int(version), "text": str() | None as text} if _is_number(version):
            row = CatalogueRow(path, version, text, package if line else None)
            return row if _is_sound(row) else None
        case _:
            return None


def _is_sound(row: CatalogueRow) -> bool:
    """Return whether a row may have its path, and its version is the counter of its text."""
    if _is_withdrawable(row.path) and not _is_entry(row.path):
        return False
    if row.text is None:
        return row.package is None and _is_withdrawable(row.path)
    return row.path == DOMAIN_KEYS or counter_of(row.text) == row.version


def _is_entry(path: str) -> bool:
    kind, _, name = path.removeprefix(f"{WELL_KNOWN}/").partition("/")
    entry = entry_at("", kind, name)
    return entry is not None and entry.path == path


def _is_withdrawable(path: str) -> bool:
    return path not in {DOMAIN_KEYS, REVOKED}


def _is_number(value: int) -> bool:
    return value > 0 and not isinstance(value, bool)


class Why(StrEnum):
    """Reason why a file of the directory is not served."""

    OLDER = "the domain has a newer version"
    OTHER = "the domain has another content with this counter; sign it with a higher one"
    WITHDRAWN = "the domain has withdrawn it; sign it with a higher counter"
    KEYS = "the domain has other keys; publish these again while the node runs"
    UNSIGNED = "no key of the domain has signed it"
    LARGE = f"a file and its package may have {GROUP_FILE_BYTES} bytes together"
    FULL = (
        f"the files of a domain may be {GROUP_CATALOGUE_FILES}, "
        f"with {GROUP_CATALOGUE_BYTES} bytes together"
    )
    USED_UP = f"a domain may use {GROUP_CATALOGUE_NAMES} names; use that of a withdrawn file"


class CataloguePort(Protocol):
    """Callbacks of `CatalogueCore` to its host; none of them may call the core."""

    def serve(self, row: CatalogueRow) -> None:
        """Serve this version of a file from now on."""

    def write(self, row: CatalogueRow) -> None:
        """Write a file to the shared store."""

    def report_unused(self, path: str, why: Why) -> None:
        """Report that a file of the directory is not served, since the shared store has another."""


Verify: TypeAlias = Callable[[str, str, str], bool]
"""Function that returns whether a key has signed a file; arguments: path, text, public keys."""


class CatalogueCore:
    """Comparison of a node's directory with the catalogue files in the shared store.

    Args:
        port: The host.
        verify: Verifies signatures.

    Attributes:
        was_settled: Whether `is_settled` has ever been true.
    """

    def __init__(self, port: CataloguePort, verify: Verify) -> None:
        self.was_settled = False
        self._port = port
        self._verify = verify
        self._own: Mapping[str, CatalogueRow] = {}
        self._served: dict[str, CatalogueRow] = {}
        self._in_engine: dict[str, CatalogueRow] = {}
        self._writing: dict[str, CatalogueRow] = {}
        self._due = OrderedDict[str, None]()
        self._gone: dict[str, str | None] = {}
        self._reported: dict[str, Why] = {}
        self._is_member = self._has_looked = self._is_published = False

    @property
    def is_settled(self) -> bool:
        """True if the node serves the shared store's files, and has nothing to write."""
        return self._is_member and self._has_looked and not self._due and not self._writing

    # ---- files of the engine

    def set_row(self, row: CatalogueRow) -> None:
        """Take a file that the shared store has, and serve the newest version."""
        path = row.path
        self._writing.pop(path, None)
        self._in_engine[path] = row
        self._due[path] = None
        served = self._served.get(path)
        if row != served and (served is None or row.rank >= served.rank):
            self._served[path] = row
            if path == DOMAIN_KEYS:
                # A new key may have signed a file that was unsigned before.
                self._due |= dict.fromkeys(self._own)
            self._port.serve(row)
        self._settle()

    def set_missing(self, path: str) -> None:
        """Take the information that the shared store has no readable file at a path."""
        self._writing.pop(path, None)
        self._in_engine.pop(path, None)
        self._due[path] = None
        self._settle()

    def set_written(self, key: str) -> None:
        """Treat the file that this node wrote as present, since the shared store has confirmed it.

        Args:
            key: Key of the row, of any kind.
        """
        written = self._writing.get(key.removeprefix(CATALOGUE))
        if written is not None and key == written.key:
            self.set_row(written)

    def join(self) -> None:
        """Allow writes, since the node is a member and knows the shared rows. Idempotent."""
        if not self._is_member:
            self._is_member = True
            self._due |= dict.fromkeys((*self._served, *self._own, *self._gone))
        self._settle()

    def leave(self) -> None:
        """Stop writes, since the node is no longer a member; known files are still served."""
        self._is_member = False
        self._in_engine.clear()
        self._writing.clear()

    # ---- files of the directory

    def set_directory(self, files: Mapping[str, CatalogueRow]) -> None:
        """Take the files that the node's directory contains now, by path, and find the changes."""
        former = self._own
        changed = {path: row for path, row in files.items() if former.get(path) != row}
        for path in changed:
            self._reported.pop(path, None)
            self._gone.pop(path, None)
        # A directory that is unavailable for a while has no keys either.
        if DOMAIN_KEYS in files:
            for path in former.keys() - files.keys():
                if _is_withdrawable(path):
                    self._gone[path] = former[path].text
            self._own = dict(files)
        else:
            self._own = {**former, **files}
        self._is_published |= self._has_looked and DOMAIN_KEYS in changed
        self._has_looked = True
        self._due |= dict.fromkeys((*changed, *self._gone))
        self._settle()

    # ---- writes

    def _settle(self) -> None:
        while (path := self._next_due()) is not None:
            del self._due[path]
            self._write_due(path)
        self.was_settled |= self.is_settled

    def _next_due(self) -> str | None:
        """Return the path of the next file to compare, the public keys first, or None.

        The keys decide whether the other files are signed.
        """
        is_busy = len(self._writing) >= GROUP_CATALOGUE_WRITES or DOMAIN_KEYS in self._writing
        if not self._is_member or is_busy:
            return None
        if DOMAIN_KEYS in self._due:
            return DOMAIN_KEYS
        return next((path for path in self._due if path not in self._writing), None)

    def _write_due(self, path: str) -> None:
        served, in_engine = self._served.get(path), self._in_engine.get(path)
        wanted = self._find_change(path, served)
        if isinstance(wanted, Why):
            if self._reported.get(path) is not wanted:
                self._port.report_unused(path, wanted)
            self._reported[path] = wanted
            wanted = None
        is_behind = served is not None and (in_engine is None or in_engine.rank < served.rank)
        wanted = served if wanted is None and is_behind else wanted
        if wanted is not None:
            self._writing[path] = wanted
            self._port.write(wanted)

    def _find_change(self, path: str, served: CatalogueRow | None) -> CatalogueRow | Why | None:
        """Return the row to write for a file of this directory, or why its file is not used."""
        own = self._own.get(path)
        if path in self._gone:
            if served is not None and served.text == self._gone[path]:
                return CatalogueRow(path, served.version, None)
            del self._gone[path]
        if own is None or (served is not None and served.text == own.text):
            return None
        if path == DOMAIN_KEYS:
            return self._wanted_keys(own, served)
        if served is not None and own.rank <= served.rank:
            return _behind(own, served)
        keys = self._served.get(DOMAIN_KEYS)
        is_signed = keys is not None and self._verify(path, own.text or "", keys.text or "")
        return self._check_bounds(own) if is_signed else Why.UNSIGNED

    def _wanted_keys(
        self, own: CatalogueRow, served: CatalogueRow | None
    ) -> CatalogueRow | Why | None:
        if served is not None and not self._is_published:
            return Why.KEYS
        self._is_published = False
        # Other nodes may know newer keys: those must have a lower number than these.
        former_version = 0 if served is None else served.version
        return self._check_bounds(attrs.evolve(own, version=max(own.version, former_version + 1)))

    def _check_bounds(self, own: CatalogueRow) -> CatalogueRow | Why:
        others = [
            each for each in {**self._served, **self._writing}.values() if each.path != own.path
        ]
        if own.size > GROUP_FILE_BYTES or len(write_file(own)) > ROW_VALUE:
            return Why.LARGE
        sizes = [other.size for other in others if other.text is not None]
        if len(sizes) >= GROUP_CATALOGUE_FILES or sum(sizes) + own.size > GROUP_CATALOGUE_BYTES:
            return Why.FULL
        return Why.USED_UP if len(others) >= GROUP_CATALOGUE_NAMES else own


def _behind(own: CatalogueRow, served: CatalogueRow) -> Why:
    if own.version < served.version:
        return Why.OLDER
    return Why.WITHDRAWN if served.text is None else Why.OTHER
