"""The catalogue of the domain, read from the engine: all nodes serve the same files."""

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import orjson
import trio
from typing_extensions import override

from actors.catalogue.errors import BadSealError, SourceAwayError
from actors.catalogue.seal import SealType, read_seal, read_verified
from actors.catalogue.source import LISTING, Source, package_path, read_content
from actors.keys.key_set import BadKeysError, read_keys
from actors.kit.log import get_logger
from actors.node.session.other_nodes import OtherNodes
from fsm.group import catalogue
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.descriptor import Listing, ListingEntry
from transports.bodies import write_body

if TYPE_CHECKING:
    from actors.http.config import ShownCatalogue


_log = get_logger("actors.catalogue")

_PACKAGES: Final = 2
"""Versions of a package that are served; readers of the previous descriptor still ask for its
package.
"""


class DomainCatalogue(Source, catalogue.CataloguePort):
    """Serve the files that the catalogue core selects.

    The object outlives a bus that crashes; `begin` connects it with the next bus.

    Attributes:
        shown: The catalogue that the node serves, and its directory; None: no catalogue.
        core: Decides which files are served.
    """

    name = "the catalogue of the domain"
    proves_domain = True

    def __init__(self) -> None:
        self.shown: ShownCatalogue | None = None
        self.core: Final = catalogue.CatalogueCore(self, _is_signed)
        self._texts: Final = dict[str, bytes]()
        self._packages: Final = dict[str, tuple[tuple[str, bytes], ...]]()
        self._others: OtherNodes | None = None

    def begin(self, others: OtherNodes) -> None:
        """Connect to a new bus, which knows nothing of the engine yet."""
        self.core.leave()
        self._others = others

    # ---- the served files

    @override
    def write(self, row: catalogue.CatalogueRow) -> None:
        if self._others is not None:
            self._others.publish(row)

    @override
    def report_unused(self, path: str, why: catalogue.Why) -> None:
        note = _log.info if why is catalogue.Why.OLDER else _log.error
        note("catalogue file not served", path=path, why=str(why))

    @override
    def serve(self, row: catalogue.CatalogueRow) -> None:
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
            others = [each for each in before if each != fresh]
            self._packages[path] = (fresh, *others)[:_PACKAGES]
        _log.info("catalogue file of the domain", path=path, version=row.version)

    @override
    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self.core.was_settled:
            raise SourceAwayError(self.name, "the node has not read it yet")
        return read_content(self._content(path), self.name, path, limit)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def _content(self, path: str) -> bytes | None:
        if path == LISTING:
            return self._listing()
        packages = (each for versions in self._packages.values() for each in versions)
        package = next((content for named, content in packages if named == path), None)
        return self._texts.get(path, package)

    def _listing(self) -> bytes | None:
        entries = [path.split("/") for path in sorted(self._texts.keys() - {DOMAIN_KEYS, REVOKED})]
        listed = Listing(
            entries=tuple(ListingEntry(type=entry[1], name=entry[2]) for entry in entries)
        )
        return orjson.dumps(write_body(listed), option=orjson.OPT_INDENT_2) if entries else None


def _is_signed(path: str, text: str, keys: str) -> bool:
    kind = SealType.REVOCATIONS if path == REVOKED else SealType.DESCRIPTOR
    try:
        read_verified(read_seal(text.encode(), kind), read_keys(keys.encode()))
    except (BadSealError, BadKeysError):
        return False
    return True
