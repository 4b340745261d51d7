"""Upstream's forms: what was registered outlives the session, and a session is come back to.

Peers that know upstream's wire from its description only; their node has no logins.
"""

import json

import pytest
import trio

from fsm.judge.trace_line import Verdict, read_line
from fsm.judge.verdict import judge_run
from tests.conformance.registry.test_registration import record, registered, reported
from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_sync import values

UPSTREAMS = pytest.mark.parametrize("spoken", ["plain", "session"])
PATIENCE = 60


async def closed(peer):
    await peer.close()
    with pytest.raises(Left):
        await peer.farewell()


async def cut(peer):
    await peer.vanish()


ENDED = pytest.mark.parametrize("end", [closed, cut])


@ENDED
@UPSTREAMS
async def test_a_record_registered_in_upstreams_forms_outlives_the_session(guests, spoken, end):
    """MN-07, CON-02, M-25, M-26: found live by address and by user, also by who comes again."""
    peer, other = await guests(spoken), await guests("link")
    user = f"user://{DOMAIN}/{peer.name}"
    url = await registered(peer, user=user)
    await end(peer)

    assert (await reported(other, "read", resource=url))[1]["status"] == "live"
    again = await guests(spoken, peer.name)

    assert (await reported(again, "read", resource=url))[0] == 200
    code, found = await reported(again, "read", resource=f"/hyperty/user/{user}")
    assert (code, [one["url"] for one in found]) == (200, [url])


@UPSTREAMS
async def test_subscribers_are_not_notified_that_a_lasting_record_is_away(guests, spoken):
    """M-30, I-G5: it is not; then its runtime unregisters it in another session."""
    peer, other = await guests(spoken), await guests("link")
    url = await registered(peer)
    await other.paths("subscribe", f"{url}/registration")
    await closed(peer)
    assert values(await other.rest()) == []

    again = await guests(spoken, peer.name)
    gone = {"resource": url, "attribute": "status", "value": "disconnected"}
    assert (await reported(again, "update", **gone))[0] == 200

    assert values([await other.hear()]) == ["disconnected"]
    assert (await reported(other, "read", resource=url))[0] == 408


@UPSTREAMS
async def test_a_message_to_a_record_whose_runtime_is_away_is_not_delivered(guests, spoken):
    """MN-27: 404, as for any address that no session owns."""
    peer, other = await guests(spoken), await guests("link")
    url = await registered(peer)
    await closed(peer)

    assert await other.code("create", other.part("ua"), url, value=1) == 404
    assert (await reported(other, "read", resource=url))[0] == 200


@ENDED
@UPSTREAMS
async def test_a_lasting_record_expires_in_its_time(guests, spoken, end):
    """I-G4, REG-07: after `expires` without a sign of life it is away."""
    peer, other = await guests(spoken), await guests("link")
    url = await registered(peer, expires=1)
    await other.paths("subscribe", f"{url}/registration")
    await end(peer)

    with trio.fail_after(PATIENCE):
        while (await reported(other, "read", resource=url))[0] == 200:
            pass

    assert (await reported(other, "read", resource=url))[0] == 408
    assert values([await other.hear()]) == ["disconnected"]


@UPSTREAMS
async def test_a_record_registered_anew_in_our_form_ends_with_its_session(guests, spoken):
    """REG-09, MN-07: the form of the last registration counts."""
    peer, other = await guests(spoken), await guests("link")
    url = f"hyperty-runtime://{DOMAIN}/{peer.name}"
    assert (await reported(peer, "create", value=record(peer, url)))[0] == 200
    await closed(peer)

    ours = await guests("link", peer.name)
    assert (await reported(ours, "create", value=record(ours, url)))[0] == 200
    await ours.close()

    with trio.fail_after(PATIENCE):
        while (await reported(other, "read", resource=url))[0] == 200:
            pass
    assert (await reported(other, "read", resource=url))[0] == 408


async def left(peer, *, seen_by):
    """Cut a peer's link, and wait until the node knows it."""
    await peer.vanish()
    await seen_by.rest()


