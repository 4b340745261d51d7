"""Without the extra, data channels are not offered, and asking for them says what is lacking."""

import pytest

from actors.cli import options
from actors.runtime import config
from tests.support.runtime.channels import CERTIFICATE, HOST
from transports.errors import DialError
from transports.link import ChannelTerms
from transports.system import open_system_network
from transports.webrtc import process


@pytest.fixture
def _not_installed():
    with pytest.MonkeyPatch.context() as patch:
        for module in (config, process, options):
            patch.setattr(module, "is_webrtc_installed", lambda: False)
        yield


@pytest.mark.usefixtures("_not_installed")
async def test_a_network_says_what_is_lacking():
    async with open_system_network() as network:
        with pytest.raises(DialError, match="the extra 'webrtc'"):
            async with network.negotiate(ChannelTerms(CERTIFICATE, HOST)):
                pass
