"""A node that lets in who shows a token of a known key, and nobody else."""

import json
from pathlib import Path

import attrs
import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Refused, open_wire

USER = f"user://{DOMAIN}/alice"


@attrs.frozen
class Keys:
    """A key that the node knows, and one that it does not."""

    jwks: Path
    own: str
    other: str

    @property
    def secret(self) -> str:
        return Path(self.own).read_text()[:20]

    def token(self, *more: str, key: str | None = None, domain: str = DOMAIN) -> str:
        ended = called(issue, "--key", key or self.own, "--user", USER, "--domain", domain, *more)
        return ended.out[0]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    own = json.loads(called(keys, "--out", str(folder / "own")).out[0])
    other = json.loads(called(keys, "--out", str(folder / "other")).out[0])
    return Keys(Path(own["jwks"]), own["key"], other["key"])


@pytest.fixture(scope="module")
def locked(tmp_path_factory, known):
    """Without --allow-legacy: a token or nothing."""
    log = tmp_path_factory.mktemp("locked") / "log"
    with node_process(log, "--domain", DOMAIN, "--jwks", str(known.jwks), *UNHURRIED) as node:
        yield node
        assert node.stop() == 0


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, known):
    """With --allow-legacy: a token is looked at where one is shown."""
    log = tmp_path_factory.mktemp("mixed") / "log"
    options = ("--domain", DOMAIN, "--jwks", str(known.jwks), *EVERY_FORM, *UNHURRIED)
    with node_process(log, *options) as node:
        yield node
        assert node.stop() == 0


@pytest.fixture
def node(locked):
    return locked


async def test_a_good_token_opens_a_session(guests, known):
    """MN-04, MN-05, CON-01, POL-18."""
    peer = await guests.outsider()

    assert (await peer.open(token=known.token()))["body"]["code"] == 200
    assert await peer.allocate()


async def test_without_a_token_nothing_can_be_done(guests):
    """MN-03, MN-05, POL-18: 401, whatever is asked."""
    peer = await guests.outsider()

    assert (await peer.open())["body"]["code"] == 401
    for to in (f"{peer.node}/sm", f"{peer.node}/address-allocation", f"domain://registry.{DOMAIN}",
               f"domain://idm.{DOMAIN}", f"{peer.node}/policy", peer.part("x")):  # fmt: skip
        assert await peer.code("create", peer.part("ua"), to) == 401


@pytest.mark.parametrize("path", ["/ws", "/stub/connect?runtimeURL=hyperty-runtime://a.ex/r"])
async def test_upstreams_paths_are_refused(node, path):
    """POL-18, CON-05: they are opened by --allow-legacy only."""
    with pytest.raises(Refused):
        await open_wire(node.urls["url"].removesuffix("/link") + path)


