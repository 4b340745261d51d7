"""The class of a hyperty in a file or module, loaded again after a change."""

import importlib.util
import re
import sys
import traceback
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
from typing_extensions import override

from actors.kit.supervision.monitor import Crash
from actors.runtime.hyperty.hyperty import Hyperty
from specs.errors import ProtoflyError

_FORM: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_-]+)=)?"
    r"(?P<where>[^=]+\.py|[A-Za-z_][\w.]*):(?P<kind>[A-Za-z_]\w*)"
)

Stamp: TypeAlias = tuple[int, int, int]
"""Time, size, and number of a file, which show a change."""


@final
class BadSourceError(ProtoflyError):
    """A source provides no class of a hyperty.

    Attributes:
        details: Lines that show where it went wrong; may be empty.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


@final
class _Uncached(SourceFileLoader):
    """Compiles a file at each load, as the age of compiled files counts in whole seconds only."""

    @override
    def path_stats(self, path: str) -> dict[str, object]:
        raise OSError("compiled files are not looked at")


@final
@attrs.frozen
class Source:
    """Location of the class of a hyperty.

    Attributes:
        name: Name of the hyperty.
        where: File or module.
        kind: Name of the class.
    """

    name: str
    where: str
    kind: str

    @override
    def __str__(self) -> str:
        return f"{self.where}:{self.kind}"

    def file(self) -> Path:
        """Return the file of the class; blocks.

        Raises:
            BadSourceError: There is none.
        """
        spec = self._spec()
        return Path(spec.origin or "")

    def stamp(self, file: Path) -> Stamp | None:
        """Return what a change of the file changes; None: it is not there. Blocks."""
        try:
            found = file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def load(self) -> type[Hyperty]:
        """Run the file anew and return the class; blocks as long as its code does.

        If it fails, other modules have what they had before.

        Raises:
            BadSourceError: It cannot be loaded, or has no such class.
        """
        spec = self._spec()
        module = importlib.util.module_from_spec(spec)
        before = sys.modules.get(spec.name)
        sys.modules[spec.name] = module
        with Crash() as crash:
            vars(spec)["loader"].exec_module(module)
        error = crash.error
        found: object = vars(module).get(self.kind)
        if error is None and isinstance(found, type) and issubclass(found, Hyperty):
            return found
        if before is None:
            del sys.modules[spec.name]
        else:
            sys.modules[spec.name] = before
        if error is None:
            raise BadSourceError(f"{self.where} has no hyperty {self.kind!r}")
        why = f"{self.where}: {type(error).__name__}: {error}"
        raise BadSourceError(why, _shown(error, spec.origin or "")) from error

    def _spec(self) -> ModuleSpec:
        """Find the source, with a loader that compiles it.

        Raises:
            BadSourceError: There is none.
        """
        if self.where.endswith(".py"):
            name, file = f"dev_{self.name.replace('-', '_')}", Path(self.where).absolute()
            if not file.is_file():
                raise BadSourceError(f"there is no file {self.where}")
        else:
            name, file = self.where, _origin(self.where)
        found = importlib.util.spec_from_file_location(
            name, file, loader=_Uncached(name, str(file))
        )
        if found is None:
            raise BadSourceError(f"{self.where} cannot be loaded")
        return found


def read_source(text: str) -> Source | None:
    """Read `[NAME=]module:Class` or `[NAME=]FILE.py:Class`; None: it is neither."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    return Source(match["name"] or match["kind"].lower(), match["where"], match["kind"])


def _origin(module: str) -> Path:
    found = None
    with Crash() as crash:
        found = importlib.util.find_spec(module)
    if crash.error is not None:
        raise BadSourceError(f"cannot import {module}: {crash.error}") from crash.error
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        raise BadSourceError(f"there is no module {module} with a source")
    return Path(found.origin)


def _shown(error: Exception, file: str) -> str:
    """Return the traceback from the file on; of a syntax error only the place."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()
