"""Who opens the session of another domain's node speaks for a domain, so it logs in (S4, S14)."""

import pytest
import trio

from actors.node.login.provider import Admission
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
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


@ADMISSIONS
async def test_a_token_that_is_bound_to_a_node_opens_its_session_and_no_other(
    admission, autojump_clock
):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        for one in (OTHER, RA, "domain://msg-node.a.ex"):
            outsider = await world.outsider(one)
            assert (await opened(outsider, issuer.token(runtime=NODE))).code in {401, 403}
        assert (await opened(await world.outsider(NODE), issuer.token(runtime=NODE))).code == 200
        assert await world.states() == {NODE: "open"}


@ADMISSIONS
async def test_where_there_are_keys_no_node_comes_without_a_token(admission, autojump_clock):
    """SEC-07: Peers that cannot log in may be let in for all that; a node can."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        peer = await world.outsider(NODE)
        assert (await peer.control("open", runtimeURL=NODE)).code == 401


@pytest.mark.parametrize(("user", "code"), [(ALICE, 200), (BOB, 409)])
async def test_a_node_that_lost_its_token_takes_its_session_over_by_a_login(
    user, code, autojump_clock
):
    """As after a kill: also while the old link stands, and only as who it was."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        first = await world.outsider(NODE)
        await opened(first, issuer.token(runtime=NODE))
        again = await world.outsider(NODE)
        assert (await opened(again, issuer.token(runtime=NODE, sub=user))).code == code
        await first.link.aclose()
        await trio.sleep(1)
        third = await world.outsider(NODE)
        assert (await opened(third, issuer.token(runtime=NODE, sub=user))).code == code
