"""A node that alters, swaps, replays, dials and relays gets nothing of a direct link (SEC-22).

Each attack has a name. In each the two runtimes go on to talk by the node, no link is in use with
anybody but the runtime that is meant, nobody else is told a byte, and no forged message is heard.
"""

from functools import partial

import attrs
import pytest
import trio

from actors.catalogue.trust_file import IssuerTrust, Trust
from actors.keys.base64url import read_base64url
from actors.keys.key_set import read_keys
from actors.runtime.link_guard import LinkGuard, Scope
from actors.runtime.p2p import signalling
from actors.runtime.p2p.handshake import machine_secret
from actors.runtime.p2p.link import P2PLink
from fsm.p2p.dialling import Believed, DialPolicy, Distrusted
from specs.bodies.object import Candidate, ConnectionData
from specs.identity import SenderIdentity, VouchedBy
from tests.support.malicious_node import GONE, Attack, victims
from tests.support.node.issuer import ISSUER, Issuer
from tests.support.runtime.domain import DOMAIN
from transports.link import Kind
from transports.tls import PinnedTls

ALICE, BOB = (f"hyperty-runtime://{DOMAIN}/{name}" for name in ("alice", "bob"))


@pytest.fixture
def ends(monkeypatch):
    """Every end of a link that is in use, with the address of its stub."""
    made = []

    def make(proven, context, stub, sender):
        link = P2PLink(proven, context, stub, sender)
        made.append((stub, link))
        return link

    monkeypatch.setattr(signalling, "P2PLink", make)
    return made


async def talk(world, ends, count=1):
    """Let Alice ask Bob and Bob ask Alice while links are set up; whether all was answered."""
    world.ends = ends
    codes = []
    for number in range(count):
        codes.append((await world["alice"].ask(world["bob"], f"alice {number}")).code)
        codes.append((await world["bob"].ask(world["alice"], f"bob {number}")).code)
        await trio.sleep(15)
    return set(codes) == {200}


def assert_nothing_gained(world):
    assert world.node.stolen == []
    assert world.strangers() == []
    for name, other in (("alice", "bob"), ("bob", "alice")):
        assert all(str(one).startswith(other) for one in world[name].hyperty.heard)


# ---- what is written in an offer or answer

OTHER = LinkGuard()


def flipped(text):
    return text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1]


def other_certificate(_):
    return OTHER.sign(ConnectionData(ALICE), Scope(signer=ALICE, reader=BOB, object="")).certificate


def within(name, change):
    """Alter one entry of `security`."""

    def altered(_world):
        def alter(security):
            value = change(security.get(name))
            rest = {key: held for key, held in security.items() if key != name}
            return rest if value is GONE else {**rest, name: value}

        return {"security": alter}

    return altered


def whole(name, change):
    return lambda _world: {name: change}


def by_node(**said):
    """The node signs in the place of the runtime, by its own key; it shows what it can get."""

    def altered(world):
        shown = {name: make(world) for name, make in said.items()}
        return {"security": lambda _: world.node.signed(world, **shown)}

    return altered


def stated(by=None, **changed):
    """Another statement about Alice, by her domain or another one."""
    return lambda world: within(
        "statement", lambda _: world.says("alice", by and world.node.domain_key, **changed)
    )(world)


def signature_for(purpose, *parts):
    """What the runtime itself has signed for something else."""
    return lambda world: within(
        "signature", lambda _: world.identity("alice").key.signature(purpose, parts)
    )(world)


def candidate(**changed):
    return whole("candidates", lambda listed: [{**one, **changed} for one in listed])


ELSEWHERE = {"kind": "tcp", "address": "127.0.0.1:9", "secret": "00"}
CAROL = f"hyperty-runtime://{DOMAIN}/carol"

