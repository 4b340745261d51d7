"""Three nodes of one domain as processes, and a stub that is published at one of them."""

import signal
from contextlib import AsyncExitStack

import pytest
import trio

from actors.catalogue.client import CatalogueClient
from actors.catalogue.errors import RefusedDescriptorError
from actors.catalogue.memory import CatalogueStore
from actors.catalogue.publishing import CatalogueFolder
from actors.catalogue.source import HttpSource, Places
from actors.kit.http_client import ServerUrl
from specs.addresses.address import DOMAIN_KEYS
from tests.support.catalogues import HERE, STUB_B, B, Publishing, Wall, archive_of
from tests.support.command import serving
from tests.support.nats_server import needs_server, run_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), needs_server]

PATIENCE = 60.0


async def fetched(domain, node):
    """What a runtime that knows nothing gets at a node, once it gets anything: counter and code."""
    places = Places({B: lambda _: HttpSource(ServerUrl.read(node.ready["http_url"]))})
    with trio.fail_after(PATIENCE):
        while True:
            store = CatalogueStore()
            trust = domain.trust(publishers=["acme"])
            client = CatalogueClient(places, trust, HERE, store, Wall(domain).offset)
            try:
                found = await client.find(STUB_B)
            except RefusedDescriptorError:
                await trio.sleep(0.2)  # real time: it tries again
            else:
                return found.descriptor.counter, found.package


async def test_a_stub_that_is_published_at_a_node_is_fetched_at_all_and_outlives_it(tmp_path):
    """CAT-09."""
    domain, archive = Publishing(), archive_of(tmp_path / "code")
    domain.serves(domain.code(archive, counter=7))
    with run_server() as server:
        async with AsyncExitStack() as stack:

            async def started(name):
                (tmp_path / name).mkdir()
                return await stack.enter_async_context(
                    serving(
                        *("node", "--domain", B, "--engine", server.url, "--node-name", name),
                        *("--http", "127.0.0.1:0", "--catalogue", str(tmp_path / name)),
                    )
                )

            nodes = [await started(name) for name in ("a", "b", "c")]
            text, keys = domain.files[STUB_B.path], domain.files[DOMAIN_KEYS]
            CatalogueFolder(tmp_path / "a").publish(text, domain.now, archive, keys)
            for node in nodes:
                assert await fetched(domain, node) == (7, archive)
            assert await nodes[0].stop(signal.SIGKILL) == -signal.SIGKILL
            late = await started("d")
            for node in (nodes[1], late):
                assert await fetched(domain, node) == (7, archive)
            assert list((tmp_path / "d").iterdir()) == []
