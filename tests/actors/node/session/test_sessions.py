"""Sessions as runtimes see them (M-14..M-17, MN-04..MN-08, I-M1..I-M4)."""

import pytest

from tests.support.node.node_peer import ALLOCATION, RA, RB, SESSION, open_world

GUESS = "0" * 64


async def test_nothing_is_done_for_a_link_without_a_session(autojump_clock):
    async with open_world() as world:
        outsider = await world.outsider()

        answer = await outsider.ask("create", f"{RA}/ua", ALLOCATION, scheme="hyperty")

        assert answer.code == 401
        assert await world.states() == {}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("open", {}, 400),
        ("open", {"runtimeURL": "nonsense"}, 400),
        ("open", {"runtimeURL": f"{RA}/ua"}, 400),
        ("open", {"runtimeURL": "hyperty://a.ex/ra"}, 400),
        ("open", {"runtimeURL": RB}, 401),
        ("re-open", {"runtimeURL": RA, "token": "00"}, 410),
        ("close", {}, 401),
        ("ping", {}, 401),
        ("dance", {}, 400),
    ],
)
async def test_session_control_that_makes_no_sense_is_refused(method, params, code, autojump_clock):
    """MSG-15: an unknown method is 400."""
    async with open_world() as world:
        outsider = await world.outsider(RA)

        assert (await outsider.control(method, **params)).code == code


async def test_session_control_is_by_execute_only(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()

        assert (await peer.ask("create", peer.stub, SESSION, value=1)).code == 400


async def test_a_link_has_one_session_only(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)
        peer.stub = f"{RB}/protostub/1"

        assert (await peer.control("open", runtimeURL=RB)).code == 409


async def test_a_reopen_with_a_wrong_token_gets_401(autojump_clock):
    """SEC-02."""
    async with open_world() as world:
        await world.peer(RA)
        thief = await world.outsider(RA)

        assert (await thief.control("re-open", runtimeURL=RA, token=GUESS)).code == 401