WRITTEN = {
    "key swapped": within("publicKey", lambda _: OTHER._identity.key.public),
    "key is none": within("publicKey", lambda _: "AAAA"),
    "key taken out": within("publicKey", lambda _: GONE),
    "certificate swapped": within("certificate", other_certificate),
    "certificate with more behind it": within("certificate", lambda held: held + "AAAA"),
    "certificate is none": within("certificate", lambda _: "!"),
    "signature altered": within("signature", flipped),
    "signature emptied": within("signature", lambda _: ""),
    "signature of a session's proof": signature_for("open", DOMAIN, ALICE, "challenge", ""),
    "signature of nothing": signature_for("p2p-offer"),
    "signed by the node, with the statement it has read": by_node(
        statement=lambda world: world.identity("alice").statement
    ),
    "signed by the node, with a statement of its own domain": by_node(
        statement=lambda world: world.says(
            "alice", world.node.domain_key, thumbprint=world.node.key.thumbprint
        )
    ),
    "signed by the node, without a statement": by_node(),
    "statement taken out": within("statement", lambda _: GONE),
    "statement altered": within("statement", flipped),
    "statement is a word": within("statement", lambda _: "trust me"),
    "statement of another runtime": stated(runtime=CAROL),
    "statement of another key": stated(thumbprint=OTHER._identity.key.thumbprint),
    "statement that is over": stated(until=0.0),
    "statement of the future": stated(issued=9_000.0),
    "statement by another domain's key": stated(by="node"),
    "statement of another domain": stated(domain="b.example"),
    "assertion put in": within("assertion", lambda _: "a.b.c"),
    "candidate leads elsewhere": candidate(address="127.0.0.1:9"),
    "candidate with another secret": candidate(secret="ab" * 16),
    "candidate of another kind": candidate(kind="unix"),
    "candidate with another proof of its machine": candidate(host="00"),
    "candidates taken out": whole("candidates", lambda _: []),
    "candidate put in": whole("candidates", lambda held: [*held, ELSEWHERE]),
    "candidate put in front": whole("candidates", lambda held: [ELSEWHERE, *held]),
    "candidates doubled": whole("candidates", lambda held: held * 2),
    "no signature at all": whole("security", lambda _: GONE),
    "signature is null": whole("security", lambda _: None),
    "signature of another form": whole("security", lambda _: {"fingerprint": "00"}),
    "number of the negotiation raised": whole("status", lambda _: "negotiation-2"),
    "owner is another stub": whole("owner", lambda held: f"{held}9"),
    "owner is of another runtime": whole("owner", lambda _: f"{CAROL}/p2prequester/1"),
}


@pytest.mark.parametrize("name", WRITTEN)
async def test_an_altered_offer_or_answer_opens_no_link(name, ends, autojump_clock):
    async with victims(attack := Attack("alice")) as world:
        attack.fields |= WRITTEN[name](world)
        assert await talk(world, ends)
        assert_nothing_gained(world)
        assert world.ends == []
        assert world.failed()


HARMLESS = {
    "description altered": whole("connectionDescription", lambda _: {"type": "answer"}),
    "plea put in": whole("status", lambda _: "unreachable-7"),
}


@pytest.mark.parametrize("name", [None, *HARMLESS])
async def test_what_is_not_signed_leads_to_the_peer_or_nowhere(name, ends, autojump_clock):
    async with victims(attack := Attack("alice")) as world:
        if name is not None:
            attack.fields |= HARMLESS[name](world)
        assert await talk(world, ends)
        assert_nothing_gained(world)
        peers = {link._sender.runtime: link._sender for _, link in world.ends}
        assert {one.vouched_by for one in peers.values()} == {VouchedBy.DOMAIN}
        assert peers[BOB].user == f"user://{DOMAIN}/bob"


# ---- what was good elsewhere, or before


async def linked(world, ends, one="alice", other="bob"):
    """Let one have a live link to another; return what the one has offered."""
    world.ends = ends
    await world[one].ask(world[other], f"{one} first")
    await world[one].wait_for("live", world[other])
    await world[other].wait_for("live", world[one])
    return world.node.last(one, "candidates"), world.node.last(one, "security")


