"""A node that starts again knows its sessions: runtimes come back, whatever ended it (R14)."""

import sqlite3
import stat
from contextlib import closing

import pytest

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.errors import StateFileError
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login
from specs.reply_code import TAKEN_OVER
from tests.support.node.issuer import FakeKeySource, Issuer
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import DOMAIN, RA, SM, open_world


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.sqlite"


async def opened(path, runtime=RA):
    """Open a session at a node that ends afterwards; return its token."""
    async with open_world(state=path) as world:
        peer = await world.peer(runtime)
        await peer.control("ping")
        return peer.token


async def test_a_session_outlives_its_node(path):
    token = await opened(path)
    async with open_world(state=path) as world:
        assert await world.states() == {RA: "detached"}
        again = await world.outsider()
        answer = await again.control("re-open", runtimeURL=RA, token=token)

        assert answer.code == 200
        assert answer.body["value"]["emptied"] is True
        assert answer.body["value"]["recovered"] is False
        assert answer.body["value"]["sessionToken"] != token
        assert await world.states() == {RA: "open"}


async def test_who_said_goodbye_is_not_known_to_a_later_process(path):
    async with open_world(state=path) as world:
        peer = await world.peer()
        await peer.control("close")
    async with open_world(state=path) as world:
        assert await world.states() == {}


async def test_a_name_stays_its_sessions_over_a_restart(path):
    await opened(path)
    async with open_world(state=path) as world:
        thief = await world.outsider()
        assert (await thief.control("open", runtimeURL=RA)).code == 409
        assert (await thief.control("re-open", runtimeURL=RA, token="x" * 64)).code == 401


async def test_messages_for_a_resumed_runtime_wait_for_it(path):
    token = await opened(path)
    async with open_world(state=path) as world:
        other = await world.peer("hyperty-runtime://a.ex/rb")
        sent = await other.post("update", other.runtime, f"{RA}/sm", value=1)
        again = await world.outsider()
        await again.control("re-open", runtimeURL=RA, token=token)
        assert (await again.hear()).id == sent.id


async def test_what_leads_back_to_its_sender_is_not_found_also_just_after_a_restart(path):
    """MN-08: nobody else comes back for it."""
    token = await opened(path)
    async with open_world(state=path) as world:
        again = await world.outsider()
        await again.control("re-open", runtimeURL=RA, token=token)
        assert (await again.ask("read", f"{RA}/ua", f"{RA}/other")).code == 404
        assert (await again.ask("read", f"{RA}/ua", "hyperty://a.ex/absent")).code == 503


async def test_a_lost_answer_locks_nobody_out_over_a_restart(path):
    token = await opened(path)
    async with open_world(state=path) as world:
        lost = await world.outsider()
        await lost.post(
            "execute", lost.stub, f"{lost.node}/session",
            method="re-open", params={"runtimeURL": RA, "token": token},
        )  # fmt: skip
        await lost.link.receive()
    async with open_world(state=path) as world:
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=token)).code == 200


async def test_the_file_is_for_its_owner_and_holds_no_token(path):
    """SEC-40."""
    token = await opened(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)
        assert token not in "".join(connection.iterdump())
        assert token.encode() not in path.read_bytes()


async def test_it_is_beside_the_file_of_the_registry(tmp_path):
    async with open_world(registry=tmp_path / "r.sqlite") as world:
        await world.peer()
    assert (tmp_path / "r.sqlite-state").exists()


