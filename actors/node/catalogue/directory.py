"""Read the directory of a catalogue again and again, for a node of a group.

An unusable file is reported once and its previous version stays, as the file may be half written. A
file counts as removed if two looks in turn do not find it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Never, TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.catalogue import errors, seal
from actors.catalogue.source import DirectorySource, package_path
from actors.keys.key_set import BadKeysError, read_keys
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.messages import BusMessage
from fsm.group.catalogue import CatalogueCore, CatalogueRow, Why
from specs.addresses import address
from specs.descriptor import SourcePackage
from specs.limits.foreign_code import DESCRIPTOR_BYTES, PACKAGE_BYTES, REVOCATIONS_BYTES
from specs.limits.group import GROUP_CATALOGUE_FILES, GROUP_CATALOGUE_LOOK, GROUP_FILE_BYTES
from specs.limits.node import JWKS_BYTES

if TYPE_CHECKING:
    from actors.http.config import ShownCatalogue


_log = get_logger("actors.catalogue")

_Stamp: TypeAlias = tuple[int, int, int]
"""Modification time, size and inode of a file, of which one changes with each change."""


@attrs.frozen(slots=True)
class _Read:
    """A file as it was read.

    Attributes:
        stamp: Stamp of the file; None: the file has to be read again, even if it has not changed.
        row: Contents of the file; None: the file was never usable.
        is_missing: Whether the last look did not find the file.
    """

    stamp: _Stamp | None
    row: CatalogueRow | None
    is_missing: bool = False


class _UnusableError(Exception):
    """A file cannot be used."""


class CatalogueReader(Actor[Never]):
    """Read the changed files, and report all files.

    Args:
        shown: The catalogue.
        core: Receives the files.
        bus: The bus of the node, whose task calls the core.
    """

    def __init__(
        self, shown: "ShownCatalogue", core: CatalogueCore, bus: ActorRef[BusMessage]
    ) -> None:
        self._core: Final = core
        self._domain: Final = shown.domain
        self._directory: Final = shown.directory
        self._source: Final = DirectorySource(shown.directory)
        self._bus: Final = bus
        self._read: dict[str, _Read] = {}
        self._reported: Mapping[str, CatalogueRow] | None = None
        self._flaws: dict[str, str] = {}
        self._next = trio.current_time()

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor gets no messages."""

    @override
    def deadline(self) -> float:
        return self._next

    @override
    async def timed_out(self) -> None:
        await self._look()
        self._next = trio.current_time() + GROUP_CATALOGUE_LOOK

    async def _look(self) -> None:
        stamps = await trio.to_thread.run_sync(_stamps, self._directory)
        missing = {
            path: attrs.evolve(each, stamp=None, is_missing=True)
            for path, each in self._read.items()
            if path not in stamps and not each.is_missing
        }
        self._read = missing | {path: await self._file(path, stamps[path]) for path in stamps}
        files = {path: each.row for path, each in self._read.items() if each.row is not None}
        if files != self._reported:
            self._reported = files
            await self._bus.tell(lambda _: self._core.set_directory(files))

    async def _file(self, path: str, stamp: _Stamp) -> _Read:
        earlier = self._read.get(path)
        if earlier is not None and earlier.stamp == stamp:
            return earlier
        try:
            row = await self._row(path, stamp)
        except (errors.SourceAwayError, errors.NotServedError, _UnusableError) as exc:
            if self._flaws.get(path) != str(exc):
                self._flaws[path] = str(exc)
                _log.error("catalogue file not served", path=path, why=str(exc))
            return _Read(None, None if earlier is None else earlier.row)
        self._flaws.pop(path, None)
        return _Read(stamp, row)

    async def _row(self, path: str, stamp: _Stamp) -> CatalogueRow:
        """Read a file.

        Raises:
            SourceAwayError, NotServedError, _UnusableError: The file cannot be used.
        """
        limit = {address.DOMAIN_KEYS: JWKS_BYTES, address.REVOKED: REVOCATIONS_BYTES}.get(
            path, DESCRIPTOR_BYTES
        )
        content = await self._source.read(path, limit)
        try:
            if path == address.DOMAIN_KEYS:
                read_keys(content)
                return CatalogueRow(path, _when(stamp), content.decode())
            if path == address.REVOKED:
                return self._revocations(content)
            return await self._descriptor(path, content)
        except (BadKeysError, errors.BadSealError, errors.BadDescriptorError) as exc:
            raise _UnusableError(str(exc)) from exc

    def _revocations(self, content: bytes) -> CatalogueRow:
        listed = seal.read_revocations(seal.read_seal(content, seal.SealType.REVOCATIONS).content)
        if listed.domain != self._domain:
            raise _UnusableError(f"it is the list of {listed.domain}")
        return CatalogueRow(address.REVOKED, listed.counter, content.decode())

    async def _descriptor(self, path: str, content: bytes) -> CatalogueRow:
        descriptor = seal.read_descriptor(seal.read_seal(content, seal.SealType.DESCRIPTOR).content)
        if (entry := seal.entry_of(descriptor)).domain != self._domain or entry.path != path:
            raise _UnusableError(f"it is {entry.described}")
        promised = descriptor.source_package
        package = None if promised is None else await self._package(promised)
        return CatalogueRow(path, descriptor.counter, content.decode(), package)

    async def _package(self, promised: SourcePackage) -> bytes:
        if promised.size > GROUP_FILE_BYTES:
            raise _UnusableError(Why.LARGE)
        content = await self._source.read(package_path(promised.sha256), PACKAGE_BYTES)
        refused = await trio.to_thread.run_sync(seal.flaw_of, promised, content)
        if refused is not None:
            raise _UnusableError(refused.why)
        return content


def _stamps(directory: Path) -> dict[str, _Stamp]:
    """Return a stamp of each file of a directory, by path; blocks."""
    paths = [address.DOMAIN_KEYS, address.REVOKED]
    for kind in address.CatalogueType:
        names = sorted(_names(directory / address.WELL_KNOWN / kind))
        paths += [
            address.Entry("", kind, name).path for name in names if address.is_entry_name(name)
        ]
    stamps = {path: _stamp(directory / path) for path in paths[: GROUP_CATALOGUE_FILES + 1]}
    return {path: stamp for path, stamp in stamps.items() if stamp is not None}


def _when(stamp: _Stamp) -> int:
    """Return when a file was changed, in nanoseconds since the epoch."""
    return max(1, stamp[0])


def _names(folder: Path) -> list[str]:
    try:
        return [file.name for file in folder.iterdir()]
    except OSError:
        return []


def _stamp(file: Path) -> _Stamp | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
