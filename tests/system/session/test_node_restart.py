"""A node that is stopped or killed, and started again, has its runtimes back by themselves.

Each runtime has one login token, which opens one session: no person brings another.
"""

import json
import signal
from contextlib import AsyncExitStack, suppress

import pytest
import trio

import actors
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import token_credentials
from tests.support.command import called
from tests.support.node.node_peer import DOMAIN, Peer
from tests.support.node.node_process import UNHURRIED, node_process
from transports.errors import LinkError
from transports.link import Kind
from transports.system import open_system_network

pytestmark = pytest.mark.timeout(240)

BACK_WITHIN = 180.0
"""Seconds until all runtimes are back: less than ten, where nothing else is done meanwhile."""


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")


@pytest.fixture
def key(tmp_path):
    return json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])


def token_of(key, user):
    who = ("--user", f"user://{DOMAIN}/{user}", "--domain", DOMAIN)
    return called(issue, "--key", key["key"], *who).out[0]


def started(tmp_path, key, listen="127.0.0.1:0"):
    options = ("--domain", DOMAIN, "--registry", str(tmp_path / "r.sqlite"), "--jwks", key["jwks"])
    return node_process(tmp_path / "node.log", *options, "--listen", listen, *UNHURRIED)


def place(url):
    return url.removeprefix("ws://").removesuffix("/link")


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL], ids=str)
async def test_a_runtime_comes_back_by_itself(tmp_path, key, ended_by, caplog):
    async with open_system_network() as network, AsyncExitStack() as opened:
        tokens = [token_of(key, name) for name in ("alice", "bob")]
        with started(tmp_path, key) as node:
            url = node.ready["url"]
            here, there = [
                await opened.enter_async_context(
                    actors.open_runtime(
                        RuntimeConfig(
                            domain=DOMAIN, name=name, node=url, credentials=token_credentials(token)
                        )
                    )
                )
                for name, token in zip(("ra", "rb"), tokens, strict=True)
            ]
            caller, echo = await here.deploy(Echo), await there.deploy(Echo)
            assert (await caller.request(echo.url, 6)).body["value"] == 6
            node.process.send_signal(ended_by)
            await trio.to_thread.run_sync(node.process.wait, 60.0)

        with started(tmp_path, key, place(url)) as node:
            with trio.fail_after(BACK_WITHIN):
                while (answer := await caller.request(echo.url, 7)).code != 200:  # noqa: ASYNC110 - another process
                    await trio.sleep(0.05)
                assert answer.body["value"] == 7
                assert await codes(network, url, tokens) == {401}
                # The names are theirs still.
                thief = [token_of(key, "carol"), token_of(key, "carol")]
                assert await codes(network, url, thief, ("ra", "rb")) == {409}
            # A node that went down in order had passed on all that it had.
            has_warned = any("messages missing" in one.getMessage() for one in caplog.records)
            assert has_warned is (ended_by == signal.SIGKILL)
            await opened.aclose()
            assert node.complaints == []


class Owner(actors.Hyperty):
    """Lets one observer in."""

    def __init__(self):
        self.friend = ""

    async def on_subscribe(self, url, observer):
        if observer != self.friend:
            raise actors.Refused(403, "not for you")


async def refused(stranger, url):
    """Observe until the owner says no; whoever cannot be reached yet says no, too."""
    while True:
        with pytest.raises(actors.ObjectError) as caught:
            await stranger.observe(url).__aenter__()
        if caught.value.code == 403:
            return
        await trio.sleep(0.1)  # real time: it asks again


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL], ids=str)
async def test_an_observer_with_consent_hears_again_and_no_other(tmp_path, key, ended_by):
    """Consents are not stored: observers ask their owners again, and these decide (S3)."""
    async with AsyncExitStack() as opened:
        with started(tmp_path, key) as node:
            url = node.ready["url"]
            runtimes = [
                await opened.enter_async_context(
                    actors.open_runtime(
                        RuntimeConfig(
                            domain=DOMAIN, name=name, node=url,
                            credentials=token_credentials(token_of(key, name)),
                        )
                    )
                )
                for name in ("ra", "rb", "rc")
            ]  # fmt: skip
            owner = Owner()
            reporter = await runtimes[0].deploy(lambda: owner)
            friend, stranger = [await one.deploy(Echo) for one in runtimes[1:]]
            owner.friend = friend.url
            todo = await opened.enter_async_context(reporter.report("comm", {"n": 0}))
            copy = await opened.enter_async_context(friend.observe(todo.url))
            await refused(stranger, todo.url)
            await todo.set("n", 1)
            node.process.send_signal(ended_by)
            await trio.to_thread.run_sync(node.process.wait, 60.0)

        with started(tmp_path, key, place(url)) as node:
            with trio.fail_after(2 * BACK_WITHIN):
                number = 1
                while copy.value["n"] == 1:
                    number += 1
                    with suppress(actors.ObjectError):
                        await todo.set("n", number)
                    await trio.sleep(0.1)  # real time: it asks again
                await refused(stranger, todo.url)
            await opened.aclose()
            assert node.complaints == []