async def test_a_file_that_is_none_of_ours_is_refused(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (name TEXT)")
    with pytest.raises(StateFileError, match="another program"):
        await opened(path)


async def test_who_lost_its_session_to_a_login_hears_that_over_a_restart(path):
    """Its token is refused for good, in other words than one that is unknown."""
    issuer = Issuer()
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    login = Login(provider=provider, clock=lambda: 0.0)
    lost = []
    async with open_world(state=path, login=login) as world:
        for _ in range(3):
            peer = await world.outsider()
            assert (await login_with(peer, issuer.token())).code == 200
            await peer.control("ping")
            lost.append(peer.token)
    for _ in range(2):
        async with open_world(state=path, login=login) as world:
            for token in lost[:-1]:
                again = await world.outsider()
                answer = await again.control("re-open", runtimeURL=RA, token=token)
                assert (answer.code, answer.body["description"]) == (409, TAKEN_OVER)
            winner = await world.outsider()
            answer = await winner.control("re-open", runtimeURL=RA, token=lost[-1])
            assert answer.code == 200
            lost[-1] = answer.body["value"]["sessionToken"]
            assert (await winner.control("ping")).code == 200


@pytest.mark.parametrize("column", ["key", "displaced"])
async def test_a_file_of_an_earlier_form_is_converted(path, column):
    token = await opened(path)
    with closing(sqlite3.connect(path)) as older, older:
        older.execute(f"ALTER TABLE session DROP COLUMN {column}")
    async with open_world(state=path) as world:
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=token)).code == 200


async def test_one_node_at_a_time_uses_a_file(path):
    async with open_world(state=path) as world:
        config = NodeConfig(domain=DOMAIN, state=path)
        with pytest.raises(StateFileError, match="another node"):
            async with open_node(config, world.network, world.tracer):
                pass


async def test_an_answer_waits_for_the_disk(path):
    """Else a token could be given out, and be unknown to the next process."""
    async with open_world(state=path) as world:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        peer = await world.outsider()
        await peer.post(
            "execute", peer.stub, f"{peer.node}/session",
            method="open", params={"runtimeURL": RA},
        )  # fmt: skip
        assert await peer.silence(0.3)
        blocker.execute("ROLLBACK")
        blocker.close()
        assert (await peer.hear()).code == 200


async def test_a_login_token_stays_used_in_the_state_file(path):
    """SEC-04."""
    issuer = Issuer()
    token = issuer.token()
    for code in (200, 401):
        provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
        login = Login(provider=provider, clock=lambda: 0.0)
        async with open_world(state=path, login=login) as world:
            peer = await world.outsider()
            assert (await login_with(peer, token)).code == code
            await peer.control("ping")


async def test_a_file_that_cannot_be_written_stops_no_session(path):
    async with open_world(state=path) as world:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        peer = await world.peer()
        assert (await peer.ask("subscribe", peer.runtime, SM, resources=[peer.runtime])).code == 200
        blocker.execute("ROLLBACK")
        blocker.close()
    async with open_world(state=path) as world:
        assert await world.states() == {RA: "detached"}


async def test_messages_carry_the_login_token_of_a_stored_session_too(path):
    """MN-05: a hash of it is stored, never the token."""
    issuer = Issuer()
    login_token = issuer.token()
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    login = Login(provider=provider, clock=lambda: 0.0)
    async with open_world(state=path, login=login) as world:
        first = await world.outsider()
        await login_with(first, login_token)
    async with open_world(state=path, login=login) as world:
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 200
        sent = f"{RA}/ua", f"{RA}9/ua"
        assert (await again.ask("create", *sent, idToken=login_token)).code == 503
        assert (await again.ask("create", *sent, idToken="another")).code == 401
    assert login_token.encode() not in path.read_bytes()


async def test_the_stated_addresses_of_a_login_outlive_the_node(path):
    """MN-18: a runtime of another domain speaks for them, and for no others."""
    issuer, rx, mine = Issuer(), "hyperty-runtime://b.ex/rx", "hyperty://b.ex/mine"
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    login = Login(provider=provider, clock=lambda: 0.0)
    token = issuer.token(iss="https://idp.b.ex", sub="user://b.ex/bob", addresses=[mine])
    async with open_world(state=path, login=login) as world:
        first = await world.outsider(rx)
        assert (await login_with(first, token)).code == 200
    async with open_world(state=path, login=login) as world:
        again = await world.outsider(rx)
        assert (await again.control("re-open", runtimeURL=rx, token=first.token)).code == 200
        assert (await again.ask("read", mine, f"{RA}/ua")).code == 503
        assert (await again.ask("read", "hyperty://b.ex/other", f"{RA}/ua")).code == 401
