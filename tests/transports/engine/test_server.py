"""The NATS server of one's own: what it keeps on this machine."""

import trio

from tests.support.nats_server import needs_server
from transports.engine import server

pytestmark = needs_server


async def test_the_log_of_a_server_is_bounded_and_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(server, "NATS_LOG_BYTES", 200)
    async with server.open_server():
        (folder,) = tmp_path.iterdir()
        older = await trio.to_thread.run_sync(lambda: [*folder.glob("log.*")])
        assert 0 < len(older) <= server.NATS_LOGS
    assert [*tmp_path.iterdir()] == []