async def test_what_is_registered_is_waited_for(tmp_path, key):
    """The registry's file says whose a hyperty is: a request waits for the runtime."""
    async with open_system_network() as network:
        peers, tokens = [], []
        with started(tmp_path, key) as node:
            url = node.ready["url"]
            for name in ("ra", "rb"):
                peer = await come(network, url, name, "open", token_of(key, name))
                peers.append(peer)
                tokens.append(peer.token)
            [echo] = await peers[1].allocate()
            record = {"url": echo, "runtime": peers[1].runtime, "status": "live", "expires": 3600}
            registry, sender = f"domain://registry.{DOMAIN}", f"{peers[1].runtime}/registry"
            assert (await peers[1].ask("create", sender, registry, value=record)).code == 200
            node.process.send_signal(signal.SIGKILL)
            await trio.to_thread.run_sync(node.process.wait, 60.0)
        with started(tmp_path, key, place(url)) as node:
            caller = await come(network, url, "ra", "re-open", tokens[0])
            asked = await caller.post("create", f"{caller.runtime}/ua", echo, value=1)
            assert await caller.silence()
            target = await come(network, url, "rb", "re-open", tokens[1])
            with trio.fail_after(BACK_WITHIN):
                while (heard := await target.hear()).id != asked.id:
                    pass
            assert (heard.from_, heard.to) == (asked.from_, echo)
            assert node.complaints == []


async def come(network, url, name, method, token):
    peer = Peer(await network.dial(Kind.WEBSOCKET, url), f"hyperty-runtime://{DOMAIN}/{name}")
    answer = await peer.control(method, runtimeURL=peer.runtime, token=token)
    assert answer.code == 200, answer.body
    peer.token = answer.body["value"]["sessionToken"]
    return peer


class Returning:
    """A peer that comes back as often as its node does."""

    def __init__(self, network, url, logins, number, token):
        self.logins = logins
        self.network, self.url = network, url
        self.runtime = f"hyperty-runtime://{DOMAIN}/r{number}"
        self.asked, self.token = "open", token
        self.came = 0

    async def run(self):
        while True:
            with suppress(LinkError, OSError):
                await self.stay()
            await trio.sleep(0.2)  # real time: it tries again

    async def come(self):
        link = await self.network.dial(Kind.WEBSOCKET, self.url)
        peer = Peer(link, self.runtime)
        answer = await peer.control(self.asked, runtimeURL=self.runtime, token=self.token)
        assert answer.code == 200, answer.body
        self.asked, self.token = "re-open", answer.body["value"]["sessionToken"]
        self.came += 1
        return peer

    async def stay(self):
        if self.came:
            peer = await self.come()
        else:
            async with self.logins:
                peer = await self.come()
        try:
            await peer.read_on()
        finally:
            await trio.aclose_forcefully(peer.link)


async def all_came(peers, times):
    with trio.fail_after(BACK_WITHIN):
        while min(peer.came for peer in peers) < times:  # noqa: ASYNC110 - of other processes
            await trio.sleep(0.02)


@pytest.mark.parametrize(
    "ended_by", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL], ids=str
)
async def test_five_hundred_come_back(tmp_path, key, ended_by):
    tokens = [token_of(key, f"u{number}") for number in range(500)]
    async with open_system_network() as network, trio.open_nursery() as nursery:
        with started(tmp_path, key) as node:
            url = node.ready["url"]
            logins = trio.CapacityLimiter(8)
            peers = [Returning(network, url, logins, *one) for one in enumerate(tokens)]
            for peer in peers:
                nursery.start_soon(peer.run)
            await all_came(peers, 1)
            node.process.send_signal(ended_by)
            await trio.to_thread.run_sync(node.process.wait, 60.0)
        for times in (2, 3):
            with started(tmp_path, key, place(url)) as node:
                await all_came(peers, times)
                assert await codes(network, url, tokens[:10]) == {401}
                assert node.complaints == []
                node.process.send_signal(ended_by)
                await trio.to_thread.run_sync(node.process.wait, 60.0)
        nursery.cancel_scope.cancel()


async def codes(network, url, tokens, names=None):
    """Return the answers to logins by tokens, for names that nobody has, or for these."""
    seen = set()
    for name, token in zip(names or (f"thief{n}" for n in range(500)), tokens, strict=False):
        link = await network.dial(Kind.WEBSOCKET, url)
        peer = Peer(link, f"hyperty-runtime://{DOMAIN}/{name}")
        seen.add((await peer.control("open", runtimeURL=peer.runtime, token=token)).code)
        await link.aclose()
    return seen