async def unlinked(world):
    """End the link, and wait until both have forgotten it."""
    for entry in await world["bob"].runtime.links():
        body = {"method": "disconnect", "params": [entry.remote]}
        await world["bob"].runtime.order("registry", "execute", entry.stub, body)
    await trio.sleep(60)


def instead(candidates, security):
    return {"candidates": lambda _: candidates, "security": lambda _: security}


async def the_offer_of_the_link_before(world, ends):
    old = await linked(world, ends)
    await unlinked(world)
    return instead(*old)


async def the_offer_to_somebody_else(world, ends):
    return instead(*await linked(world, ends, "alice", "carol"))


async def the_offer_of_somebody_else(world, ends):
    return instead(*await linked(world, ends, "carol", "bob"))


async def the_signature_alone_of_the_link_before(world, ends):
    _, old = await linked(world, ends)
    await unlinked(world)
    return {"security": lambda _: old}


async def its_own_offer_as_the_answer(world, _ends):
    world.ends, world.node.attack.owner = _ends, "bob"
    return {
        "candidates": lambda held: world.node.last("alice", "candidates") or held,
        "security": lambda held: world.node.last("alice", "security") or held,
    }


REPLAYED = (
    the_offer_of_the_link_before,
    the_signature_alone_of_the_link_before,
    the_offer_to_somebody_else,
    the_offer_of_somebody_else,
    its_own_offer_as_the_answer,
)


@pytest.mark.parametrize("replay", REPLAYED, ids=lambda one: one.__name__)
async def test_what_was_good_elsewhere_opens_no_link(replay, ends, autojump_clock):
    async with victims(attack := Attack("alice"), "alice", "bob", "carol") as world:
        attack.fields |= await replay(world, ends)
        before = len(ends)
        for member in ("alice", "bob"):
            world[member].hyperty.heard.clear()
        assert await talk(world, ends)
        assert_nothing_gained(world)
        assert ends[before:] == []


def guards():
    """Alice, Bob, and the bond of Alice's offer to Bob."""
    return LinkGuard(), LinkGuard(), Scope(signer=ALICE, reader=BOB, object="connection://a")


HELD = ConnectionData(f"{ALICE}/p2prequester/1", candidates=(Candidate("tcp", "h:1", "00"),))
BONDS = {
    "of another negotiation": {"negotiation": 2},
    "of another object": {"object": "connection://a/2"},
    "for another reader": {"reader": CAROL},
    "of another signer": {"signer": CAROL},
    "an answer": {"answers": "connection://b/1"},
}


@pytest.mark.parametrize("name", BONDS)
async def test_a_signature_is_good_for_one_offer_only(name):
    alice, bob, bond = guards()
    signed = attrs.evolve(HELD, security=alice.sign(HELD, bond))
    assert isinstance(bob.standing(signed, bond), Believed)
    assert isinstance(bob.standing(signed, attrs.evolve(bond, **BONDS[name])), Distrusted)


async def test_an_answer_is_good_for_one_offer_only():
    alice, bob, bond = guards()
    bond = attrs.evolve(bond, answers="connection://b/1")
    signed = attrs.evolve(HELD, security=alice.sign(HELD, bond))
    assert isinstance(bob.standing(signed, bond), Believed)
    other = attrs.evolve(bond, answers="connection://b/2")
    assert isinstance(bob.standing(signed, other), Distrusted)


INVITED = {
    "invitation in the name of another runtime": {"runtime": CAROL},
    "invitation in the name of its reader": {"runtime": BOB},
}


@pytest.mark.parametrize("name", INVITED)
@pytest.mark.parametrize("with_stub", [True, False])
async def test_a_false_runtime_in_an_invitation_opens_no_link(
    name, with_stub, ends, autojump_clock
):
    def falsified(who, message):
        body = message["body"]
        is_invitation = message["type"] == "create" and "/p2phandler/" in message["to"]
        if who == "alice" and is_invitation and isinstance(body.get("value"), dict):
            body["value"] |= INVITED[name]
            if with_stub:
                body["source"] = f"{INVITED[name]['runtime']}/p2prequester/1"
        return (message,)

    async with victims(Attack("alice", message=falsified)) as world:
        assert await talk(world, ends)
        assert_nothing_gained(world)
        handled = [link for stub, link in ends if stub.startswith(f"{BOB}/p2phandler/")]
        assert handled == []


