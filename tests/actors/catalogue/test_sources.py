"""What every catalogue gives, wherever it is: one contract (CAT-09, S15)."""

import os
from contextlib import asynccontextmanager

import pytest

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.source import DirectorySource, HttpSource, MemorySource, package_path
from actors.http.config import HttpConfig, ShownCatalogue
from actors.kit.http_client import ServerUrl, dial_public
from actors.node.app import open_node
from actors.node.config import NodeConfig
from specs.addresses.address import DOMAIN_KEYS
from specs.limits.foreign_code import DESCRIPTOR_BYTES
from tests.support.catalogues import STUB_B
from tests.support.node.http_server import Said, open_http_server
from tests.support.trace.memory import MemoryTracer
from transports.system import open_system_network

FILES = {
    DOMAIN_KEYS: b'{"keys": []}',
    STUB_B.path: b"a.b.c",
    package_path("ab" * 32): bytes(1_500_000),
}


def lay(directory):
    for path, content in FILES.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (directory / "secret").write_bytes(b"secret")
    return directory


@asynccontextmanager
async def in_memory(_):
    yield MemorySource("memory", FILES)


@asynccontextmanager
async def in_directory(directory):
    yield DirectorySource(lay(directory))


@asynccontextmanager
async def at_node(directory):
    shown = ShownCatalogue("b.ex", lay(directory))
    config = NodeConfig(domain="b.ex", http=HttpConfig("127.0.0.1:0", catalogue=shown))
    async with open_system_network() as network, open_node(config, network, MemoryTracer()) as node:
        source = HttpSource(ServerUrl.read(node.http_url))
        yield source
        await source.aclose()


@pytest.fixture(params=[in_memory, in_directory, at_node], ids=["memory", "directory", "node"])
def opened(request, tmp_path):
    return lambda: request.param(tmp_path)


async def test_a_file_of_the_largest_size_is_returned(opened):
    async with opened() as source:
        assert await source.read(STUB_B.path, 5) == FILES[STUB_B.path]


@pytest.mark.parametrize(
    "path",
    [
        ".well-known/protocolstub/other", ".well-known/hyperty/default", "secret", "../secret",
        ".well-known/../secret", ".well-known/protocolstub/../../secret", "/etc/passwd", "",
        ".well-known", ".well-known/protocolstub", ".well-known/protocolstub/.hidden",
        ".well-known/protocolstub/de\0fault", ".well-known//protocolstub/default",
        ".well-known/protocolstub/default/", ".well-known/protocolstub/" + "x" * 300,
    ],
)  # fmt: skip
async def test_where_nothing_stands_nothing_is_given(opened, path):
    async with opened() as source:
        with pytest.raises((NotServedError, SourceAwayError)):
            await source.read(path, DESCRIPTOR_BYTES)


# ---- directories


async def test_a_place_without_a_regular_file_does_not_block(tmp_path):
    source = DirectorySource(lay(tmp_path))
    os.mkfifo(tmp_path / ".well-known/protocolstub/pipe")
    with pytest.raises(NotServedError):
        await source.read(".well-known/protocolstub/pipe", 10)


# ---- servers


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Said(500), "it answers with status 500"),
        (Said(204), "it answers with status 204"),
        (Said(302, headers=(("location", "http://127.0.0.1:1/"),)), "redirect"),
        (Said(raw=b"x" * 100), "larger than 10 bytes"),
    ],
    ids=["error", "empty", "redirect", "large"],
)
async def test_an_invalid_answer_of_a_server_is_refused(said, why):
    async def handler(_):
        return said

    async with open_http_server(handler) as server:
        source = HttpSource(ServerUrl.read(server.url))
        with pytest.raises(SourceAwayError, match=why):
            await source.read(STUB_B.path, 10)
        await source.aclose()
    assert [call.segments for call in server.calls] == [tuple(STUB_B.path.split("/"))]


async def test_an_unknown_name_is_away():
    source = HttpSource(ServerUrl.read("http://nobody.invalid"), dial_public)
    with pytest.raises(SourceAwayError, match=r"nobody\.invalid:80 cannot be read"):
        await source.read(STUB_B.path, 10)
    await source.aclose()
