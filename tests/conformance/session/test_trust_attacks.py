"""What one user can do to another at a node with logins: nothing (S2, S6).

Programs of raw sockets that know what the documents say, and a node that is a process.
"""

import json
from contextlib import AsyncExitStack, suppress

import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process
from tests.support.wire.wire_guests import NUMBERS, Joining
from tests.support.wire.wire_socket import Left

DR = f"domain://registry.{DOMAIN}"
OTHER = "other.example"
FOREIGN_NAMES = 9_986
"""As many names of another domain were bound once by one session."""

GUESSES = 2_000
BORNE = 5
"""Wrong tokens a minute that cost a host no connection, by the operator's page."""


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return json.loads(called(keys, "--out", str(tmp_path_factory.mktemp("keys"))).out[0])


@pytest.fixture(scope="module")
def node(tmp_path_factory, key):
    """One that bears every haste but that of wrong tokens."""
    folder = tmp_path_factory.mktemp("trust")
    options = ("--domain", DOMAIN, "--jwks", key["jwks"], "--state", str(folder / "state"))
    limits = (*UNHURRIED, "--max-failed-opens", str(BORNE))
    with node_process(folder / "log", *options, *limits) as process:
        yield process
        assert process.stop() == 0
        assert process.complaints == []


@pytest.fixture
async def users(node, key):
    """Makes users who come with a login of their own."""
    async with AsyncExitStack() as stack:
        joining = Joining(node, "link")
        stack.push_async_callback(joining.stack.aclose)
        yield Users(joining, key)


class Users:
    def __init__(self, joining, key):
        self.joining, self.key = joining, key

    def token(self, user):
        who = ("--user", address(user), "--domain", DOMAIN)
        return called(issue, "--key", self.key["key"], *who).out[0]

    async def came(self, user, name=None):
        """Connect as a user; return the peer and the code of the answer."""
        peer = await self.joining.outsider(name=name)
        answer = await peer.open(token=self.token(user))
        return peer, answer["body"]

    async def __call__(self, user, name=None):
        peer, said = await self.came(user, name)
        assert said["code"] == 200, said
        return peer


def address(user):
    return f"user://{DOMAIN}/{user}"


@pytest.fixture
def names():
    """Two users whom no other test knows."""
    number = next(NUMBERS)
    return f"victim{number}", f"thief{number}"


async def registered(peer, count=1, **more):
    urls = []
    while len(urls) < count:
        urls += await peer.allocate(number=min(250, count - len(urls)))
    codes = [
        await peer.code(
            "create", peer.part("registry"), DR, value={"url": url, "runtime": peer.inside, **more}
        )
        for url in urls
    ]
    return urls, set(codes)


async def test_registering_with_anothers_name_or_guid_is_refused(users, names):
    victim, thief = await users(names[0]), await users(names[1])
    claims = {"user": address(names[0])}
    (url,), codes = await registered(victim, **claims)
    assert codes == {200}
    for forged in (claims, {"guid": "user-guid://victim"}, {**claims, "guid": "user-guid://v"}):
        assert (await registered(thief, **forged))[1] == {403}
    (mine,), _ = await registered(thief)
    for change in ({"attribute": "user", "value": claims["user"]}, {"value": claims}):
        asked = {"resource": mine, **change}
        assert await thief.code("update", thief.part("registry"), DR, **asked) == 403
    found = await thief.ask("read", thief.part("registry"), DR, resource=claims["user"])
    assert [one["url"] for one in found["body"]["value"]] == [url]


@pytest.mark.parametrize("size", [0, 15_000], ids=["many", "large"])
async def test_padding_hides_no_record_of_another(users, names, size):
    victim, thief = await users(names[0]), await users(names[1])
    room = f"room{next(NUMBERS)}"
    (url,), _ = await registered(victim, name=room)
    padded, codes = await registered(thief, 40 if size else 400, name=room, pad="x" * size)
    assert codes == {200}
    search, seen, after = {"resource": f"/hyperty/name/{room}"}, [], {}
    while True:
        page = (await victim.ask("read", victim.part("registry"), DR, **search, **after))["body"]
        assert page["code"] == 200
        if not seen:
            assert url in [one["url"] for one in page["value"]]
        seen += [one["url"] for one in page["value"]]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert sorted(seen) == sorted([url, *padded])


async def test_a_runtime_name_of_another_user_is_refused(users, names):
    name = f"home{next(NUMBERS)}"
    victim = await users(names[0], name)

    async def refused():
        _, said = await users.came(names[1], name)
        return said["code"] == 409 and "belongs to another user" in said["description"]

    assert await refused()
    await victim.vanish()
    assert await refused()
    victim = await users(names[0], name)
    await victim.close()
    assert await refused()
    thief = await users(names[1])
    body = (await thief.control("release", runtimeURL=victim.inside))["body"]
    assert body["code"] == 404
    assert await refused()
    victim = await users(names[0], name)
    assert (await victim.control("release"))["body"]["code"] == 202
    await victim.close()
    assert not await refused()


async def test_names_of_another_domain_are_not_spoken_for(users, names):
    """None of 9,986; nobody hears a word of it, and none is the session's afterwards."""
    victim, thief = await users(names[0]), await users(names[1])
    to = victim.part("ua")
    lines = [
        json.dumps(
            {"id": n, "type": "execute", "from": f"hyperty://{OTHER}/h{n}", "to": to, "body": {}}
        ).encode()
        for n in range(1, FOREIGN_NAMES + 1)
    ]
    codes = set()
    for first in range(0, len(lines), 64):
        frame = lines[first : first + 64]
        await thief.raw(b"\n".join(frame))
        codes |= {(await thief.hear())["body"]["code"] for _ in frame}
    assert codes == {401}
    assert await victim.rest() == []
    for n in (1, FOREIGN_NAMES):
        name = f"hyperty://{OTHER}/h{n}"
        assert await victim.code("execute", victim.part("ua"), name) == 404
        assert (await registered_as(thief, name)) == 403


async def registered_as(peer, url):
    value = {"url": url, "runtime": peer.inside}
    return await peer.code("create", peer.part("registry"), DR, value=value)


@pytest.mark.parametrize("method", ["open", "re-open"])
async def test_two_thousand_guesses_of_a_token_are_impossible(users, names, method):
    """The host pays with its connection; the holder of the token comes back all the same."""
    victim = await users(names[0])
    await victim.control("ping")
    await victim.vanish()
    thief = await users.joining.outsider(name=victim.name)
    answered = 0
    with suppress(Left):
        for guess in range(GUESSES):
            said = await thief.control(method, token=f"{guess:064x}")
            assert said["body"]["code"] in {401, 409}
            answered += 1
    assert answered <= BORNE + 1
    again = await users.joining.back(victim)
    said = (await again.reopen(victim.token))["body"]
    assert said["code"] == 200
    assert said["value"]["sessionToken"] != victim.token
