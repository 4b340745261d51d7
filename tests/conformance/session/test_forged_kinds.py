"""A name of another domain, or of another user, is believed in no kind of message (SEC-16, S14).

The attacker has a session of its own and sends by a raw socket. Alice has an object that Bob
observes; Carol has asked for its updates, and is not answered yet.
"""

import json
from contextlib import ExitStack

import attrs
import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.conformance.test_operations import metrics
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_forms import WIRE_FORMS
from tests.support.wire.wire_guests import NUMBERS, Joining
from tests.support.wire.wire_peer import WirePeer
from tests.support.wire.wire_sync import an_object, change, observe, values

OTHER = "b.ex"
MN = f"domain://msg-node.{DOMAIN}"
REFUSED = {400, 401, 403, 404, 503}

NODES = {
    "open": EVERY_FORM,
    "routed": (*EVERY_FORM, "--foreign", f"{OTHER}=ws://127.0.0.1:1/link"),
    "logins": ("--http", "127.0.0.1:0"),
}
WAYS = [*(("open", form) for form in WIRE_FORMS), ("routed", "link"), ("logins", "link")]

GONE = {"attribute": "status", "value": "disconnected"}
RULE = {"method": "reload", "resource": "mine", "value": {"id": "mine"}}
FORGED = {"attribute": "x", "value": "forged", "version": 9}
CHILD = {"resource": "{hyperty}#1", "value": "forged"}

