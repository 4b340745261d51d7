"""Without the extra, data channels are not offered, and asking for them says what is lacking."""

import pytest

from actors.cli import options
from actors.runtime import config
from actors.runtime.config import RuntimeConfig
from tests.support.command import typed
from tests.support.runtime.channels import CERTIFICATE, HOST
from transports.errors import DialError
from transports.link import ChannelTerms, Kind
from transports.system import open_system_network
from transports.webrtc import process

RUNTIME = ("runtime", "--domain", "a.example", "--name", "ra", "--node", "ws://127.0.0.1:1/link")


@pytest.fixture
def _not_installed():
    with pytest.MonkeyPatch.context() as patch:
        for module in (config, process, options):
            patch.setattr(module, "is_webrtc_installed", lambda: False)
        yield


@pytest.mark.usefixtures("_not_installed")
def test_a_command_says_what_is_lacking():
    ended = typed(*RUNTIME, "--p2p", "tcp,webrtc")

    assert ended.status == 2
    assert "pip install 'protofly[webrtc]'" in " ".join(ended.err)


@pytest.mark.usefixtures("_not_installed")
def test_a_configuration_says_what_is_lacking():
    with pytest.raises(ValueError, match=r"protofly\[webrtc\]"):
        RuntimeConfig(domain="a.example", name="ra", kinds=(Kind.TCP, Kind.WEBRTC))
    assert RuntimeConfig(domain="a.example", name="ra", kinds=(Kind.TCP,))


@pytest.mark.usefixtures("_not_installed")
async def test_a_network_says_what_is_lacking():
    async with open_system_network() as network:
        with pytest.raises(DialError, match="the extra 'webrtc'"):
            async with network.negotiate(ChannelTerms(CERTIFICATE, HOST)):
                pass


def test_an_unknown_kind_is_refused_with_those_there_are():
    ended = typed(*RUNTIME, "--p2p", "pigeon")

    assert ended.status == 2
    assert "websocket, tcp, unix, webrtc, none" in " ".join(ended.err)
