"""What the operator of a node sees of it: readiness, metrics, its log, its farewell."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import trio

from tests.support.node.node_process import DOMAIN, EVERY_FORM, ROOT, UNHURRIED, node_process
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left, Refused, open_wire

OPTIONS = ("--domain", DOMAIN, *EVERY_FORM, *UNHURRIED)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with node_process(tmp_path_factory.mktemp("http") / "log", *OPTIONS) as running:
        yield running
        assert running.complaints == []


@pytest.fixture
def node(served):
    return served


async def got(node, path: str) -> tuple[int, str]:
    """Ask the node by HTTP; return status and text."""

    def fetch():
        url = node.ready["http_url"].rstrip("/") + path
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - http only
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    return await trio.to_thread.run_sync(fetch)


async def metrics(node) -> dict[str, float]:
    """Read the counters, by name and labels."""
    status, text = await got(node, "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_node_that_runs_is_healthy_and_ready(node, path):
    """MN-26."""
    assert (await got(node, path))[0] == 200


async def test_refusals_and_drops_are_counted(join):
    """MN-25, OBS-06, I-B12: nothing is lost without a trace."""
    peer = await join()
    before = await metrics(join.node)

    await peer.raw(b"{")
    await peer.say("update", peer.part("x"), f"comm://{DOMAIN}/none/changes", value=1)
    assert await peer.code("read", peer.part("ua"), f"hyperty://{DOMAIN}/nobody") == 404
    after = await metrics(join.node)

    grown = {name: after[name] - before.get(name, 0) for name in after}
    drops = {name: grown[name] for name in grown if "drop" in name and grown[name]}
    assert sum(drops.values()) == 2
    assert any("malformed" in name for name in drops)


async def test_metrics_name_no_peer(join):
    """S11: no address, no runtime, no token in names or labels."""
    peer = await join()
    (address,) = await peer.allocate()

    _, text = await got(join.node, "/metrics")

    for secret in (peer.name + '"', address, peer.token or "no token", "://a.ex"):
        assert secret not in text


async def test_other_paths_are_not_found(node):
    """S11."""
    for path in ("/", "/nothing", "/metrics/../etc", "/healthz/x"):
        assert (await got(node, path))[0] in {400, 404}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_an_ending_node_closes_every_link_in_order(tmp_path, how):
    """MN-07: each link is closed with a word, the process ends with 0, soon."""
    with node_process(tmp_path / "log", *OPTIONS) as node:
        guests = Joining(node, "link")
        async with guests.stack:
            peers = [await guests(form) for form in ("link", "plain", "session")]
            node.process.send_signal(how)
            for peer in peers:
                with pytest.raises(Left) as left:
                    await peer.farewell()
                assert left.value.code in {1000, 1001}
        assert await trio.to_thread.run_sync(node.process.wait) == 0
        assert node.complaints == []


async def test_records_outlive_the_node(tmp_path):
    """CON-02, MN-23: records do, sessions do not (issue: survives the process)."""
    options = (*OPTIONS, "--registry", str(tmp_path / "records.sqlite"))
    with node_process(tmp_path / "one", *options) as node:
        guests = Joining(node, "link")
        async with guests.stack:
            peer = await guests()
            (url,) = await peer.allocate()
            value = {"url": url, "runtime": peer.runtime, "status": "live"}
            to = f"domain://registry.{DOMAIN}"
            assert await peer.code("create", peer.part("registry"), to, value=value) == 200
        node.process.kill()
        node.process.wait()
    with node_process(tmp_path / "two", *options) as node:
        guests = Joining(node, "link")
        async with guests.stack:
            other = await guests()
            found = await other.code("read", other.part("registry"), to, resource=url)
        assert found in {200, 408}


async def test_a_browser_of_another_origin_is_shown_out(node):
    """S10, POL-18: at the handshake."""
    with pytest.raises(Refused) as refused:
        await open_wire(node.urls["url"], "protofly.v1", Origin="https://evil.example")
    assert refused.value.status == 403


async def test_a_too_fast_sender_is_read_more_slowly_and_loses_nothing(tmp_path):
    """L5: paced, not dropped."""
    options = ("--domain", DOMAIN, "--allow-legacy", "--message-rate", "50:10")
    with node_process(tmp_path / "log", *options) as node:
        guests = Joining(node, "link")
        async with guests.stack:
            peer = await guests()
            ids = [
                await peer.say("read", peer.part("ua"), f"hyperty://{DOMAIN}/no") for _ in range(40)
            ]
            begun = trio.current_time()
            assert [(await peer.hear())["id"] for _ in ids] == ids
            assert trio.current_time() - begun > 0.3


async def test_too_many_malformed_messages_end_a_link(tmp_path):
    """L4: ten a minute are borne."""
    with node_process(tmp_path / "log", "--domain", DOMAIN, "--allow-legacy") as node:
        guests = Joining(node, "plain")
        async with guests.stack:
            peer, other = await guests(), await guests()
            await babble(peer, 9)
            assert await peer.allocate()
            await babble(peer, 2)
            with pytest.raises(Left):
                await peer.farewell()
            assert await other.allocate()


async def babble(peer, times):
    for _ in range(times):
        await peer.raw(b"{")


async def test_the_options_in_force_can_be_shown(tmp_path):
    """MN-26: what is where is configuration."""
    command = [sys.executable, "-m", "actors", "config", "show", "node", "--help"]
    done = await trio.run_process(
        command, cwd=ROOT, capture_stdout=True, capture_stderr=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert b"origin" in done.stdout
    assert json.dumps(done.returncode) == "0"