BAD = {
    "of another key": lambda known: known.token(key=known.other),
    "for another domain": lambda known: known.token(domain="b.ex"),
    "not yet good": lambda known: known.token("--not-before", "300"),
    "for another runtime": lambda known: known.token("--runtime", f"runtime://{DOMAIN}/else"),
    "cut": lambda known: known.token()[:-8],
    "without its signature": lambda known: known.token().rpartition(".")[0] + ".",
    "no token": lambda known: "x",
    "very long": lambda known: "x" * 15_000,
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_token_opens_nothing(guests, known, bad):
    """MN-05, CON-01, S4: 401, fails closed, and another one is good afterwards."""
    peer = await guests.outsider()

    assert (await peer.open(token=BAD[bad](known)))["body"]["code"] == 401
    assert await peer.code("read", peer.part("ua"), peer.part("x")) == 401
    assert (await peer.open(token=known.token()))["body"]["code"] == 200


async def test_a_token_opens_one_session_once(guests, known):
    """MN-05, S4: a replayed `jti` is refused."""
    token = known.token()
    first, second = await guests.outsider(), await guests.outsider()

    assert (await first.open(token=token))["body"]["code"] == 200
    assert (await second.open(token=token))["body"]["code"] == 401


async def test_a_session_that_was_logged_in_comes_back_by_its_own_token(guests, known):
    """MN-05, MN-06: the session's token, not the login's."""
    peer = await guests.outsider()
    await peer.open(token=known.token())
    (address,) = await peer.allocate()
    await peer.vanish()
    again = await guests.back(peer)

    assert (await again.reopen(peer.token))["body"]["code"] == 200
    assert await again.code("read", address, again.part("nobody")) == 404


async def test_an_administrator_manages_policies(guests, known):
    """POL-05: by messages to `MN(d)/policy`; others get 403."""
    admin, other = await guests.outsider(), await guests.outsider()
    await admin.open(token=known.token("--role", "admin"))
    await other.open(token=known.token("--role", "clerk"))
    to = f"{admin.node}/policy"
    no = {"id": "no", "effect": "deny"}
    value = {"id": "new", "policies": [
        {"id": "p", "target": {"msgTo": {"like": "*/closed"}}, "rules": [no]},
    ]}  # fmt: skip

    assert await other.code("create", other.part("ua"), to, value=value) == 403
    assert await admin.code("create", admin.part("ua"), to, value=value) == 200
    assert await other.code("read", other.part("ua"), f"{admin.inside}/closed") == 403
    assert await admin.code("delete", admin.part("ua"), to, resource="new") == 200
    await other.say("read", other.part("ua"), f"{admin.inside}/closed")
    assert (await admin.hear())["to"] == admin.part("closed")


async def test_the_identity_connector_validates_for_every_session(guests, known):
    """CON-01, PFY-05, ADR-04, M-55: 200 with who it is, else 401."""
    peer = await guests.outsider()
    await peer.open(token=known.token())
    to = f"domain://idm.{DOMAIN}"

    async def asked(assertion):
        return await peer.ask(
            "execute", peer.part("ua"), to,
            method="validateAssertion", params={"assertion": assertion},
        )  # fmt: skip

    answer = await asked(known.token())
    assert (answer["from"], answer["body"]["code"]) == (to, 200)
    assert (await asked("x.y.z"))["body"]["code"] == 401


async def test_where_both_are_let_in_a_token_that_is_shown_must_be_good(mixed, known):
    """MN-04, MN-05: upstream's stubs without one, ours with or without, none with a bad one."""
    guests = Joining(mixed, "link")
    async with guests.stack:
        for form in ("link", "plain", "session"):
            assert await (await guests(form)).allocate()
        peer = await guests.outsider("link")
        assert (await peer.open(token=known.token(key=known.other)))["body"]["code"] == 401
        assert (await peer.open(token=known.token()))["body"]["code"] == 200


async def test_a_token_in_the_session_form_is_no_login(mixed, known):
    """C-65: it has no place for one, so a token there is neither judged nor used up."""
    token = known.token()
    guests, others = Joining(mixed, "session"), Joining(mixed, "link")
    async with guests.stack, others.stack:
        opened = await (await guests.outsider()).open(token=token)
        assert opened["body"]["code"] == 200
        assert (await (await others.outsider()).open(token=token))["body"]["code"] == 200


async def test_with_logins_a_name_alone_does_not_resume_a_detached_session(mixed):
    """MN-04, MN-06, C-84, S2: the token is asked for, as of any other form."""
    guests = Joining(mixed, "session")
    async with guests.stack:
        peer = await guests()
        await peer.allocate()
        await peer.vanish()
        thief = await guests.outsider(name=peer.name)

        assert (await thief.open())["body"]["code"] == 409
        again = await guests.back(peer)
        assert (await again.reopen(peer.token))["body"]["code"] == 200


async def test_no_token_stands_in_the_log(locked, known):
    """S11."""
    log = locked.log.read_text()
    assert "eyJ" not in log
    assert known.secret not in log
