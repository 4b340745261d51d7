"""Who opens the session of another domain's node speaks for a domain, so it logs in (S4, S14)."""

import pytest

from actors.node.login.provider import Admission
from tests.support.node.issuer import Issuer, login_by, opened
from tests.support.node.node_peer import RA, open_world

NODE, OTHER = "domain://msg-node.b.ex", "domain://msg-node.c.ex"

ADMISSIONS = pytest.mark.parametrize("admission", Admission)


@ADMISSIONS
@pytest.mark.parametrize(
    "bound", [None, RA, OTHER, f"{NODE}/sm"], ids=["no", "runtime", "other", "part"]
)
async def test_a_token_that_is_not_bound_to_a_node_does_not_open_its_session(
    admission, bound, autojump_clock
):
    """SEC-07."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        peer = await world.outsider(NODE)
        assert (await opened(peer, issuer.token(runtime=bound))).code == 401
        assert await world.states() == {}
