"""The same login token once more: no fault of the node, and no lost answer, uses it up (S5)."""

import sqlite3

from actors.kit.counters import KeptFile, Tally
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login
from tests.actors.node.key_holder import KeyHolder
from tests.support.node.issuer import FakeKeySource, Issuer, login_by, opened
from tests.support.node.node_peer import RA, RB, open_world


def login_on(path, issuer):
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    return Login(provider=provider, clock=lambda: 0.0, used_tokens=path)


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
        assert world.node.counters.tallies[Tally.WRITES_FAILED] == {(KeptFile.USED_TOKENS,): 2}
        peer = await world.outsider()
        assert (await opened(peer, token)).code == 200
        assert (await peer.control("ping")).code == 200
        assert await code_of(world, token) == 401
        assert await code_of(world, token, RB) == 401


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
