"""Direct links by data channels: both ends in this process, WebRTC in another one."""

import pytest
import trio

from tests.support.runtime.channels import open_shared_network
from tests.support.runtime.domain import DomainOptions, go_live, open_domain
from transports.link import Kind
from transports.webrtc.process import is_webrtc_installed

pytestmark = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)

OPTIONS = DomainOptions(kinds=(Kind.WEBRTC,), network=open_shared_network)


async def test_a_data_channel_carries_messages_in_both_directions():
    async with open_domain("alice", "bob", options=OPTIONS) as domain:
        with trio.fail_after(20):
            await go_live(domain)
            alice, bob = domain["alice"], domain["bob"]
            for number in range(50):
                assert (await alice.ask(bob, number)).via[0].endswith("/conn/1")
                assert (await bob.ask(alice, number)).via[0].endswith("/p2prequester/1")
