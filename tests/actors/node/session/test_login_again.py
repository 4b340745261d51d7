"""The same runtime again: by its token, by a login, and when its credentials are over."""

import math
from collections import Counter
from contextlib import suppress
from itertools import product

import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.node.limits import NodeLimits
from actors.node.policy_hook import Policy
from actors.policy.engine import Decision, Ruling
from specs.limits.node import LOGIN_TIMEOUT, SESSION_LIFE
from specs.limits.protocol import MAX_FAILED_OPENS, OPEN_TIMEOUT, SESSION_IDLE
from specs.message import Message, MessageType
from tests.support.node.issuer import BOB, FakeKeySource, Issuer, login_by, opened
from tests.support.node.node_peer import RA, RB, open_world
from transports.errors import LinkError

# ---- C-84: the same runtime again


async def test_a_runtime_that_lost_its_token_comes_back_by_a_login(autojump_clock):
    """A killed and restarted runtime gets its session, and another token (C-84)."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        first = await world.outsider()
        await opened(first, issuer.token())
        [address] = await first.allocate()
        second = await world.outsider()

        assert (await opened(second, issuer.token())).code == 200
        assert second.token != first.token
        [view] = await world.node.sessions()
        assert view.addresses == (RA, address) or address in view.addresses
        with pytest.raises(LinkError):
            await first.read_on()
        third = await world.outsider()
        answer = await third.control("re-open", runtimeURL=RA, token=first.token)
        assert (answer.code, answer.body["description"]) == (409, "taken over by another login")
        assert (await third.control("re-open", runtimeURL=RA, token=second.token)).code == 200


@pytest.mark.parametrize("other", [{"sub": BOB}, {"iss": "https://other.ex"}])
async def test_another_user_does_not_get_the_session(other, autojump_clock):
    """SEC-03, S2, C-84."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        first = await world.outsider()
        await opened(first, issuer.token())
        thief = await world.outsider()

        assert (await opened(thief, issuer.token(**other))).code == 409
        assert (await first.control("ping")).code == 200


async def test_the_sessions_token_needs_no_login(autojump_clock):
    """MN-06."""
    issuer, shelf = Issuer(), FakeKeySource(b"")
    shelf.text = issuer.jwks()
    async with open_world(login=login_by(issuer, shelf)) as world:
        first = await world.outsider()
        await opened(first, issuer.token())
        shelf.why = "gone"
        for method in ("open", "re-open"):
            again = await world.outsider()
            answer = await again.control(method, runtimeURL=RA, token=first.token)
            assert answer.code == 200
            first.token = answer.body["value"]["sessionToken"]


