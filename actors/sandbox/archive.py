"""Python modules from a zip archive in memory: no file is read for them, none is written (T15).

Only sources count. What the archive has of a name comes before whatever the interpreter
would find elsewhere, so that the code that runs is the code that was verified.
"""

import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from io import BytesIO
from types import ModuleType
from typing import Final, final

from typing_extensions import override

from specs.limits.catalogue import PACKAGE_FILES, PACKAGE_UNPACKED_BYTES

__all__ = ["ArchiveFinder", "open_archive"]

_SUFFIX: Final = ".py"
_PACKAGE: Final = "/__init__.py"


@final
class ArchiveFinder(MetaPathFinder, InspectLoader):
    """Finds and loads modules from sources held in memory.

    Args:
        sources: By the path each has in the archive.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources

    def has(self, name: str) -> bool:
        """Say whether a module is in the archive."""
        return self._path(name) is not None

    def _path(self, name: str) -> str | None:
        base = name.replace(".", "/")
        paths = (base + _PACKAGE, base + _SUFFIX)
        return next((path for path in paths if path in self._sources), None)

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = self._path(fullname)
        if found is None:
            return None
        return spec_from_loader(fullname, self, origin=f"<package>/{found}")

    @override
    def is_package(self, fullname: str) -> bool:
        path = self._path(fullname)
        return path is not None and path.endswith(_PACKAGE)

    @override
    def get_source(self, fullname: str) -> str:
        path = self._path(fullname)
        if path is None:
            raise ImportError(f"the package has no module {fullname}", name=fullname)
        try:
            return self._sources[path].decode()
        except UnicodeDecodeError as exc:
            raise ImportError(f"{path} is not in UTF-8", name=fullname) from exc


@contextmanager
def open_archive(archive: bytes) -> Iterator[ArchiveFinder]:
    """Let modules be imported from an archive while the context is open.

    Raises:
        ImportError: It is no archive, or a larger one than a package may be.
    """
    finder = ArchiveFinder(_sources(archive))
    before = frozenset(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        yield finder
    finally:
        sys.meta_path.remove(finder)
        for name in sys.modules.keys() - before:
            if finder.has(name):
                del sys.modules[name]


def _sources(archive: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(BytesIO(archive)) as package:
            entries = package.infolist()
            _check(entries)
            return {one.filename: package.read(one) for one in entries if _is_source(one)}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as exc:
        raise ImportError(f"the package is no zip archive that can be read: {exc}") from exc


def _check(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse what would not fit, before a byte of it is unpacked."""
    if len(entries) > PACKAGE_FILES:
        raise ImportError(f"the package has more than {PACKAGE_FILES} files")
    if sum(one.file_size for one in entries) > PACKAGE_UNPACKED_BYTES:
        raise ImportError(f"the package unpacks to more than {PACKAGE_UNPACKED_BYTES} bytes")


def _is_source(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.endswith(_SUFFIX) and not entry.is_dir()
