"""A receiver is told who sent a message, by its own node and by nobody else.

SEC-15. The peers here are programs that know only the documents: they write and read JSON.
"""

import json
from itertools import count

import pytest
import trio

from actors.node.login.provider import Admission
from specs.limits.protocol import REPLY_TIMEOUT
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
from tests.support.node.legacy_peer import OLD, plain_peer
from tests.support.node.node_peer import MN, RA, RB, SM, open_world

NODE_B = "domain://msg-node.b.ex"
HX, RX, R_C = "hyperty://b.ex/hx", "hyperty-runtime://b.ex/rx", "hyperty-runtime://c.ex/rc"
FORGED = {"runtime": RB, "user": BOB, "vouchedBy": "identity-provider"}
OF_ALICE = {"runtime": RA, "user": ALICE, "vouchedBy": "identity-provider"}
OF_NOBODY = {"runtime": RA, "vouchedBy": "none"}


_NUMBERS = count(100)


async def say(peer, type_, from_, to, *, number=None, **body) -> dict:
    """Send a message as it stands on the wire, and return it."""
    ends = {"from": from_, "to": to}
    message = {"id": number or next(_NUMBERS), "type": type_, **ends, "body": body}
    await peer.raw(json.dumps(message).encode())
    return message


async def reply(peer, asked, code, **body) -> None:
    """Answer a request."""
    ends = asked["to"], asked["from"]
    await say(peer, "response", *ends, number=asked["id"], code=code, **body)


async def line(peer) -> dict:
    """Return the next message that a peer is sent, as it stands on the wire."""
    with trio.fail_after(REPLY_TIMEOUT):
        while True:
            if not peer.heard:
                peer.heard += map(json.loads, (await peer.link.receive()).split(b"\n"))
            read = peer.heard.pop(0)
            if read["body"].get("method") != "ping":
                return read


async def logged_in(world, issuer, runtime, user):
    peer = await world.outsider(runtime)
    assert (await opened(peer, issuer.token(sub=user))).code == 200
    return peer


# ---- what a receiver is told


