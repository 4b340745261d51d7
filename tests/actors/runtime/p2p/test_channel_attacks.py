"""Attacks on the offers and answers of data channels, by the node in between and by the peer.

None of them opens a link to anybody else, has an address tried that the peer has not signed or
that policy does not allow, or keeps the two runtimes from talking by the node (SEC-20, S6, T10).
"""

import random

import attrs
import pytest
import trio

from actors.keys.certificate import fingerprint_of
from actors.runtime.link_guard import LinkGuard, Scope
from fsm.p2p.dialling import Believed, DialPolicy, Distrusted
from fsm.p2p.link_end import LinkTerms, Role
from specs.bodies.object import ConnectionData, ConnectionDescription, IceCandidate
from specs.bodies.sdp import Description, read_description, write_description
from specs.limits.webrtc import MAX_ICE_CANDIDATES, MAX_SDP
from tests.support.link_calls import is_asked, tell, told_end
from tests.support.malicious_node import Attack, victims
from tests.support.p2p_objects import believed
from tests.support.runtime.domain import DOMAIN
from transports.bodies import write_body
from transports.link import Kind

ALICE, BOB = (f"hyperty-runtime://{DOMAIN}/{name}" for name in ("alice", "bob"))
BOND = Scope(signer=ALICE, reader=BOB, object="connection://a.example/c1")
OTHER = "sha-256 " + ":".join(["5E"] * 32)


# ---- the node alters what passes


def sdp_changed(change):
    return {"connectionDescription": lambda held: {**held, "sdp": change(held["sdp"])}}


def security_changed(**changed):
    return {"security": lambda held: {**held, **changed}}


def swapped(sdp: str) -> str:
    return sdp.replace(read_description(sdp, kind_of(sdp)).fingerprint, OTHER)


def kind_of(sdp: str) -> str:
    return "offer" if "actpass" in sdp else "answer"


def own_sdp(sdp: str) -> str:
    return write_description(Description("evil", "0" * 22, OTHER), kind_of(sdp))


ALTERED = {
    "fingerprint in the description swapped": sdp_changed(swapped),
    "fingerprint in the signature swapped": security_changed(fingerprint=OTHER),
    "both fingerprints swapped": sdp_changed(swapped) | security_changed(fingerprint=OTHER),
    "fingerprint taken out": security_changed(fingerprint=None),
    "description of its own": sdp_changed(own_sdp),
    "description of its own, with its fingerprint": sdp_changed(own_sdp)
    | security_changed(fingerprint=OTHER),
    "password changed": sdp_changed(lambda sdp: sdp.replace("ice-pwd:0", "ice-pwd:1")),
    "candidate put into the description": sdp_changed(
        lambda sdp: sdp + "a=candidate:1 1 udp 1 203.0.113.9 9 typ host\r\n"
    ),
    "a line put in": sdp_changed(lambda sdp: sdp + "a=x\r\n"),
    "description emptied": sdp_changed(lambda _: ""),
}


@pytest.mark.parametrize("owner", ["alice", "bob"])
@pytest.mark.parametrize("name", ALTERED)
async def test_an_altered_description_opens_no_link(name, owner, autojump_clock):
    async with victims(attack := Attack(owner), kinds=(Kind.WEBRTC,)) as world:
        attack.fields |= ALTERED[name]
        for number in range(2):
            assert (await world["alice"].ask(world["bob"], number)).code == 200
            await trio.sleep(15)
        assert world.failed()
        assert [wire for wire in world.node.network.wires if wire.kind is Kind.WEBRTC] == []


async def test_without_an_attack_the_link_is_live(autojump_clock):
    """The control of the tests above: what they alter is all that is wrong."""
    async with victims(Attack("nobody"), kinds=(Kind.WEBRTC,)) as world:
        await world["alice"].ask(world["bob"], "first")
        await world["alice"].wait_for("live", world["bob"])
        (wire,) = world.node.network.open_wires(Kind.WEBRTC)
        assert wire.is_open


