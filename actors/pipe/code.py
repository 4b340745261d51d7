"""The code that a sandbox may import besides Python's standard library, found by its host (T16).

The modules of this project are imported before the process is confined: they are trusted, and load
in their compiled form. The files of an installed distribution that the code declares can be read.
All other modules, such as those of an editable install, of a checkout or beside a script, are sent
through the pipe as sources; their folders cannot be read. A hyperty declares modules and
distributions by its `import` statements; the requirements of distributions are added. The search
executes no code.
"""

import ast
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distribution,
    packages_distributions,
)
from io import BytesIO
from pathlib import Path
from typing import Final, TypeAlias

from actors.pipe.plan import SandboxCode
from specs.limits.foreign_code import PACKAGE_BYTES, PACKAGE_FILES, PACKAGE_UNPACKED_BYTES

_PROJECT: Final = "protofly"
_OWN: Final = frozenset({"actors", "fsm", "specs", "transports"})
_OF_STUBS: Final = ("actors.runtime.stubs.node_stub",)
"""Modules that a sandbox with a shipped stub runs, besides those that its code may import."""
_OF_HYPERTIES: Final = ("actors.sandbox.hyperties",)
"""Modules that a sandbox with a hyperty runs, besides those that its code may import."""

_FOR_STUBS: Final = (
    "actors.kit.supervision.actor",
    "actors.runtime.stubs.stub",
    "fsm.machines.stub_connection",
    "specs.message",
    "specs.reply_code",
    "transports.errors",
    "transports.link",
    "transports.urls",
)
"""Modules of this project that a stub of a package may import (`docs/stubs.md`)."""

_FOR_HYPERTIES: Final = tuple(
    f"actors:{name}"
    for name in (
        *("AnswerError", "Child", "ChildChange", "Children", "Code", "Hyperty"),
        *("Invited", "Json", "JsonInput", "JsonObject", "Message", "MessageType", "NotJsonError"),
        *("ObjectChange", "ObjectError", "ObjectState", "ObservedObject", "ObserverJoined"),
        *("ObserverLeft", "ProtoflyError", "Refused", "ReportedObject", "SchemaError"),
        *("SearchError", "SenderIdentity", "VouchedBy", "handles", "read_as"),
    )
)
"""Names of this project that a hyperty of a package may import; none runs a program."""

_SUFFIX: Final = ".py"
_INIT: Final = "__init__.py"
_NAME: Final = re.compile(r"[\w.-]+")
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def _site_of(path: Path) -> Path | None:
    """Return the folder of installed distributions that contains a file; None: no such folder."""
    return next((parent for parent in path.parents if parent.name in _INSTALLED), None)


def _code(own: Iterable[str], readable: Iterable[str], archive: bytes = b"") -> SandboxCode:
    paths = tuple(dict.fromkeys(readable))
    folders = (_site_of(Path(path)) for path in paths)
    unique = dict.fromkeys(str(folder) for folder in folders if folder is not None)
    return SandboxCode(tuple(dict.fromkeys(own)), paths, tuple(unique), archive)


@cache
def stub_code() -> SandboxCode:
    """Return the code that a sandbox with a stub may import."""
    return _code((*_FOR_STUBS, *_OF_STUBS), _readable({_PROJECT}))


@cache
def hyperty_code() -> SandboxCode:
    """Return the code that a hyperty of a package may import."""
    return _code((*_OF_HYPERTIES, *_FOR_STUBS, *_FOR_HYPERTIES), _readable({_PROJECT}))


@cache
def importable() -> tuple[str, ...]:
    """Return the names of the distributions that a stub or hyperty of a package may import."""
    return tuple(sorted(name for name, _ in _closure({_PROJECT}) if name != _PROJECT))


def code_of(module: str) -> SandboxCode:
    """Return the code that a hyperty of a module may import; a missing module is no error.

    Raises:
        ImportError: The sources exceed the limits of a package, or cannot be read.
    """
    search = _Search()
    search.find(module)
    common = stub_code().readable
    more = search.installed - {Path(each).name.partition(".")[0] for each in common}
    # Reading the records of all distributions takes long.
    tops = packages_distributions() if more else {}
    declared = {name for top in more for name in tops.get(top, ())}
    readable = (*common, *_readable(declared))
    return _code((*_OF_HYPERTIES, *_FOR_STUBS, *search.own), readable, _pack(search.sources))


def _pack(sources: dict[str, bytes]) -> bytes:
    if not sources:
        return b""
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, source in sources.items():
            archive.writestr(path, source)
    packed = target.getvalue()
    size = sum(map(len, sources.values()))
    if len(sources) > PACKAGE_FILES or size > PACKAGE_UNPACKED_BYTES or len(packed) > PACKAGE_BYTES:
        raise ImportError(
            f"a hyperty in a sandbox may import {PACKAGE_FILES} modules that are not installed, "
            f"of {PACKAGE_UNPACKED_BYTES} bytes together; these are {len(sources)} of {size} bytes"
        )
    return packed


