"""The catalogue of the domain, as the engine has it: all nodes serve the same files."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never, final

import orjson
import trio
from typing_extensions import override

from actors.catalogue.errors import BadSealError, SourceAwayError
from actors.catalogue.seal import SealType, read_seal, verified
from actors.catalogue.source import LISTING, Source, package_path, served
from actors.keys.key_set import BadKeysError, read_keys
from actors.kit.log import get_logger
from fsm.group import catalogue
from fsm.group.rows import THE_NODE, Change
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.descriptor import Listing, ListingEntry
from transports.bodies import write_body

if TYPE_CHECKING:
    from actors.http.config import ShownCatalogue


_log = get_logger("actors.catalogue")

_Write: TypeAlias = Callable[[Change], None]

_PACKAGES: Final = 2
"""Packages of a file that are served: whoever has read the version before still asks for its."""


@final
class DomainCatalogue(Source):
    """Host of the core that decides which files a node serves, and the source of these.

    It outlives a bus that crashes; `begin` connects it with the next one.

    Attributes:
        shown: What the node serves, and the directory where it looks for changes; None: nothing.
    """

    name = "the catalogue of the domain"
    proves_domain = True

    def __init__(self) -> None:
        self.shown: ShownCatalogue | None = None
        self._core: Final = catalogue.CatalogueCore(_is_signed)
        self._texts: Final = dict[str, bytes]()
        self._packages: Final = dict[str, tuple[tuple[str, bytes], ...]]()
        self._write: _Write = _nowhere
        self._is_ready = False

    def begin(self, write: _Write) -> None:
        """Work with a bus, which knows nothing of the engine yet.

        Args:
            write: Writes a row.
        """
        self.fenced()
        self._write = write

    # ---- what the engine has, and the directory

    def there(self, row: catalogue.CatalogueRow) -> None:
        """Note a file that the engine has."""
        self._feed(row)

    def gone(self, path: str) -> None:
        """Note that the engine does not have a file."""
        self._feed(catalogue.Missing(path))

    def written(self, key: str) -> None:
        """Note that the engine has what this node wrote.

        Args:
            key: Key of the row, which may be any.
        """
        if key.startswith(catalogue.CATALOGUE):
            self._feed(catalogue.Written(key.removeprefix(catalogue.CATALOGUE)))

    def known(self) -> None:
        """Note that the node is a member, and knows what the engine has. Idempotent."""
        self._feed(catalogue.Known())

    def fenced(self) -> None:
        """Note that the node is no member any more: it goes on serving what it knows."""
        self._feed(catalogue.Fenced())

    def looked(self, files: Mapping[str, catalogue.CatalogueRow]) -> None:
        """Take what the directory has, by path."""
        self._feed(catalogue.Looked(files))

    def _feed(self, happened: catalogue.Input) -> None:
        for effect in self._core.feed(happened):
            match effect:
                case catalogue.Shown(row):
                    self._show(row)
                case catalogue.WrittenDown(row):
                    self._write(Change(row, THE_NODE))
                case catalogue.Unused(path, why):
                    note = _log.info if why is catalogue.Why.OLDER else _log.error
                    note("catalogue file not served", path=path, why=str(why))
                case _:
                    assert_never(effect)
        self._is_ready |= self._core.is_settled

    # ---- what is served

    def _show(self, row: catalogue.CatalogueRow) -> None:
        path, package = row.path, row.package
        if row.text is None:
            self._texts.pop(path, None)
            self._packages.pop(path, None)
            _log.info("catalogue file withdrawn", path=path, version=row.version)
            return
        self._texts[path] = row.text.encode()
        before = self._packages.get(path, ())
        if package is not None:
            fresh = (package_path(sha256(package).hexdigest()), package)
            more = [one for one in before if one != fresh]
            self._packages[path] = (fresh, *more)[:_PACKAGES]
        _log.info("catalogue file of the domain", path=path, version=row.version)

    @override
    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._is_ready:
            raise SourceAwayError(self.name, "the node has not read it yet")
        return served(self._content(path), self.name, path, limit)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def _content(self, path: str) -> bytes | None:
        if path == LISTING:
            return self._listing()
        packages = (one for kept in self._packages.values() for one in kept)
        package = next((content for named, content in packages if named == path), None)
        return self._texts.get(path, package)

    def _listing(self) -> bytes | None:
        entries = [path.split("/") for path in sorted(self._texts.keys() - {DOMAIN_KEYS, REVOKED})]
        listed = Listing(entries=tuple(ListingEntry(type=one[1], name=one[2]) for one in entries))
        return orjson.dumps(write_body(listed), option=orjson.OPT_INDENT_2) if entries else None


def _is_signed(path: str, text: str, keys: str) -> bool:
    kind = SealType.REVOCATIONS if path == REVOKED else SealType.DESCRIPTOR
    try:
        verified(read_seal(text.encode(), kind), read_keys(keys.encode()))
    except (BadSealError, BadKeysError):
        return False
    return True


def _nowhere(_: Change) -> None:
    """Write to no engine: there is no bus yet."""