KINDS = {
    "status": [
        ("update", "{registry}", "{victim}/registration", GONE),
        ("update", "{hyperty}", "{victim}/registration", GONE),
        ("update", "{runtime}", "{alice}/status", {"value": "disconnected"}),
        ("update", "{runtime}", "{runtime}/status", {"value": "disconnected"}),
        ("update", "{runtime}/protostub/1", "{alice}/status", {"value": "failed"}),
        ("subscribe", "{runtime}/sm", f"{MN}/sm", {"resources": ["{victim}/registration"]}),
        (
            "subscribe", "{me}/sm", f"{MN}/sm",
            {"resources": ["{victim}/registration"], "source": "{runtime}"},
        ),
        ("subscribe", "{me}/sm", f"{MN}/sm", {"resources": ["{runtime}/registry"]}),
    ],
    "policy": [
        *(
            (verb, from_, to, RULE)
            for verb in ("create", "read", "update", "delete", "execute")
            for from_ in ("{runtime}/policy", "{hyperty}")
            for to in (f"{MN}/policy", "{alice}/policy")
        ),
        ("create", "{me}/policy", f"{MN}/policy", RULE),
        ("create", "{me}/policy", "{alice}/policy", {**RULE, "source": "{hyperty}"}),
    ],
    "consent": [
        ("response", "{object}/subscription", "{carol}/sm", {"code": 200, "value": {}}),
        ("response", "{object}", "{carol}/sm", {"code": 200, "value": {}}),
        ("response", "{hyperty}", "{carol}/sm", {"code": 200, "value": {}}),
        ("response", "{me}/sm", "{carol}/sm", {"code": 200, "value": {}, "source": "{hyperty}"}),
        ("create", "{object}/subscription", "{bob}/sm", {"value": {}, "source": "{hyperty}"}),
        ("create", "{me}/x", "{bob}/sm", {"value": {}, "source": "{object}"}),
    ],
    "objects": [
        ("update", "{object}", "{o}/changes", FORGED),
        ("update", "{object}", "{object}/changes", FORGED),
        ("update", "{runtime}/sm", "{o}/changes", FORGED),
        ("update", "{me}/sm", "{o}/changes", {**FORGED, "source": "{hyperty}"}),
        ("update", "{object}", "{o}/observers", FORGED),
        ("delete", "{object}/subscription", "{o}/changes", {}),
        ("delete", "{object}", "{object}/changes", {}),
        ("delete", "{hyperty}", "{alice}/sm", {"resource": "{o}"}),
    ],
    "children": [
        (verb, from_, "{o}/children/x", {**CHILD, **more})
        for verb in ("create", "update", "delete")
        for from_, more in (
            ("{hyperty}", {}),
            ("{object}", {}),
            ("{runtime}/sm", {}),
            ("{me}/sm", {"source": "{hyperty}"}),
        )
    ],
    "subscriptions": [
        ("subscribe", "{runtime}/sm", "{o}/subscription", {"source": "{hyperty}"}),
        ("subscribe", "{me}/sm", "{o}/subscription", {"source": "{hyperty}"}),
        ("subscribe", "{me}/sm", "{o}/subscription", {"subscriber": "{hyperty}"}),
        ("read", "{hyperty}", "{o}", {}),
        ("read", "{me}/sm", "{o}", {"source": "{runtime}"}),
        (
            "subscribe", "{runtime}/sm", f"{MN}/sm",
            {"resources": ["{o}/changes"], "source": "{runtime}"},
        ),
        (
            "subscribe", "{me}/sm", f"{MN}/sm",
            {"resources": ["{o}/changes"], "source": "{runtime}"},
        ),
        ("subscribe", "{me}/sm", f"{MN}/sm", {"resources": ["{object}", "{object}/subscription"]}),
    ],
    "unsubscriptions": [
        ("unsubscribe", "{runtime}/sm", "{o}/subscription", {"source": "{hyperty}"}),
        ("unsubscribe", "{me}/sm", "{o}/subscription", {"source": "{hyperty}"}),
        ("unsubscribe", "{runtime}/sm", f"{MN}/sm", {"resources": ["{o}/changes"]}),
        (
            "unsubscribe", "{me}/sm", f"{MN}/sm",
            {"resources": ["{o}/changes"], "source": "{runtime}"},
        ),
        ("unsubscribe", "{object}", "{bob}/sm", {"resource": "{o}"}),
        ("unsubscribe", "{hyperty}", "{bob}/sm", {"resource": "{o}"}),
        (
            "unsubscribe", "{me}/sm", f"{MN}/sm",
            {"resources": ["{o}"], "observer": "{bob}/sm", "runtime": "{bob}"},
        ),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return json.loads(called(keys, "--out", str(tmp_path_factory.mktemp("keys"))).out[0])


@pytest.fixture(scope="module")
def started(tmp_path_factory, key):
    """Starts each node once, and returns it."""
    running = {}
    with ExitStack() as stack:

        def start(name):
            if name not in running:
                log = tmp_path_factory.mktemp("node") / "log"
                login = ("--jwks", key["jwks"]) if name == "logins" else ()
                options = ("--domain", DOMAIN, *UNHURRIED, *NODES[name], *login)
                running[name] = stack.enter_context(node_process(log, *options))
            return running[name]

        yield start
        for process in running.values():
            assert process.stop() == 0
            assert process.complaints == []


@attrs.frozen
class Victims:
    """Those who are attacked.

    Attributes:
        alice: Reporter of the object `o`, and owner of `hyperty`.
        bob: Observes it.
        carol: Waits for consent.
        request: What Carol has asked Alice.
    """

    alice: WirePeer
    bob: WirePeer
    carol: WirePeer
    hyperty: str
    o: str
    request: dict

    async def heard(self):
        return [one for peer in (self.alice, self.bob, self.carol) for one in await peer.rest()]


async def victims(enter):
    # What peers in upstream's forms report is observed without their consent (CON-05).
    alice, bob, carol = await enter("alice", "link"), await enter("bob"), await enter("carol")
    (hyperty,) = await alice.allocate()
    o = await an_object(alice, "children/x")
    await alice.paths("subscribe", f"{alice.runtime}/status")
    seen = [f"{hyperty}/registration", bob.spelt(f"{alice.inside}/status")]
    assert (await bob.paths("subscribe", *seen))["body"]["code"] == 200
    await observe(alice, o, bob, "changes", "children/x", "observers")
    await carol.paths("subscribe", f"{o}/changes", source=carol.runtime)
    await carol.say("subscribe", carol.part("sm"), f"{o}/subscription", source=carol.runtime)
    return Victims(alice, bob, carol, hyperty, o, await alice.hear())


def pretended(them):
    """Return whom the attacker takes itself to be: of another domain, and Alice herself."""
    number = next(NUMBERS)
    foreign = {
        "hyperty": f"hyperty://{OTHER}/h{number}",
        "runtime": f"hyperty-runtime://{OTHER}/r{number}",
        "object": f"comm://{OTHER}/o{number}",
        "registry": f"domain://registry.{OTHER}",
    }
    own = {
        "hyperty": them.hyperty,
        "runtime": them.alice.inside,
        "object": them.o,
        "registry": f"domain://registry.{DOMAIN}",
    }
    return foreign, own


def filled(value, names, spelt):
    if isinstance(value, str):
        return spelt(value.format_map(names)) if "{" in value else value
    if isinstance(value, list):
        return [filled(one, names, spelt) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, names, spelt) for name, one in value.items()}
    return value


async def lost(node):
    counted = await metrics(node)
    return sum(
        count for name, count in counted.items() if name.startswith("protofly_messages_dropped")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("at", "wire"), WAYS, ids=map("-".join, WAYS))
async def test_a_forged_name_is_refused_and_nobody_hears_of_it(started, key, at, wire, kind):
    """SEC-01, SEC-16, I-B9, I-B10, MN-03, MN-13, S1, S14."""
    guests = Joining(started(at), wire)

    async def enter(who, form=None):
        peer = await guests.outsider(form)
        options = ("--key", key["key"], "--user", f"user://{DOMAIN}/{who}", "--domain", DOMAIN)
        login = {"token": called(issue, *options).out[0]} if at == "logins" else {}
        answer = await peer.open(**login)
        assert answer is None or answer["body"]["code"] == 200
        return peer

    async with guests.stack:
        them, mallory = await victims(enter), await enter("mallory")
        places = {
            "me": mallory.inside, "alice": them.alice.inside, "bob": them.bob.inside,
            "carol": them.carol.inside, "victim": them.hyperty, "o": them.o,
        }  # fmt: skip
        for names in pretended(them):
            for type_, *shape in KINDS[kind]:
                from_, to, body = filled(shape, {**places, **names}, mallory.spelt)
                before = await lost(guests.node)
                if type_ == "response":
                    id_ = mallory.shown_id(int(them.request["id"]))
                    await mallory.say_as(id_, type_, from_, to, body)
                else:
                    await mallory.say(type_, from_, to, **body)
                codes = {answer["body"].get("code") for answer in await mallory.rest()}
                what = (type_, from_, to, body)
                assert codes <= REFUSED, what
                assert codes or await lost(guests.node) == before + 1, what
                assert await them.heard() == [], what
        await change(them.alice, them.o, "true")
        await them.alice.rest()
        assert values(await them.bob.rest()) == ["true"]
        assert await them.carol.rest() == [], "who waits for consent hears nothing"
        await them.alice.answer(them.request, 200, value={})
        assert (await them.carol.hear())["body"]["code"] == 200
        assert await mallory.rest() == []
