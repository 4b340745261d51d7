"""What a profile may say of a stub that ships, and what is said to one that says more (PFY-01)."""

import attrs
import pytest

from actors.runtime.catalogue import SHIPPED
from actors.runtime.stubs.stub import StubConfig
from tests.actors.runtime.stubs.test_loader import HERE, R, S, open_loader

PLACES = dict.fromkeys(("rest", "http-json", "rest-registry"), "http://127.0.0.1:8080/rest")


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
