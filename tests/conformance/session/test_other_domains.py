"""Nobody speaks for a domain that is not its own, nor gets what is sent there (SEC-16, S14).

Programs of raw sockets that know what the documents say, and nodes that are processes.
"""

import json
from contextlib import AsyncExitStack, contextmanager

import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_guests import NUMBERS, Joining
from tests.support.wire.wire_socket import Left

DR = f"domain://registry.{DOMAIN}"
OTHER = "b.ex"
PEER = f"domain://msg-node.{OTHER}"
ROUTE = ("--foreign", f"{OTHER}=ws://127.0.0.1:1/link")


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return json.loads(called(keys, "--out", str(tmp_path_factory.mktemp("keys"))).out[0])


@contextmanager
def a_node(tmp_path_factory, *options):
    log = tmp_path_factory.mktemp("node") / "log"
    with node_process(log, "--domain", DOMAIN, *UNHURRIED, *options) as process:
        yield process
        assert process.stop() == 0
        assert process.complaints == []


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory):
    """A node without logins that knows no other domain."""
    with a_node(tmp_path_factory, *EVERY_FORM) as process:
        yield process


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """A node without logins that has a route to the other domain."""
    with a_node(tmp_path_factory, *EVERY_FORM, *ROUTE) as process:
        yield process


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, key):
    """A node at which users may log in, and others may come without."""
    with a_node(tmp_path_factory, *EVERY_FORM, "--jwks", key["jwks"]) as process:
        yield process


@pytest.fixture(scope="module")
def with_logins(tmp_path_factory, key):
    with a_node(tmp_path_factory, "--jwks", key["jwks"]) as process:
        yield process


@pytest.fixture(scope="module")
def routed_with_logins(tmp_path_factory, key):
    with a_node(tmp_path_factory, "--jwks", key["jwks"], *ROUTE) as process:
        yield process


@pytest.fixture
async def at():
    """Makes what lets peers come to a node."""
    async with AsyncExitStack() as stack:

        def joining(node, form="link"):
            guests = Joining(node, form)
            stack.push_async_callback(guests.stack.aclose)
            return guests

        yield joining


async def came_as(guests, runtime_of=OTHER, form=None, **how):
    """Ask for the session of a runtime of another domain; return the peer and the code."""
    peer = await guests.connect(guests.abroad(runtime_of, form))
    try:
        answer = await peer.open(**how)
        if answer is None:
            # In this form the session is claimed by its address, and a refusal is a close, before
            # which the link may be told that it has no session.
            asked = await peer.ask(
                "unsubscribe", peer.part("sm"), f"{peer.node}/sm", resources=[peer.runtime]
            )
            if asked["body"]["code"] == 401:
                return peer, 403
    except Left:
        return peer, 403
    return peer, 200 if answer is None else answer["body"]["code"]


def token(key, user, *more):
    options = ("--key", key["key"], "--user", user, "--domain", DOMAIN, *more)
    return called(issue, *options).out[0]


async def ours(guests, key):
    victim = await guests.outsider()
    said = await victim.open(token=token(key, f"user://{DOMAIN}/victim"))
    assert said["body"]["code"] == 200
    return victim


def fresh(domain=OTHER):
    return f"hyperty://{domain}/h{next(NUMBERS)}"


# ---- with logins


@pytest.mark.parametrize("more", [(), ("--runtime", f"hyperty-runtime://{OTHER}/r1")])
async def test_a_user_of_this_domain_opens_no_runtime_of_another(
    with_logins, routed_with_logins, at, key, more
):
    """SEC-16."""
    for node, code in ((with_logins, 401), (routed_with_logins, 403)):
        guests = at(node)
        victim = await ours(guests, key)
        shown = token(key, f"user://{DOMAIN}/mallory", *more)
        thief, refused = await came_as(guests, token=shown)
        assert refused == code
        hyperty = fresh()
        await thief.say("create", hyperty, victim.part("ua"), value="I am yours")
        assert (await thief.hear())["body"]["code"] == 401
        assert await victim.rest() == []
        for name in (hyperty, f"{thief.inside}/p2phandler/1"):
            assert await victim.code("create", victim.part("ua"), name) in {404, 503}


