"""The catalogue of a domain whose nodes share an engine over NATS, on real sockets."""

from functools import partial

import pytest
import trio

import actors
from actors.kit.files import write_whole
from specs.limits.group import GROUP_FILE_BYTES
from tests.support.catalogues import B, Publishing, archive_of, noise
from tests.support.nats_server import needs_server, run_server
from tests.support.node.web import get
from transports.engine.nats import open_engine
from transports.nats.connection import ServerUrl, Terms


@pytest.mark.timeout(240)
@needs_server
async def test_a_package_of_nearly_the_largest_size_reaches_the_other_node(tmp_path):
    domain = Publishing()
    archive = archive_of(tmp_path / "code", noise(GROUP_FILE_BYTES - 50_000))
    assert 0 <= GROUP_FILE_BYTES - len(archive) < 40_000
    domain.serves(domain.code(archive))

    def config(name):
        shown = actors.ShownCatalogue(B, tmp_path / name)
        http = actors.HttpConfig("127.0.0.1:0", catalogue=shown)
        return actors.NodeConfig(domain=B, engine=engine, http=http)

    with run_server() as server:
        engine = partial(open_engine, Terms((ServerUrl.read(server.url),)), B)
        async with actors.open_node(config("1")), actors.open_node(config("2")) as two:
            for path, content in domain.files.items():
                write_whole(tmp_path / "1" / path, content)
            with trio.fail_after(60):
                for path, content in domain.files.items():
                    while (await get(f"{two.http_url}/{path}")).body != content:
                        pass