# ---- modules


_Module: TypeAlias = tuple[Path | None, tuple[Path, ...]]
"""File of a module (None: it has no file), and the folders that contain its submodules."""


class _Search:
    """Search for all modules that a module imports, directly or indirectly.

    Attributes:
        own: The imports of this project.
        installed: The top-level names of imports from installed distributions.
        sources: All other modules, by path in an archive.
    """

    def __init__(self) -> None:
        self.own: dict[str, None] = {}
        self.installed: set[str] = set()
        self.sources: dict[str, bytes] = {}
        self._modules: dict[str, _Module | None] = {}

    def find(self, module: str) -> None:
        """Find a module and all its imports; ignore missing modules."""
        waiting = [module]
        while waiting:
            name, _, attribute = waiting.pop().partition(":")
            if name.partition(".")[0] in _OWN:
                self.own[f"{name}:{attribute}" if attribute else name] = None
                continue
            for parent in (*_parents(name), name, f"{name}.{attribute}" if attribute else name):
                if parent not in self._modules:
                    waiting += self._look(parent)

    def _look(self, name: str) -> Iterable[str]:
        top, _, _ = name.partition(".")
        if top in sys.stdlib_module_names:
            return ()
        module = self._modules[name] = self._module(name)
        if module is None:
            return ()
        file, folders = module
        if any(_site_of(folder) is not None for folder in (file, *folders) if folder is not None):
            self.installed.add(top)
            return ()
        return self._read(name, module)

    def _module(self, name: str) -> _Module | None:
        """Return file and folders of a module, without importing its parent packages."""
        parent, _, last = name.rpartition(".")
        if not parent:
            return _top_level(name)
        above = self._modules.get(parent)
        if above is None:
            return None
        places = [folder / last for folder in above[1]]
        for place in places:
            if (place / _INIT).is_file():
                return place / _INIT, (place,)
            if place.with_suffix(_SUFFIX).is_file():
                return place.with_suffix(_SUFFIX), ()
        folders = tuple(place for place in places if place.is_dir())
        return (None, folders) if folders else None

    def _read(self, name: str, module: _Module) -> Iterable[str]:
        file, folders = module
        base = name.replace(".", "/")
        path = f"{base}/{_INIT}" if folders else f"{base}{_SUFFIX}"
        if file is None:
            # A folder without a module of its own.
            self.sources[path] = b""
            return ()
        if file.suffix != _SUFFIX:
            return ()
        try:
            source = file.read_bytes()
            self.sources[path] = source
            package = name if folders else name.rpartition(".")[0]
            return list(_imports(ast.parse(source), package))
        except (OSError, SyntaxError, ValueError):
            # The error is raised when the sandbox imports the module.
            return ()


def _top_level(name: str) -> _Module | None:
    finders = (each.find_spec for each in sys.meta_path if hasattr(each, "find_spec"))
    spec = next((spec for find in finders if (spec := find(name, None)) is not None), None)
    if spec is None:
        return None
    folders = tuple(Path(location).absolute() for location in spec.submodule_search_locations or ())
    is_source = spec.has_location and spec.origin is not None
    return Path(spec.origin or "").absolute() if is_source else None, folders


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield a module's imports, as `module`, or as `module:name` if the name may be a module."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                names[name.asname or name.name.partition(".")[0]] = name.name
                yield name.name
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            yield from (f"{base}:{name.name}" for name in node.names if base)
    for node in ast.walk(tree):
        # A name that our package imports when it is first used.
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id, "")
            if module in _OWN:
                yield f"{module}:{node.attr}"


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) + 1 - node.level]
    return ".".join([*above, node.module] if node.module else above)


# ---- distributions


def _readable(names: Iterable[str]) -> Iterator[str]:
    """Yield the files and folders of distributions, and of those that they require."""
    for _, dist in _closure(names):
        yield from _files(dist)


def _closure(names: Iterable[str]) -> Iterator[tuple[str, Distribution]]:
    """Yield distributions that are installed, by name, and those that they require."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            continue
        waiting += _requirements(dist)
        yield name, dist


def _requirements(dist: Distribution) -> Iterator[str]:
    for line in dist.requires or ():
        match = _NAME.match(line)
        if match is not None and "extra ==" not in line:
            yield match.group()


def _files(dist: Distribution) -> Iterator[str]:
    if '"editable": true' in (dist.read_text("direct_url.json") or ""):
        return
    tops = set()
    for file in dist.files or ():
        first = file.parts[0]
        if first == "__pycache__":
            tops.add("/".join(file.parts))
        elif first != "..":
            tops.add(first)
    yield from (str(Path(str(dist.locate_file(top))).resolve()) for top in sorted(tops))