async def guesses(world, options, codes):
    """Guess over one link until the node has had enough of it."""
    thief = await world.outsider()
    with suppress(LinkError):
        for method, token in options:
            codes[(await thief.control(method, runtimeURL=RA, token=token)).code] += 1


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.timeout(240)
async def test_guesses_open_nothing(number, autojump_clock):
    """S2."""
    issuer, codes = Issuer(), Counter()
    limits = NodeLimits(max_failed_opens=math.inf)
    async with open_world(login=login_by(issuer), limits=limits) as world:
        first = await world.outsider()
        await opened(first, issuer.token())
        options = product(("open", "re-open"), (f"{one:064x}" for one in range(number * 6 // 10)))
        while codes.total() < number:
            await guesses(world, options, codes)
        again = await world.outsider()

        assert set(codes) == {401}
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 200


async def test_a_token_bound_to_a_runtime_opens_no_other(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        assert (await opened(await world.outsider(), issuer.token(runtime=RA))).code == 200
        assert (await opened(await world.outsider(RB), issuer.token(runtime=RA))).code == 401


async def test_a_new_login_has_only_its_own_roles(autojump_clock):
    """POL-18: whoever is no administrator any more does not stay one by the older login."""
    issuer, asked = Issuer(), []

    class Listener(Policy):
        @override
        def judge(self, message, asker):
            asked.append(asker.identity.roles)
            return Ruling(Decision.PERMIT, "test")

    async with open_world(login=login_by(issuer), policy=Listener()) as world:
        await opened(await world.outsider(), issuer.token(roles=["admin"]))
        again = await world.outsider()
        await opened(again, issuer.token())
        await again.control("ping")

    assert asked == [{"admin"}, set(), set()]


# ---- MN-05: the end of credentials


async def until_left(peer):
    """Answer pings until the node has left."""
    with suppress(LinkError):
        while True:
            await peer.hear()


async def test_a_session_ends_with_its_credentials_and_comes_back_by_a_login(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, life=100.0)) as world:
        first = await world.outsider()
        await opened(first, issuer.token())
        [address] = await first.allocate()
        with trio.fail_after(101):
            await until_left(first)
        assert trio.current_time() == pytest.approx(100.0, abs=0.1)
        assert await world.states() == {RA: "detached"}

        issuer.now = trio.current_time()
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 401
        assert (await again.control("open", runtimeURL=RA, token=first.token)).code == 401
        assert (await opened(again, issuer.token(sub=BOB))).code == 409
        assert (await opened(again, issuer.token())).code == 200
        assert address in (await world.node.sessions())[0].addresses


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


async def test_a_login_over_the_same_link_lengthens_the_session(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, life=100.0)) as world:
        peer = await world.outsider()
        await opened(peer, issuer.token())
        await trio.sleep(15)
        await opened(peer, issuer.token())
        with trio.move_on_after(95):
            await peer.hear()

        assert await world.states() == {RA: "open"}


def test_a_login_is_good_for_half_a_day():
    assert SESSION_LIFE == 12 * 3600
    assert LOGIN_TIMEOUT < OPEN_TIMEOUT < SESSION_IDLE


# ---- MN-05: a token of its own in a message


async def test_a_message_with_the_token_of_its_session_goes_on_without_it(autojump_clock):
    """MN-05, C-64: the token is for the node, and no receiver gets it."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        await ra.post("create", alice, bob, sessionToken=ra.token, value=1)
        heard = await rb.hear()
        assert (heard.from_, heard.body["value"]) == (alice, 1)
        assert "sessionToken" not in heard.body


@pytest.mark.parametrize("token", ["another", 7, ["x"], {}])
async def test_a_message_with_another_token_is_refused_and_its_session_stays(token, autojump_clock):
    """MN-05: 401 for that message."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        answer = await ra.ask("create", alice, bob, sessionToken=token)
        assert (answer.code, "token" in answer.body["description"]) == (401, True)
        assert (await ra.ask("create", alice, f"{bob}9")).code == 404
        assert await rb.silence()
        others = await ra.ask("create", alice, bob, sessionToken=rb.token)
        assert others.code == 401


async def test_a_message_with_the_token_of_a_session_that_is_void_is_refused(autojump_clock):
    """MN-05: a token that a re-open has replaced is no longer good once the new one is used."""
    async with open_world() as world:
        first = await world.peer(RA)
        [alice] = await first.allocate()
        again = await world.outsider(RA)
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 200
        await again.control("ping")
        answer = await again.ask("create", alice, f"{alice}9", sessionToken=first.token)
        assert answer.code == 401


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


async def test_a_new_login_replaces_the_login_token_of_messages(autojump_clock):
    """MN-05, C-84."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        first, again = await world.outsider(RA), await world.outsider(RA)
        old, new = issuer.token(), issuer.token()
        await opened(first, old)
        [alice] = await first.allocate()
        await opened(again, new)
        assert (await again.ask("create", alice, f"{alice}9", idToken=old)).code == 401
        assert (await again.ask("create", alice, f"{alice}9", idToken=new)).code == 404


async def test_a_node_without_logins_leaves_a_login_token_to_the_receiver(autojump_clock):
    """MSG-09: it knows no such tokens."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        [alice], [bob] = await ra.allocate(), await rb.allocate()
        await ra.post("create", alice, bob, idToken="x")
        assert (await rb.hear()).body["idToken"] == "x"


async def test_wrong_tokens_in_messages_cost_the_link(autojump_clock):
    """S2: they cannot be tried out."""
    async with open_world() as world:
        ra = await world.peer(RA)
        for _ in range(MAX_FAILED_OPENS):
            await ra.ask("create", f"{RA}/ua", f"{RB}/ua", sessionToken="guess")
        await ra.post("create", f"{RA}/ua", f"{RB}/ua", sessionToken="guess")
        with trio.fail_after(10):
            await until_left(ra)
