"""Stub packages, and what finds them: as a catalogue does once it has verified them."""

import io
import zipfile
from pathlib import Path

from typing_extensions import override

from actors.pipe.process import open_process_sandbox
from actors.runtime.isolation import StubCode, sandboxed_stub
from actors.runtime.stubs.catalogue import Catalogue, Descriptor, NotInCatalogueError, StubKind
from specs.addresses.address import catalogue_stub

LINE_CHAT = Path(__file__).parent / "line_chat" / "package"


def zipped(sources):
    """Pack sources, given by path."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for path, source in sources.items():
            package.writestr(path, source)
    return archive.getvalue()


def code_of(source, entry_point="guest:activate"):
    """Code of one module."""
    return StubCode(zipped({"guest.py": source}), entry_point)


class OneStub(Catalogue):
    """Knows the stub of one domain."""

    def __init__(self, domain, code, endpoints, spawn=open_process_sandbox, options=None):
        self._address = catalogue_stub(domain)
        self._activate = sandboxed_stub(code, endpoints, spawn)
        self._options = options or {}

    @override
    async def find(self, address):
        if address != self._address:
            raise NotInCatalogueError(address)
        return Descriptor(address, StubKind.NODE, self._activate, None, self._options)