# ---- what identity providers and domains say


def provider():
    return Issuer(domain=DOMAIN)


def trusting(issuer):
    return Trust({}, issuers={ISSUER: IssuerTrust(read_keys(issuer.jwks()))})


def token(issuer, world, name="alice", key=None, **claims):
    """A token of a user that names a key and, if he has a runtime here, that runtime."""
    bound = {"cnf": {"jkt": key or world.identity(name).key.thumbprint}}
    if name in world.members:
        bound["runtime"] = world[name].runtime.url
    return issuer.token(**{"sub": f"user://idp.ex/{name}", "exp": 10_000, **bound, **claims})


def shown(**claims):
    """Alice shows a token with other claims."""

    def made(world, issuer):
        world.identity("alice").assertion = token(issuer, world, **claims)

    return made


def by_another_key(world, issuer):
    other = attrs.evolve(issuer, key=Issuer().key)
    world.identity("alice").assertion = token(other, world)


def unsigned(world, issuer):
    header, claims, _ = token(issuer, world).split(".")
    world.identity("alice").assertion = f"{header}.{claims}."


def without_algorithm(world, issuer):
    claims = token(issuer, world).split(".")[1]
    world.identity("alice").assertion = f"eyJhbGciOiJub25lIn0.{claims}.AAAA"


def put_in(make):
    """The node puts in a token of its own, and alters nothing else."""

    def made(world, issuer):
        text = make(world, issuer)
        world.node.attack.fields |= within("assertion", lambda _: text)(world)

    return made


def all_by_node(world, issuer):
    """The node has a login of its own: it offers its key with its token, and a false statement."""
    mine = token(issuer, world, "mallory", world.node.key.thumbprint)
    words = world.says("alice", thumbprint=world.node.key.thumbprint)
    world.node.attack.fields |= by_node(assertion=lambda _: mine, statement=lambda _: words)(world)


ASSERTED = {
    "no token": lambda world, issuer: None,
    "token of another key": shown(key=OTHER._identity.key.thumbprint),
    "token bound to no key": shown(cnf=None),
    "token bound otherwise": shown(cnf={"kid": "1"}),
    "token of the future": shown(iat=9_000, exp=9_300),
    "token for another audience": shown(aud="b.example"),
    "token for others, too": shown(aud=[DOMAIN, "b.example"]),
    "token issued to another client": shown(azp="somebody"),
    "token of another issuer": shown(iss="https://evil.ex"),
    "token of another runtime": shown(runtime=CAROL),
    "token of no runtime": shown(runtime=None),
    "token of no user": shown(sub="https://idp.ex/x"),
    "token by another key": by_another_key,
    "token without a signature": unsigned,
    "token without an algorithm": without_algorithm,
    "token of the node put in": put_in(
        lambda world, issuer: token(issuer, world, "mallory", world.node.key.thumbprint)
    ),
    "token of the peer put in": put_in(lambda world, issuer: token(issuer, world, "bob")),
    "statement put in as a token": put_in(lambda world, _: world.says("alice")),
    "token taken out": lambda world, issuer: (
        shown()(world, issuer),
        world.node.attack.fields.update(within("assertion", lambda _: GONE)(world)),
    ),
    "user of the domain and of the token differ": shown(sub="user://idp.ex/carol"),
    "token, key and false statement of the node": all_by_node,
}