async def test_the_description_of_the_link_before_opens_no_link(autojump_clock):
    async with victims(attack := Attack("alice"), kinds=(Kind.WEBRTC,)) as world:
        await world["alice"].ask(world["bob"], "first")
        await world["alice"].wait_for("live", world["bob"])
        held = {
            name: world.node.last("alice", name) for name in ("connectionDescription", "security")
        }
        attack.fields |= {name: lambda _, old=old: old for name, old in held.items()}
        world.node.network.open_wires(Kind.WEBRTC)[0].cut()
        await world["alice"].wait_for("disconnected", world["bob"])
        await trio.sleep(60)
        assert world.node.network.open_wires(Kind.WEBRTC) == []
        assert (await world["alice"].ask(world["bob"], "by the node")).code == 200


async def test_a_candidate_that_the_node_adds_is_not_tried(autojump_clock):
    evil = {"candidate": "candidate:1 1 udp 9 203.0.113.9 9 typ host", "sdpMid": "0"}
    async with victims(attack := Attack("alice"), kinds=(Kind.WEBRTC,)) as world:
        attack.fields |= {
            "iceCandidates": lambda held: [
                *held,
                *({**one, **evil} for one in held),
                {**evil, "signature": "AAAA"},
            ]
        }
        await world["alice"].ask(world["bob"], "first")
        await world["alice"].wait_for("live", world["bob"])
        ends = world.node.network._channels._ends.values()
        assert {port for end in ends for port in end.heard} == {end.port for end in ends}


# ---- the peer signs what is malformed


