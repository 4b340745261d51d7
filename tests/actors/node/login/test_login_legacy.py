"""Peers that cannot log in, at a node with keys that lets them in: nobody harms the other (S2)."""

from contextlib import suppress

import pytest
import trio

from actors.node.login.provider import Admission
from specs.limits.protocol import SESSION_IDLE
from tests.support.node.issuer import Issuer, login_by, opened
from tests.support.node.legacy_peer import OLD_INSIDE, plain_peer, session_outsider, session_peer
from tests.support.node.node_peer import RA, open_world
from transports.errors import LinkError

PLAIN_RA = "runtime://a.ex/ra"


def mixed_world(issuer):
    """Let in everybody; who brings credentials must bring good ones."""
    login = login_by(issuer, admission=Admission.ANYBODY)
    return open_world(login=login, allow_legacy=True)


async def plainly(world, runtime):
    """Claim a session as the plain stub does; return what it is answered, if anything."""
    peer = await plain_peer(world, runtime)
    with suppress(LinkError), trio.move_on_after(1):
        return (await peer.hear())["body"]["code"]
    return None


async def with_handshake(world, runtime):
    peer = await session_outsider(world, runtime)
    return (await peer.session("open"))["body"]["code"]


async def with_a_guess(world, runtime):
    peer = await session_outsider(world, runtime)
    return (await peer.session("re-open", f"{runtime}/{'0' * 64}"))["body"]["code"]


@pytest.mark.parametrize(
    ("tries", "code"), [(plainly, 409), (with_handshake, 409), (with_a_guess, 401)]
)
async def test_a_peer_that_cannot_log_in_takes_nothing_from_one_that_has(
    tries, code, autojump_clock
):
    issuer = Issuer()
    async with mixed_world(issuer) as world:
        alice = await world.outsider()
        await opened(alice, issuer.token())
        [address] = await alice.allocate()

        assert await tries(world, PLAIN_RA) == code
        assert (await alice.control("ping")).code == 200
        await alice.link.aclose()
        assert await tries(world, PLAIN_RA) == code
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=alice.token)).code == 200
        assert address in (await world.node.sessions())[0].addresses


@pytest.mark.parametrize("enter", [plain_peer, session_peer])
async def test_a_login_takes_nothing_from_a_peer_that_cannot_log_in(enter, autojump_clock):
    issuer = Issuer()
    async with mixed_world(issuer) as world:
        old = await enter(world, PLAIN_RA)
        address = await old.allocate()

        assert (await opened(await world.outsider(), issuer.token())).code == 409
        assert await old.allocate() != address
        assert await world.states() == {RA: "open"}


@pytest.mark.parametrize("enter", [plain_peer, session_peer])
async def test_a_name_is_free_again_after_its_holder_has_left(enter, autojump_clock):
    issuer = Issuer()
    async with mixed_world(issuer) as world:
        old = await enter(world, PLAIN_RA)
        await old.link.aclose()
        await trio.sleep(SESSION_IDLE + 1)
        issuer.now = trio.current_time()

        assert (await opened(await world.outsider(), issuer.token())).code == 200


async def test_a_stub_whose_session_is_forgotten_opens_anew_with_its_old_token(autojump_clock):
    """It can say nothing else: the token is no credentials (C-65)."""
    issuer = Issuer()
    async with mixed_world(issuer) as world:
        old = await session_outsider(world)
        old.token = "0" * 64

        assert (await old.session("re-open", old.session_url))["body"]["code"] == 410
        assert (await old.session("open"))["body"]["code"] == 200
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_a_login_token_in_an_address_opens_nothing(autojump_clock):
    """It would be in the log of every proxy."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer), allow_legacy=True) as world:
        old = await session_outsider(world, PLAIN_RA)
        token = issuer.token()

        assert (await old.session("open", f"{PLAIN_RA}/{token}"))["body"]["code"] == 401
        assert (await opened(await world.outsider(), token)).code == 200


@pytest.mark.parametrize("allow_legacy", [True, False])
async def test_where_a_login_is_asked_for_no_other_form_gets_in(allow_legacy, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer), allow_legacy=allow_legacy) as world:
        if not allow_legacy:
            assert (world.node.legacy_url, world.node.session_url) == (None, None)
            return
        assert await plainly(world, PLAIN_RA) == 401
        assert await with_handshake(world, PLAIN_RA) == 401
        assert await world.states() == {}
