"""What a profile may say of a stub that ships, and what is said to one that says more (PFY-01)."""

import attrs
import pytest

from actors.kit.ids import IdSource
from actors.runtime.catalogue import SHIPPED
from actors.runtime.stubs.stub import StubConfig, StubContext
from actors.runtime.stubs.wire import StubOptionError
from tests.actors.runtime.stubs.test_loader import HERE, R, S, open_loader
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

PLACES = dict.fromkeys(("rest", "http-json", "rest-registry"), "http://127.0.0.1:8080/rest")


def context(stub, options, url=None):
    url = url or PLACES.get(stub, "ws://127.0.0.1:8080/link")
    config = StubConfig(R, "a.ex", node_url=url, options=options)
    return StubContext(
        S, KeepingPort(S), config, MemoryNetwork(), MemoryTracer(), IdSource(), bytes
    )


@pytest.mark.parametrize("stub", SHIPPED)
def test_every_stub_that_ships_is_made_of_a_profile_that_only_says_where(stub):
    assert SHIPPED[stub](context(stub, {}))


@pytest.mark.parametrize(
    ("stub", "options", "why"),
    [
        ("websocket", {"colour": "red"}, "there is no option 'colour'; there are none"),
        (
            "legacy-websocket",
            {"colour": "red"},
            "there is no option 'colour'; there are 'ids' or 'paths'",
        ),
        ("legacy-session", {"ids": "x"}, "the option 'ids' is 'x'; it can be 'number' or 'text'"),
        ("legacy-session", {"ids": 7}, "the option 'ids' is 7; it can be 'number' or 'text'"),
        ("rest", {"receive": None}, "is None; it can be 'long-poll' or 'sse'"),
        ("rest", {"retries": "5"}, "there is no option 'retries'; there are 'receive'"),
    ],
)
def test_an_unknown_option_of_a_stub_is_one_clear_error(stub, options, why):
    with pytest.raises(StubOptionError) as refused:
        SHIPPED[stub](context(stub, options))
    assert str(refused.value).startswith(f"the stub {stub} cannot be configured: ")
    assert why in str(refused.value)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1/link", "https://a.ex/rest", "nonsense"])
def test_requests_go_to_an_http_url_only(url):
    with pytest.raises(StubOptionError, match="is none such as http://host:port/rest"):
        SHIPPED["rest"](context("rest", {}, url))


@pytest.mark.parametrize("stub", SHIPPED)
async def test_such_a_profile_is_not_deployed_and_it_is_said_why(stub, autojump_clock):
    """STB-14."""
    async with open_loader(SHIPPED[stub]) as (world, loader, reported):
        url = PLACES.get(stub, "ws://127.0.0.1:8080/link")
        config = StubConfig(R, "a.ex", node_url=url, options={"colour": "red"})
        loader.load(S, HERE, config)
        await world.settle()
        (failed,) = [one for one in reported if isinstance(one, tuple)]
        assert "there is no option 'colour'" in failed[2]

        loader.load(f"{S}0", HERE, attrs.evolve(config, options={}))
        await world.settle()
        assert reported[-1] == ("deployed", f"{S}0")