def mutated(number: int) -> str:
    """Return one of many malformed descriptions, the same each time."""
    chance = random.Random(number)  # noqa: S311 - variety, no secret
    lines = GOOD.removesuffix("\r\n").split("\r\n")
    match number % 8:
        case 0:
            del lines[chance.choice(NEEDED)]
        case 1:
            lines.append(lines[chance.choice(NEEDED)])
            lines[-1] = lines[-1].replace("0", "1") + "A"
        case 2:
            lines.insert(chance.randrange(len(lines)), chance.choice(JUNK))
        case 3:
            lines += ["a=x:" + "y" * 200] * (MAX_SDP // 200)
        case 4:
            one = chance.choice(NEEDED)
            lines[one] = lines[one][: chance.randrange(1, 9)]
        case 5:
            lines += [f"a=candidate:{n} 1 udp 1 203.0.113.9 {n + 1} typ host" for n in range(99)]
        case 6:
            lines += lines[6 : chance.randrange(8, len(lines))]
        case _:
            return "\n".join(lines) + chr(chance.randrange(256)) * chance.randrange(1, 60_000)
    return "\r\n".join(lines) + "\r\n"


JUNK = ("nonsense", "m=video 9 RTP/SAVPF 96", "m=", "=", "", "a=fingerprint:" + OTHER, "A=b")
GUARD = LinkGuard()
GOOD = write_description(
    Description("user", "p" * 22, fingerprint_of(GUARD.channel_certificate())), "offer"
)
NEEDED = [
    number
    for number, line in enumerate(GOOD.split("\r\n"))
    if line.startswith(("m=", "a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup"))
]


def signed(sdp: str) -> ConnectionData:
    data = ConnectionData(f"{ALICE}/p2prequester/1", "", ConnectionDescription("offer", sdp), ())
    return attrs.evolve(data, security=GUARD.sign(data, BOND))


def test_a_description_that_its_peer_has_signed_is_believed():
    assert isinstance(LinkGuard().standing(signed(GOOD), BOND), Believed)


@pytest.mark.parametrize("number", range(64))
def test_a_malformed_description_is_refused_whoever_has_signed_it(number):
    sdp = mutated(number)
    assert sdp != GOOD
    found = LinkGuard().standing(signed(sdp), BOND)
    assert isinstance(found, Distrusted)
    assert len(found.why) < 200


def test_a_description_with_another_fingerprint_than_the_signed_one_is_refused():
    found = LinkGuard().standing(signed(swapped(GOOD)), BOND)

    assert isinstance(found, Distrusted)
    assert "another certificate" in found.why


def test_the_description_of_an_end_is_no_answer():
    answers = attrs.evolve(BOND, answers="connection://b.example/c2")
    data = signed(GOOD)
    shown = GUARD.sign(attrs.evolve(data, security=None), answers)

    found = LinkGuard().standing(attrs.evolve(data, security=shown), answers)
    assert isinstance(found, Distrusted)


# ---- the peer lists addresses of others


def tried(*candidates: str) -> list[str]:
    """Return the candidates of a peer that are tried by a runtime that names nobody."""
    terms = LinkTerms(BOB, ALICE, f"{BOB}/p2phandler/1/conn/1", f"{ALICE}/p2prequester/1")
    policy = DialPolicy(("webrtc",), b"of this machine")
    end = told_end(terms, Role.HANDLER, policy, "connection://b.example/c1")
    end.tell(tell.start(), 0.0)
    end.tell(tell.row_reported(has_own_request=False), 0.0)
    seen = believed(ConnectionData(f"{ALICE}/p2prequester/1"))
    ice = tuple(IceCandidate(one, "s") for one in candidates)
    asked = end.tell(tell.peer_object_seen(seen.data, seen.standing, ice), 0.0)
    return [each.candidate for each in asked if is_asked(each, "hear_ice")]


def at(host: str, port: int = 9, protocol: str = "udp", kind: str = "host") -> str:
    return f"candidate:1 1 {protocol} 1 {host} {port} typ {kind}"


ODD = [
    *map(at, ("127.0.0.1", "::1", "10.0.0.7", "192.168.1.1", "172.16.0.1", "fd00::1")),
    *map(at, ("169.254.169.254", "fe80::1", "0.0.0.0", "::", "255.255.255.255", "224.0.0.1")),  # noqa: S104
    *map(at, ("::ffff:10.0.0.7", "64:ff9b::a00:7", "2002:a00:7::1", "100.64.0.1", "ff02::1")),
    *map(at, ("localhost", "internal.example", "127.1", "0x7f000001", "2130706433", "a.local")),
    *map(at, ("203.0.113.9.nip.io", "router", "010.0.0.7", "1.1.1.1%eth0", "[::1]", "*")),
    at("9.9.9.9", protocol="tcp"),
    at("9.9.9.9", port=0),
    at("9.9.9.9", kind="nonsense"),
    "candidate:",
    "candidate:1 1 udp 1 9.9.9.9 9",
    "9.9.9.9",
]


@pytest.mark.parametrize("candidate", ODD)
def test_an_odd_address_of_a_stranger_is_not_tried(candidate):
    assert tried(candidate) == []


def test_public_addresses_are_tried_each_once_and_not_without_end():
    many = [at("9.9.9.9", port) for port in range(1, 100)]

    assert tried(*many, *many) == many[:MAX_ICE_CANDIDATES]
    assert tried("", at("2620:fe::9")) == ["", at("2620:fe::9")]


def test_a_loopback_address_is_tried_with_the_proof_of_this_machine_only():
    policy = DialPolicy(("webrtc",), b"of this machine")
    near = IceCandidate(at("127.0.0.1"), "s", host=policy.ice_proof(at("127.0.0.1")))

    assert policy.allows_ice(near, ALICE)
    assert not policy.allows_ice(attrs.evolve(near, candidate=at("127.0.0.1", 22)), ALICE)
    assert not attrs.evolve(policy, machine=b"another").allows_ice(near, ALICE)


def test_a_candidate_is_signed_for_one_description_of_one_object():
    data = signed(GOOD)
    one = GUARD.signed_ice(IceCandidate(at("9.9.9.9"), "-", "0", 0), GOOD, BOND)

    def believed(candidate=one, bond=BOND, sdp=GOOD):
        described = ConnectionDescription("offer", sdp)
        held = attrs.evolve(data, ice_candidates=(candidate,), connection_description=described)
        return LinkGuard().believed_ice(held, bond)

    assert believed() == (one,)
    assert believed(attrs.evolve(one, candidate=at("9.9.9.8"))) == ()
    assert believed(attrs.evolve(one, sdp_mid="1")) == ()
    assert believed(bond=attrs.evolve(BOND, negotiation=2)) == ()
    assert believed(bond=attrs.evolve(BOND, object="connection://a.example/c3")) == ()
    assert believed(sdp=GOOD.replace("ufrag:user", "ufrag:loser")) == ()


def test_what_is_written_of_an_end_has_the_shape_that_a_browser_takes():
    candidate = write_body(IceCandidate(at("9.9.9.9"), "sig", "0", 0))
    described = write_body(ConnectionDescription("offer", GOOD))

    assert described == {"type": "offer", "sdp": GOOD}
    assert candidate == {
        "candidate": at("9.9.9.9"),
        "sdpMid": "0",
        "sdpMLineIndex": 0,
        "signature": "sig",
    }
