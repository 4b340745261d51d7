"""The same login token once more: no fault of the node, and no lost answer, uses it up (S5)."""

import json
import sqlite3

import attrs
import pytest
import trio
from typing_extensions import override

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.node.group.records import EngineTokens
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import IdentityProvider, Login, UsedTokensError
from fsm.session.assertion import Use
from fsm.session.runtime_names import RuntimeNames
from specs.identity import Identity
from specs.limits.node import LOGIN_TIMEOUT
from specs.limits.protocol import OPEN_TIMEOUT
from tests.support.command import call, called, serving
from tests.support.node.issuer import ALICE, ISSUER, FakeKeySource, Issuer, login_by, opened
from tests.support.node.key_holder import KeyHolder
from tests.support.node.node_peer import RA, RB, open_world
from transports.engine.contract import EngineDownError
from transports.engine.memory import open_memory_store


def login_on(path, issuer):
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    return Login(provider=provider, clock=lambda: 0.0, used_tokens=path)


async def ask_and_leave(world, token, runtime=RA):
    """Ask for a session, and hang up before the answer is read."""
    peer = await world.outsider(runtime)
    await peer.post(
        "execute", peer.stub, f"{peer.node}/session", method="open",
        params={"runtimeURL": runtime, "token": token},
    )  # fmt: skip
    return peer


async def code_of(world, token, runtime=RA):
    return (await opened(await world.outsider(runtime), token)).code


async def test_a_token_that_could_not_be_written_down_is_not_used(tmp_path):
    """SEC-04: a full disk; also more than once."""
    issuer, path = Issuer(), tmp_path / "used.sqlite"
    token = issuer.token()
    async with open_world(login=login_on(path, issuer)) as world:
        with sqlite3.connect(path) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert [await code_of(world, token) for _ in range(2)] == [503, 503]
            other.rollback()
        peer = await world.outsider()
        assert (await opened(peer, token)).code == 200
        assert (await peer.control("ping")).code == 200
        assert await code_of(world, token) == 401
        assert await code_of(world, token, RB) == 401


async def test_a_login_whose_answer_was_lost_is_made_again_with_the_same_token(tmp_path):
    issuer = Issuer()
    token = issuer.token()
    async with open_world(login=login_on(tmp_path / "used", issuer)) as world:
        for _ in range(3):
            first = await world.outsider()
            assert (await opened(first, token)).code == 200
            # For the node it is as if the answer had never come.
            await first.link.aclose()
        assert await code_of(world, token, RB) == 401
        again = await world.outsider()
        assert (await opened(again, token)).code == 200
        assert (await again.control("ping")).code == 200
        assert await code_of(world, token) == 401
        await again.control("close")
        assert await code_of(world, token) == 401


async def test_another_key_does_not_make_a_login_again(autojump_clock):
    """SEC-09: a token without `cnf` that is stolen while the answer is on its way."""
    issuer = Issuer()
    owner, thief = KeyHolder(), KeyHolder()
    token = issuer.token()
    async with open_world(login=login_by(issuer)) as world:
        assert (await owner.enter(await world.outsider(), token)).code == 200
        assert await code_of(world, token) == 401
        assert (await thief.enter(await world.outsider(), token)).code == 401
        assert (await owner.enter(await world.outsider(), token)).code == 200


async def test_a_runtime_that_left_while_its_login_was_looked_into_comes_again(autojump_clock):
    issuer = Issuer()
    shelf = FakeKeySource(issuer.jwks(), delay=1.0)
    token = issuer.token()
    async with open_world(login=login_by(issuer, shelf)) as world:
        first = await ask_and_leave(world, token)
        await trio.sleep(0.5)
        await first.link.aclose()
        await trio.sleep(1)
        again = await world.outsider()
        assert (await opened(again, token)).code == 200
        await again.control("close")
        assert await code_of(world, token) == 401
        assert await code_of(world, token, RB) == 401


@attrs.define
class Slow(IdentityProvider):
    """Takes its time, whatever it is told; each assertion is good once."""

    taken: list[str] = attrs.field(factory=list)

    @override
    async def validate(self, assertion, key):
        with trio.CancelScope(shield=True):
            await trio.sleep(OPEN_TIMEOUT + 1)
        self.taken.append(assertion)
        return Identity(user=ALICE, issuer=ISSUER, until=1000.0)

    @override
    async def aclose(self):
        await trio.lowlevel.checkpoint()


