"""An `open` of a connected runtime, in the session form with and without `--profile upstream`."""

import json

import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left

PROFILE = ("--profile", "upstream")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    log = tmp_path_factory.mktemp("upstream") / "log"
    with node_process(log, "--domain", DOMAIN, *PROFILE) as process:
        yield process
        assert process.stop() == 0
        assert process.complaints == []


@pytest.mark.parametrize("first", ["session", "plain"])
async def test_an_open_gets_the_session_of_a_connected_runtime(upstream, first):
    """MN-04, C-84: the same token, as upstream's Vert.x node gives it."""
    guests = Joining(upstream, "session")
    async with guests.stack:
        older = await guests(first)
        (address,) = await older.allocate()
        newer = await guests.connect(guests.named("session", older.name))
        answer = (await newer.open())["body"]

        assert answer["code"] == 200
        assert first == "plain" or answer["runtimeToken"] == older.token
        with pytest.raises(Left):
            await older.farewell()
        other = await guests()
        sent = await other.say("create", other.part("ua"), address)
        assert (await newer.hear())["to"] == address
        await newer.answer({"id": sent, "to": address, "from": other.part("ua")})
        assert (await other.answer_to(sent))["body"]["code"] == 200


async def test_it_gets_no_session_of_protoflys_form(upstream):
    guests = Joining(upstream, "session")
    async with guests.stack:
        older = await guests("link")
        newer = await guests.connect(guests.named("session", older.name))
        assert (await newer.open())["body"]["code"] == 409
        assert (await older.control("ping"))["body"]["code"] == 200


async def test_it_gets_no_session_without_the_profile(guests):
    older = await guests("session")
    newer = await guests.connect(guests.named("session", older.name))
    assert (await newer.open())["body"]["code"] == 409
    assert await older.allocate()


async def test_it_gets_no_session_where_users_log_in(tmp_path):
    """S2: neither that of a login, nor that of another guest."""
    key = json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])
    options = ("--domain", DOMAIN, *PROFILE, "--jwks", key["jwks"], *UNHURRIED)
    with node_process(tmp_path / "log", *options) as process:
        guests = Joining(process, "session")
        async with guests.stack:
            user = await guests.outsider("link")
            who = ("--user", f"user://{DOMAIN}/alice", "--domain", DOMAIN)
            token = called(issue, "--key", key["key"], *who).out[0]
            assert (await user.open(token=token))["body"]["code"] == 200
            for older in (user, await guests("session")):
                newer = await guests.connect(guests.named("session", older.name))
                assert (await newer.open())["body"]["code"] == 409
                assert await older.allocate()