async def test_who_logs_in_at_its_own_domain_speaks_for_what_that_states(with_logins, at, key):
    """SEC-16, MN-18: the triangle, with a login."""
    guests = at(with_logins)
    victim = await ours(guests, key)
    mine, others = fresh(), fresh()
    shown = token(key, f"user://{OTHER}/bob", "--address", mine)
    bob, code = await came_as(guests, token=shown)
    assert code == 200

    sent = await bob.say("create", mine, victim.part("ua"))
    request = await victim.hear()
    await victim.answer(request)
    assert (await bob.answer_to(sent))["body"]["code"] == 200
    await victim.say("create", victim.part("ua"), f"{mine}/part")
    assert (await bob.hear())["to"] == f"{mine}/part"
    for name in (others, f"{mine}x", f"hyperty://{DOMAIN}/x", f"comm://{OTHER}/x"):
        assert await bob.code("create", name, victim.part("ua")) == 401
        value = {"url": name, "runtime": bob.inside}
        assert await bob.code("create", bob.part("registry"), DR, value=value) == 403
    assert await victim.rest() == []


async def test_a_login_of_another_domain_is_of_no_use_while_a_route_leads_there(
    routed_with_logins, at, key
):
    shown = token(key, f"user://{OTHER}/bob", "--address", fresh())
    assert (await came_as(at(routed_with_logins), token=shown))[1] == 403


async def test_where_users_may_log_in_those_of_other_domains_must(mixed, at, form):
    assert (await came_as(at(mixed, form)))[1] in {401, 403}


# ---- without logins


async def test_no_runtime_takes_part_for_a_domain_that_has_a_route(routed, at, form):
    """SEC-16, MN-13."""
    guests = at(routed, form)
    thief, code = await came_as(guests)
    assert code == 403
    victim, local = await guests(), await guests()
    hyperty = fresh()
    assert await local.code("create", hyperty, victim.part("ua")) == 401
    assert await local.code("create", local.part("ua"), victim.part("ua"), source=hyperty) == 401
    value = {"url": hyperty, "runtime": local.inside}
    assert await local.code("create", local.part("registry"), DR, value=value) == 403
    for name in (hyperty, f"{thief.inside}/p2phandler/1"):
        assert await victim.code("create", victim.part("ua"), name) == 503
    assert await local.rest() == []
    assert await victim.rest() == []


async def test_no_session_of_this_domain_speaks_for_another_known_or_not(open_to_all, at, form):
    guests = at(open_to_all, form)
    victim, thief = await guests(), await guests()
    for domain in (OTHER, "nobody.example", f"sub.{DOMAIN}"):
        name = fresh(domain)
        for from_ in (name, f"hyperty-runtime://{domain}/registry/1"):
            assert await thief.code("create", from_, victim.part("ua")) == 401
        assert await victim.code("create", victim.part("ua"), name) == 404
    assert await victim.rest() == []


async def test_a_runtime_of_another_domain_gets_no_address_of_this_one(open_to_all, at, form):
    guests = at(open_to_all, form)
    foreign, code = await came_as(guests, "c.ex")
    assert code == 200
    allocation = f"{foreign.node}/address-allocation"
    for scheme in ("hyperty", "comm"):
        body = {"scheme": scheme, "value": {"number": 1}}
        assert await foreign.code("create", foreign.part("x"), allocation, **body) == 403
    url = f"comm://{DOMAIN}/{foreign.name}"
    value = {"url": url, "reporter": f"hyperty://c.ex/{foreign.name}", "runtime": foreign.inside}
    assert await foreign.code("create", foreign.part("registry"), DR, value=value) == 403
    named = f"{foreign.node}/sm"
    await foreign.code("subscribe", foreign.part("sm"), named, subscribe=[f"{url}/subscription"])
    assert await foreign.code("create", url, foreign.part("x")) == 401


async def test_a_route_takes_from_runtimes_what_they_had_before(open_to_all, at, form):
    """Their names stay the domain's when its node has left."""
    domain = f"{form}.example"
    guests = at(open_to_all, form)
    victim = await guests()
    thief, code = await came_as(guests, domain)
    assert code == 200
    name = fresh(domain)
    assert await thief.code("read", name, f"{victim.node}/nothing") == 404
    peer = at(open_to_all).named()
    peer.runtime = peer.inside = f"domain://msg-node.{domain}"
    await guests.connect(peer)
    assert (await peer.open())["body"]["code"] == 200

    for to in (name, f"{thief.inside}/p2phandler/1"):
        await victim.say("create", victim.part("ua"), to)
        assert (await peer.hear())["to"] == to
    assert await peer.code("read", name, DR, resource=name) == 404
    assert await thief.code("create", name, victim.part("ua")) == 401
    await peer.close()
    assert await victim.code("create", victim.part("ua"), name) == 404
    assert (await came_as(guests, domain))[1] == 403
    assert await victim.rest() == []