async def test_a_login_that_succeeds_too_late_serves_the_next_attempt(autojump_clock):
    """A disk that is slow, not full."""
    slow = Slow()
    async with open_world(login=Login(provider=lambda _: slow, clock=lambda: 0.0)) as world:
        assert await code_of(world, "one") == 503
        await trio.sleep(LOGIN_TIMEOUT)
        assert await code_of(world, "one") == 200
    assert slow.taken == ["one"]


async def test_a_token_that_has_opened_no_session_serves_another_process(autojump_clock):
    """A command that was given up while the disk was slow; the next one has a key of its own."""
    slow = Slow()
    first, second = KeyHolder(), KeyHolder()
    async with open_world(login=Login(provider=lambda _: slow, clock=lambda: 0.0)) as world:
        assert (await first.enter(await world.outsider(), "one")).code == 503
        assert (await second.enter(await world.outsider(), "one")).code == 503
        await trio.sleep(LOGIN_TIMEOUT)
        assert (await second.enter(await world.outsider(), "one")).code == 200
    assert slow.taken == ["one"]


async def test_a_token_that_is_being_looked_into_is_not_a_used_one(autojump_clock):
    """The link breaks while the node writes the token down, and the runtime comes again at once."""
    issuer = Issuer()
    shelf = FakeKeySource(issuer.jwks(), delay=1.0)
    token = issuer.token()
    async with open_world(login=login_by(issuer, shelf)) as world:
        first = await ask_and_leave(world, token)
        await trio.sleep(0.5)
        await first.link.aclose()
        again = await world.outsider()
        assert (await opened(again, token)).code == 503
        await trio.sleep(1)
        assert (await opened(again, token)).code == 200


async def test_a_name_for_which_the_node_has_no_room_uses_no_token_up(autojump_clock, monkeypatch):
    """503 is a refusal for a reason of the node."""
    issuer = Issuer()
    token = issuer.token()
    async with open_world(login=login_by(issuer)) as world:
        with monkeypatch.context() as patched:
            patched.setattr(RuntimeNames, "_has_room", lambda *_: False)
            assert await code_of(world, token) == 503
        assert await code_of(world, token) == 200


async def test_a_token_whose_row_an_engine_did_not_confirm_is_not_used_by_that(autojump_clock):
    """SEC-45: the node that has written the row knows it again; another node does not."""
    use = Use(b"d" * 32, 360.0)
    async with open_memory_store() as store, store.open() as engine, store.open() as second:
        put = engine.put

        async def lost(*args, **kwargs):
            await put(*args, **kwargs)
            raise EngineDownError("no answer", is_unknown=True)

        tokens, others = (EngineTokens(each, trio.current_time) for each in (engine, second))
        engine.put = lost
        with pytest.raises(UsedTokensError):
            await tokens.keep(use, 0.0)
        engine.put = put
        assert not await others.keep(use, 0.0)
        assert await tokens.keep(use, 0.0)


# ---- as processes


async def test_a_runtime_waits_for_a_disk_with_the_token_of_its_file(tmp_path):
    """The same file, read at each attempt; nobody has to bring another token."""
    key = json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])
    words = ("--key", key["key"], "--user", "user://a.ex/alice", "--domain", "a.ex")
    (tmp_path / "token").write_text(called(issue, *words).out[0])
    used = tmp_path / "used.sqlite"
    node = ("node", "--domain", "a.ex", "--jwks", key["jwks"], "--used-tokens", str(used))
    async with serving(*node) as serves:
        login = ("--token-file", str(tmp_path / "token"), "--name", "asker")
        ask = ("request", "--domain", "a.ex", "--node", serves.url, "hyperty://a.ex/1", "1")
        with sqlite3.connect(used) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused = await call(*ask, *login)
            other.rollback()
        asked = await call(*ask, *login)
    assert (refused.status, refused.out) != (ExitCode.OK, [])
    assert json.loads(asked.out[0])["code"] == 404
