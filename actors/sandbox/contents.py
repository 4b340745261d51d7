"""The component of a sandbox: a shipped stub, a stub of a package, or a hyperty.

The modules of a package come from its zip archive in memory; no file is read or written
(T15). Only source files count. A module of the archive hides a module of the same name that
the interpreter would find elsewhere, so that the code that runs is the code that was verified.

Modules that only some contents need are imported with them: in a process, before confinement, by
`SandboxCode.own`. Half of the imports are those of hyperties.
"""

import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from io import BytesIO
from types import ModuleType
from typing import Final, TypeAlias

from typing_extensions import override

from actors.kit.supervision.actor import Actor, Delivery
from actors.pipe.plan import SandboxPlan
from actors.runtime.stubs.stub import StubContext
from specs.limits.foreign_code import PACKAGE_FILES, PACKAGE_UNPACKED_BYTES

_SUFFIX: Final = ".py"
_PACKAGE: Final = "/__init__.py"


class ArchiveFinder(MetaPathFinder, InspectLoader):
    """Finds and loads modules from sources held in memory.

    Args:
        sources: The sources, by their paths in the archive.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources

    def has(self, name: str) -> bool:
        """Return whether a module is in the archive."""
        return self._path(name) is not None

    def _path(self, name: str) -> str | None:
        base = name.replace(".", "/")
        paths = (base + _PACKAGE, base + _SUFFIX)
        return next((path for path in paths if path in self._sources), None)

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._path(fullname)
        if file is None:
            return None
        return spec_from_loader(fullname, self, origin=f"<package>/{file}")

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
        ImportError: It is no archive, or too large for a package.
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
            names = [entry.filename for entry in entries if not entry.is_dir()]
            return {name: package.read(name) for name in names if name.endswith(_SUFFIX)}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as exc:
        raise ImportError(f"the package is no zip archive that can be read: {exc}") from exc


def _check(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise ImportError for a package that is too large, before it is unpacked."""
    if len(entries) > PACKAGE_FILES:
        raise ImportError(f"the package has more than {PACKAGE_FILES} files")
    if sum(entry.file_size for entry in entries) > PACKAGE_UNPACKED_BYTES:
        raise ImportError(f"the package unpacks to more than {PACKAGE_UNPACKED_BYTES} bytes")


Maker: TypeAlias = Callable[[StubContext], Actor[Delivery]]
"""Makes the component of a sandbox from its context."""


@contextmanager
def open_contents(
    plan: SandboxPlan, archive: bytes, record_error: Callable[[Exception, str], str]
) -> Iterator[Maker]:
    """Import the code of a sandbox; yield the maker of its component.

    Args:
        plan: The description of the sandbox.
        archive: The code of a package.
        record_error: Records an exception of a handler of a hyperty; returns its correlation id.

    Raises:
        ImportError: There is no such code, or it cannot be read.
        TypeError: The code is neither stub nor hyperty.
        Exception: Any error that the code raises when it is imported.
    """
    contents = plan.contents
    entry = contents.entry
    with ExitStack() as stack:
        package = stack.enter_context(open_archive(archive)) if contents.is_packaged else None
        if contents.is_hyperty:
            from actors.sandbox import hyperties  # noqa: PLC0415 - see above

            made = hyperties.check_class(entry, _import_entry(package, entry))
            yield hyperties.host(made, record_error, plan)
        elif package is not None:
            yield _stub_maker(entry, _import_entry(package, entry))
        else:
            from actors.runtime.stubs import node_stub  # noqa: PLC0415 - see above

            yield node_stub.activate


def _import_entry(package: ArchiveFinder | None, entry: str) -> object:
    """Return the object that an entry `module:name` names, from the package if there is one."""
    module, _, name = entry.partition(":")
    if not module or not name:
        raise ImportError(f"{entry!r} is not of the form module:name")
    if package is not None and not package.has(module):
        raise ImportError(f"the package has no module {module}")
    value: object = vars(import_module(module)).get(name)
    if value is None:
        raise ImportError(f"{module} has no {name}")
    return value


def _stub_maker(entry: str, activate: object) -> Maker:
    """Return the maker of a stub; wrong arguments or results raise errors when it is called."""
    if not callable(activate):
        raise TypeError(f"{entry} cannot be called")

    def make(context: StubContext) -> Actor[Delivery]:
        made: object = activate(context)
        if not isinstance(made, Actor):
            raise TypeError(f"activate returned no actor, but a {type(made).__name__}")
        return made

    return make