async def test_the_node_names_the_user_of_a_login(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        alice = await logged_in(world, issuer, RA, ALICE)
        bob = await logged_in(world, issuer, RB, BOB)
        asked = await say(alice, "create", f"{RA}/h", f"{RB}/h", value=1)
        assert (await line(bob))["body"] == {"value": 1, "identity": OF_ALICE}

        await reply(bob, asked, 200, value=2)
        answer = (await line(alice))["body"]
        assert answer == {
            "code": 200,
            "value": 2,
            "identity": {"runtime": RB, "user": BOB, "vouchedBy": "identity-provider"},
        }


async def test_without_a_login_there_is_no_user(autojump_clock):
    issuer = Issuer()
    admission = Admission.ANYBODY
    async with open_world(login=login_by(issuer, admission=admission)) as world:
        nobody = await world.peer(RA)
        bob = await logged_in(world, issuer, RB, BOB)
        await say(nobody, "create", f"{RA}/h", f"{RB}/h", value=1)
        assert (await line(bob))["body"]["identity"] == OF_NOBODY


async def test_a_runtime_is_told_who_it_is_itself(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        peer = await world.outsider(RA)
        answer = await opened(peer, issuer.token())
        assert answer.body["value"]["identity"] == OF_ALICE


async def test_what_waited_for_a_session_has_its_sender(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await rb.link.aclose()
        await trio.sleep(1)
        await say(ra, "create", f"{RA}/h", f"{RB}/h", value=1)
        await trio.sleep(1)
        again = await world.outsider(RB)
        frame = {
            "id": 1, "type": "execute", "from": rb.stub, "to": f"{MN}/session",
            "body": {"method": "re-open", "params": {"runtimeURL": RB, "token": rb.token}},
        }  # fmt: skip
        await again.raw(json.dumps(frame).encode())
        [_, waited] = (await again.link.receive()).split(b"\n")
        assert json.loads(waited)["body"] == {"value": 1, "identity": OF_NOBODY}


async def test_a_message_right_behind_the_login_has_its_user(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        bob = await logged_in(world, issuer, RB, BOB)
        alice = await world.outsider(RA)
        token = issuer.token()
        opening = {
            "id": 1, "type": "execute", "from": alice.stub, "to": f"{MN}/session",
            "body": {"method": "open", "params": {"runtimeURL": RA, "token": token}},
        }  # fmt: skip
        body = {"value": 1, "identity": FORGED}
        early = {"id": 1, "type": "create", "from": f"{RA}/h", "to": f"{RB}/h", "body": body}
        await alice.raw(json.dumps(opening).encode())
        with trio.fail_after(REPLY_TIMEOUT):
            assert json.loads(await alice.link.receive())["body"]["code"] == 200
        await alice.raw(json.dumps(early).encode())
        assert (await line(bob))["body"]["identity"] == OF_ALICE


async def test_a_later_login_of_another_user_counts_at_once(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer, admission=Admission.ANYBODY)) as world:
        peer, bob = await world.peer(RA), await logged_in(world, issuer, RB, BOB)
        await say(peer, "create", f"{RA}/h", f"{RB}/h", value=1)
        assert (await line(bob))["body"]["identity"] == OF_NOBODY
        answer = await peer.control("open", runtimeURL=RA, token=issuer.token())
        known = {200: OF_ALICE}.get(answer.code, OF_NOBODY)
        await say(peer, "create", f"{RA}/h", f"{RB}/h", value=2)
        assert (await line(bob))["body"]["identity"] == known


# ---- what a sender says of itself

_LIE = json.dumps(FORGED)
# fmt: off
LIES = {
    "ours":             f'"identity": {_LIE}',
    "ours, as a domain": f'"identity": {_LIE.replace("identity-provider", "domain")}',
    "upstream's":       f'"identity": {{"userProfile": {{"userURL": "{BOB}"}}, "idp": "idp.ex"}}',
    "a text":           f'"identity": "{BOB}"',
    "a list":           f'"identity": [{_LIE}]',
    "null":             '"identity": null',
    "twice":            f'"identity": 1, "identity": {_LIE}',
    "escaped":          f'"\\u0069dentity": {_LIE}',
    "last":             f'"value": 2, "identity": {_LIE}',
    "nested in itself": f'"identity": {{"identity": {_LIE}}}',
}
SPELT = {
    "normal":         ("7",   "create", f"{RA}/h"),
    "id as text":     ('"7"', "create", f"{RA}/h"),
    "capitals":       ("7",   "CREATE", f"{RA}/h"),
    "alias":          ("7",   "create", "runtime://a.ex/ra/h"),
    "slow verb":      ("7",   "delete", f"{RA}/h"),
    "event":          ("7",   "update", f"{RB}/h/changes"),
}
# fmt: on


@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("lie", LIES)
async def test_what_a_sender_says_of_itself_reaches_nobody(lie, spelt, autojump_clock):
    number, verb, from_ = SPELT[spelt]
    to = f"{RB}/h/changes" if spelt == "event" else f"{RB}/h"
    from_ = f"{RA}/h" if spelt == "event" else from_
    text = (
        f'{{"id": {number}, "type": "{verb}", "from": "{from_}", "to": "{to}", '
        f'"body": {{"x": 1, {LIES[lie]}}}}}'
    )
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{RB}/h/changes"], source=RB)
        await ra.raw(text.encode())
        heard = await line(rb)
        assert heard["body"]["x"] == 1
        assert heard["body"]["identity"] == OF_NOBODY
        assert BOB not in json.dumps(heard)


async def test_a_lie_in_an_answer_or_a_forwarded_message_reaches_nobody(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        asked = await say(rb, "create", f"{RB}/h", f"{RA}/h", value=1)
        await line(ra)
        await reply(ra, asked, 100, identity=FORGED)
        await reply(ra, asked, 200, identity=FORGED)
        for _ in range(2):
            assert (await line(rb))["body"]["identity"] == OF_NOBODY

        inner = {
            "id": 1, "type": "subscribe", "from": f"{RB}/x", "to": f"{RB}/h",
            "body": {"identity": FORGED, "y": 1},
        }  # fmt: skip
        wrapped = {
            "id": 99, "type": "forward", "from": f"{RA}/h", "to": f"{RB}/h",
            "body": {"message": inner, "identity": FORGED},
        }  # fmt: skip
        await ra.raw(json.dumps(wrapped).encode())
        heard = await line(rb)
        assert heard["body"]["identity"] == OF_NOBODY
        assert heard["body"]["message"]["body"] == {"y": 1}


async def test_all_subscribers_are_told_the_same_sender(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        rc = await world.peer("hyperty-runtime://a.ex/rc")
        [url] = await ra.allocate("comm")
        for peer in (rb, rc):
            resources = [f"{url}/changes"]
            await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=resources)
        await say(ra, "update", url, f"{url}/changes", version=1, identity=FORGED)
        for peer in (rb, rc):
            assert (await line(peer))["body"] == {"version": 1, "identity": OF_NOBODY}


# ---- peers of upstream


async def test_peers_of_upstream_read_what_the_other_writes_and_ours_do_not(autojump_clock):
    """They tell each other who they are in a form of their own, for which no node answers."""
    theirs = {"userProfile": {"userURL": "user://idp.ex/old"}}
    async with open_world(allow_legacy=True) as world:
        rb = await world.peer(RB)
        old = await plain_peer(world)
        other = await plain_peer(world, "runtime://a.ex/older")
        await trio.sleep(1)
        for to in ("runtime://a.ex/older/h", f"{RB}/h"):
            body = {"value": 1, "identity": theirs}
            await old.say(id=5, type="create", from_=f"{OLD}/h", to=to, body=body)
        assert (await other.hear())["body"] == {"value": 1, "identity": theirs}
        told = {"runtime": "hyperty-runtime://a.ex/old", "vouchedBy": "none"}
        assert (await line(rb))["body"] == {"value": 1, "identity": told}

        await say(rb, "create", f"{RB}/h", "hyperty-runtime://a.ex/old/h", identity=theirs, value=2)
        assert (await old.hear())["body"] == {"value": 2}


# ---- nodes of other domains

USER_B = "user://idp.b.ex/bob"


def statement(runtime, user=None, by="domain"):
    """Return what stands under `identity`."""
    return {"runtime": runtime, **({"user": user} if user else {}), "vouchedBy": by}


UNKNOWN = statement(RX, by="none")
CLAIMS = {
    "its user": (statement(RX, USER_B, "identity-provider"), statement(RX, USER_B)),
    "its user, too": (statement(RX, "user://b.ex/bob"), statement(RX, "user://b.ex/bob")),
    "its runtime": (UNKNOWN, UNKNOWN),
    "our user": (statement(RX, "user://a.ex/alice"), UNKNOWN),
    "a user of our provider": (statement(RX, "user://idp.a.ex/alice"), UNKNOWN),
    "a third's user": (statement(RX, "user://c.ex/carl"), UNKNOWN),
    "one like its own": (statement(RX, "user://evil-b.ex/x"), UNKNOWN),
    "our runtime": (statement(RA, USER_B), None),
    "a third's runtime": (statement(R_C, USER_B), None),
    "no runtime": ({"user": USER_B, "vouchedBy": "domain"}, None),
    "a hyperty": (statement(HX, USER_B), None),
    "itself": (statement(NODE_B, USER_B), None),
    "a user for nobody": (statement(RX, USER_B, "none"), None),
    "nobody for a user": (statement(RX), None),
    "another voucher": (statement(RX, USER_B, "god"), None),
    "no address": (statement(RX, "bob"), None),
    "numbers": ({"runtime": 1, "user": 2, "vouchedBy": 3}, None),
    "a text": (RX, None),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("claim", "believed"), CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("has_login", [False, True])
async def test_another_domains_node_speaks_for_its_domain_only(
    claim, believed, has_login, autojump_clock
):
    issuer = Issuer()
    login = login_by(issuer, admission=Admission.ANYBODY) if has_login else None
    async with open_world(login=login) as world:
        rb = await world.peer(RB)
        node = await world.outsider(NODE_B)
        token = {"token": issuer.token(runtime=NODE_B)} if has_login else {}
        assert (await node.control("open", runtimeURL=NODE_B, **token)).code == 200
        await say(node, "create", HX, f"{RB}/h", value=1, identity=claim)
        assert (await line(rb))["body"].get("identity") == believed


@pytest.mark.parametrize("runtime", [RX, "hyperty-runtime://b.ex/ry"])
async def test_a_runtime_of_another_domain_is_not_its_node(runtime, autojump_clock):
    """A runtime that visits is told apart from the node of its domain."""
    async with open_world() as world:
        rb, visitor = await world.peer(RB), await world.peer(runtime)
        claim = {"runtime": RX, "user": USER_B, "vouchedBy": "domain"}
        await say(visitor, "create", f"{runtime}/h", f"{RB}/h", value=1, identity=claim)
        assert (await line(rb))["body"]["identity"] == {"runtime": runtime, "vouchedBy": "none"}