@pytest.mark.parametrize("name", ASSERTED)
async def test_no_other_assertion_opens_a_link(name, ends, autojump_clock):
    issuer = provider()
    terms = {"require": VouchedBy.IDENTITY_PROVIDER, "trust": trusting(issuer)}
    async with victims(Attack("alice"), **terms) as world:
        for each in ("alice", "bob"):
            world.identity(each).statement = world.says(each, user=f"user://idp.ex/{each}")
        world.identity("bob").assertion = token(issuer, world, "bob")
        await trio.sleep(100)
        ASSERTED[name](world, issuer)
        assert await talk(world, ends)
        assert_nothing_gained(world)
        assert ends == []


async def test_a_peer_is_known_by_its_identity_provider(ends, autojump_clock):
    issuer = provider()
    terms = {"require": VouchedBy.IDENTITY_PROVIDER, "trust": trusting(issuer)}
    async with victims(Attack(), **terms) as world:
        for each in ("alice", "bob"):
            world.identity(each).statement = world.says(each, user=f"user://idp.ex/{each}")
            world.identity(each).assertion = token(issuer, world, each)
        await linked(world, ends)
        known = {link._sender for _, link in ends}
        assert known == {
            SenderIdentity(url, f"user://idp.ex/{name}", VouchedBy.IDENTITY_PROVIDER)
            for url, name in ((ALICE, "alice"), (BOB, "bob"))
        }


# ---- the node takes the place of a runtime


async def impersonated(world, ends, nursery, **said):
    """Offer a listener of its own as Bob's; `said` of its key is all that it shows for that."""
    node, tls = world.node, PinnedTls(world.node.guard.certificate)
    listener = await nursery.start(node.listen, Kind.TCP, "127.0.0.1:0", tls.listening)
    near = DialPolicy(("tcp",), machine_secret()).sign_candidate(
        Candidate("tcp", listener.address, "00")
    )
    own = attrs.asdict(near)

    def signed(_):
        tls.pin(read_base64url(node.last("alice", "security")["certificate"]))
        return node.signed(world, **{name: make(world) for name, make in said.items()})

    node.attack.fields |= {"candidates": lambda _: [own], "security": signed}
    world.ends = ends
    await world["alice"].ask(world["bob"], "alice first")
    await trio.sleep(15)
    with trio.move_on_after(10):
        await world["alice"].ask(world["bob"], "alice's secret")


def false_statement(world, issuer):
    """A false one, which the domain has really signed."""
    del issuer
    return world.says("bob", thumbprint=world.node.key.thumbprint, user="user://idp.ex/mallory")


def own_token(**claims):
    """A valid token of an account of the node itself, for its own key."""
    return lambda world, issuer: token(
        issuer, world, "mallory", world.node.key.thumbprint, **claims
    )


IMPOSTORS = {
    "false statement": {"statement": false_statement},
    "token of its own account": {"assertion": own_token()},
    "token of its own account, and false statement": {
        "assertion": own_token(), "statement": false_statement,
    },
    "token of its own account for a runtime of its own": {"assertion": own_token(runtime=CAROL)},
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSTORS)
@pytest.mark.parametrize("require", [VouchedBy.DOMAIN, VouchedBy.IDENTITY_PROVIDER])
async def test_a_node_takes_the_place_of_a_runtime_only_where_the_word_of_its_domain_is_enough(
    require, name, ends, autojump_clock
):
    """SEC-23. A node that has the key of the domain can say of any key that it is a runtime's."""
    issuer = provider()
    terms = {"require": require, "trust": trusting(issuer)}
    async with victims(Attack("bob"), **terms) as world, trio.open_nursery() as nursery:
        for each in ("alice", "bob"):
            world.identity(each).statement = world.says(each, user=f"user://idp.ex/{each}")
            world.identity(each).assertion = token(issuer, world, each)
        said = {one: partial(make, issuer=issuer) for one, make in IMPOSTORS[name].items()}
        await impersonated(world, ends, nursery, **said)
        is_believed = require is VouchedBy.DOMAIN and "statement" in said
        assert bool(world.node.stolen) is is_believed
        assert bool(world.strangers()) is is_believed
        nursery.cancel_scope.cancel()
