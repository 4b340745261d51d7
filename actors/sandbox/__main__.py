"""The program of a sandbox process, whose standard input is its pipe.

Only the host of a sandbox starts it (`actors/pipe/process.py`).
"""

import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import trio
from typing_extensions import override

from actors.kit.log import Level, configure_log
from actors.pipe.outlet import FrameParts
from actors.pipe.plan import PipeError, SandboxCode, Word, read_code, read_message
from actors.sandbox.confine import confine, preload
from actors.sandbox.contents import open_archive
from actors.sandbox.sandbox import run_sandbox
from specs.limits.foreign_code import CODE_BYTES
from specs.limits.protocol import MAX_FRAME_BYTES
from transports.link import Kind, Upgrade
from transports.socket_link import StreamLink

_LENGTH = 4
"""Number of bytes of the length of a frame of the pipe."""


class ReadableFinder(MetaPathFinder):
    """Finds installed modules, except those whose file cannot be read.

    Otherwise their import would raise another error than that of a missing module.
    """

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return spec
        try:
            Path(spec.origin).open("rb").close()
        except PermissionError:
            return None
        return spec


def main() -> None:
    """Import the modules of this project, give up all rights, and run the sandbox."""
    configure_log(Level.WARNING)
    pipe = socket.socket(fileno=0)
    code, host = read_code(_code(pipe))
    preload()
    _import(code)
    confined = confine(host, code.readable)
    print(confined.summary, file=sys.stderr, flush=True)
    trio.run(_live, pipe, code.archive, confined.lacking)


def _code(pipe: socket.socket) -> bytes:
    """Read the code, which comes before the plan."""
    parts, text = FrameParts(CODE_BYTES), None
    while text is None:
        item = read_message(_exactly(pipe, int.from_bytes(_exactly(pipe, _LENGTH), "big")))
        if item.word is not Word.CODE:
            raise PipeError("something else than code comes first")
        text = parts.add(item)
    return text


def _exactly(pipe: socket.socket, size: int) -> bytes:
    if size > MAX_FRAME_BYTES:
        raise PipeError("a frame that is too large")
    text = bytearray()
    while len(text) < size:
        piece = pipe.recv(size - len(text))
        if not piece:
            sys.exit("the process that started the sandbox is gone")
        text += piece
    return bytes(text)


def _import(code: SandboxCode) -> None:
    """Import the modules of this project that the code needs, and hide their folder."""
    for each in code.own:
        # A missing or failing module raises its error where it is used.
        with suppress(Exception):
            _import_one(*each.split(":"))
    root = sys.path.pop()
    if root in code.places:
        sys.path.append(root)
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, ReadableFinder()]
    sys.path_importer_cache.clear()


def _import_one(module: str, name: str = "") -> None:
    """Import a module, and one of its names, which may be a module that is imported late."""
    imported = import_module(module)
    if name and not hasattr(imported, name):
        import_module(f"{module}.{name}")


async def _live(pipe: socket.socket, archive: bytes, lacking: tuple[str, ...]) -> None:
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(pipe))
    link = StreamLink((Kind.UNIX, "pipe", Upgrade()), stream)
    with ExitStack() as stack:
        if archive:
            stack.enter_context(open_archive(archive))
        try:
            await run_sandbox(link, lacking)
        finally:
            with trio.CancelScope(shield=True):
                await link.aclose()