async def test_an_open_gets_the_detached_session_and_what_was_sent_meanwhile(guests):
    """MN-04, MN-06, C-84, U-39: upstream's stub forgets its token, and asks by name."""
    peer, other = await guests("session"), await guests("link")
    (address,) = await peer.allocate()
    await left(peer, seen_by=other)
    for number in range(3):
        await other.say("create", other.part("ua"), address, value=number)
    await other.rest()
    again = await guests.outsider("session", peer.name)

    answer = await again.open()

    assert (answer["body"]["code"], again.token) == (200, peer.token)
    assert values([await again.hear() for _ in range(3)]) == [0, 1, 2]
    assert await other.code("create", other.part("ua"), f"{address}x") == 404
    asked = await other.say("read", other.part("ua"), address)
    await again.answer(await again.hear())
    assert (await other.answer_to(asked))["body"]["code"] == 200


async def test_an_open_gets_it_as_often_as_its_link_is_cut(guests):
    """MN-04, MN-06, I-M3: addresses and paths stay, nobody owns the session twice."""
    peer, other = await guests("session"), await guests("link")
    (address,) = await peer.allocate()
    for _ in range(3):
        await left(peer, seen_by=other)
        again = await guests("session", peer.name)
        assert again.token == peer.token
        peer = again

    thief = await guests.outsider("session", peer.name)
    assert (await thief.open())["body"]["code"] == 409
    assert await peer.code("read", address, f"hyperty://{DOMAIN}/nobody") == 404


async def test_an_open_gets_no_session_of_our_form(guests):
    """I-M2, C-84, S2: who has a token keeps it."""
    peer, other = await guests("link"), await guests("link")
    await peer.allocate()
    await left(peer, seen_by=other)
    thief = await guests.outsider("session", peer.name)

    assert (await thief.open())["body"]["code"] == 409


# ---- what the judges say of it


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The lines of a node's trace: two runtimes registered and left, one in each form."""
    folder = tmp_path_factory.mktemp("traced")
    options = ("--domain", DOMAIN, *EVERY_FORM, *UNHURRIED, "--trace", str(folder / "traces"))
    with node_process(folder / "log", *options) as node:
        trio.run(_both_forms, node)
        assert node.stop() == 0
    parts = sorted((folder / "traces").rglob("part-*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_bytes().splitlines()]


async def _both_forms(node):
    guests = Joining(node, "link")
    async with guests.stack:
        for form in ("plain", "session", "link"):
            peer = await guests(form, f"judged-{form}")
            await registered(peer)
            await peer.close()
        again = await guests("session", "judged-session")
        await again.vanish()
        again = await guests("session", "judged-session")
        assert await again.allocate()


def judged(lines):
    numbered = [{**line, "ln": number} for number, line in enumerate(lines, start=1)]
    return judge_run([read_line(json.dumps(line).encode()) for line in numbered])


def of_record(lines, state):
    """Return the key of the record that was in this state."""
    steps = [line for line in lines if line.get("machine") == "registration"]
    return next(line["key"] for line in steps if line["new"] == state)


def test_a_trace_of_lasting_records_conforms(traced):
    """I-G1, I-A7."""
    judgement = judged(traced)

    assert judgement.verdict is Verdict.CONFORMANT, judgement.findings
    last = {line["key"]: line["new"] for line in traced if line.get("machine") == "registration"}
    assert sorted(last.values()) == ["disconnected", "lasting", "lasting"]


def test_a_record_of_our_form_that_stays_live_is_a_violation(traced):
    """I-G1, REG-09: live is no place to end in."""
    key = of_record(traced, "live")
    kept = [line for line in traced if (line.get("key"), line.get("old")) != (key, "live")]
    assert len(kept) == len(traced) - 1

    assert judged(kept).verdict is Verdict.VIOLATIONS


def test_a_record_of_our_form_that_is_said_to_last_is_a_violation(traced):
    """I-A7: only upstream's form has such records."""
    key = of_record(traced, "live")
    changed = {"new": "lasting", "cause": "create-lasting"}
    forged = [
        line | changed if line.get("new") == "live" and line.get("key") == key else line
        for line in traced
        if (line.get("key"), line.get("old")) != (key, "live")
    ]

    assert judged(forged).by_claim == {"I-A7": 1}
