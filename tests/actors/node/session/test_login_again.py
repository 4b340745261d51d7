"""The same runtime again: by its token, by a login, and when its credentials are over."""

from contextlib import suppress

import trio
import trio.testing

from specs.limits.node import LOGIN_TIMEOUT, SESSION_LIFE
from specs.limits.protocol import MAX_FAILED_OPENS, OPEN_TIMEOUT, SESSION_IDLE
from specs.message import Message, MessageType
from tests.support.node.issuer import BOB, Issuer, login_by, opened
from tests.support.node.node_peer import RA, RB, open_world
from transports.errors import LinkError

# ---- MN-05: the end of credentials


async def until_left(peer):
    """Answer pings until the node has left."""
    with suppress(LinkError):
        while True:
            await peer.hear()


async def test_a_token_that_expired_while_a_busy_node_waited_is_refused(mock_clock):
    """MN-05: its answer waits for whoever logs in again."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer, life=100.0)) as world:
        await opened(await world.outsider(), issuer.token())
        late = Message(7, MessageType.CREATE, f"{RA}/ua", f"{RB}/ua")
        items = (late, Message(8, MessageType.UPDATE, RA, RB))
        assert world.node._bus.try_tell(lambda node: node.take_items(1, items))
        issuer.now = 200.0
        mock_clock.jump(200.0)
        await trio.testing.wait_all_tasks_blocked()
        assert await world.states() == {RA: "detached"}
        again = await world.outsider()
        await opened(again, issuer.token())
        answer = await again.hear()

        assert (answer.id, answer.code) == (7, 401)
        assert "log in again" in answer.body["description"]


def test_a_login_is_good_for_half_a_day():
    assert SESSION_LIFE == 12 * 3600
    assert LOGIN_TIMEOUT < OPEN_TIMEOUT < SESSION_IDLE


# ---- MN-05: a token of its own in a message


async def test_a_message_with_another_login_token_is_refused_and_its_session_stays(autojump_clock):
    """MN-05: also with a good one of the same user that opened no session, or of another."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        ra, rb = await world.outsider(RA), await world.outsider(RB)
        mine, theirs = issuer.token(), issuer.token(sub=BOB)
        await opened(ra, mine)
        await opened(rb, theirs)
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        for wrong in (theirs, issuer.token(), f"{mine}x", 7):
            answer = await ra.ask("create", alice, bob, idToken=wrong)
            assert (answer.code, "login token" in answer.body["description"]) == (401, True)
        assert await rb.silence()
        assert (await ra.ask("create", alice, f"{bob}9", idToken=mine)).code == 404


async def test_wrong_tokens_in_messages_cost_the_link(autojump_clock):
    """S2: they cannot be tried out."""
    async with open_world() as world:
        ra = await world.peer(RA)
        for _ in range(MAX_FAILED_OPENS):
            await ra.ask("create", f"{RA}/ua", f"{RB}/ua", sessionToken="guess")
        await ra.post("create", f"{RA}/ua", f"{RB}/ua", sessionToken="guess")
        with trio.fail_after(10):
            await until_left(ra)


async def test_a_message_with_the_token_of_its_session_goes_on_without_it(autojump_clock):
    """MN-05, C-64: the token is for the node, and no receiver gets it."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        await ra.post("create", alice, bob, sessionToken=ra.token, value=1)
        heard = await rb.hear()
        assert (heard.from_, heard.body["value"]) == (alice, 1)
        assert "sessionToken" not in heard.body


async def test_a_message_with_the_login_token_of_its_session_goes_on_without_it(autojump_clock):
    """MN-05, C-64: it was verified when the session was opened, and no receiver gets it."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        ra, rb = await world.outsider(RA), await world.outsider(RB)
        token = issuer.token()
        await opened(ra, token)
        await opened(rb, issuer.token(sub=BOB))
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        await ra.post("create", alice, bob, idToken=token, value=1)
        heard = await rb.hear()
        assert (heard.from_, heard.body["value"]) == (alice, 1)
        assert "idToken" not in heard.body
