"""Attacks on the signature, place and time of a descriptor: each is refused (S16, T12..T15).

Everything goes through the catalogue of a runtime; whatever would run code, or open a
sandbox for it, raises.
"""

import base64
import json

import pytest

from actors.catalogue.memory import FolderStore
from actors.catalogue.seal import SealType
from actors.keys.signing import make_key
from specs.addresses.address import CatalogueType, Entry
from specs.limits.foreign_code import DESCRIPTOR_LIFE
from tests.actors.catalogue.stub_supply import runtime
from tests.support.catalogues import DAY, NODE_B, Publishing

# ---- what is right is taken, or nothing below shows anything


async def test_a_profile_that_is_right_is_taken(domain, autojump_clock):
    domain.offers()
    assert (await runtime(domain).found()).node_url == NODE_B


async def test_only_the_correct_package_reaches_the_sandbox(domain, archive):
    """The one who would open it is called with the very bytes that were hashed."""
    domain.serves(domain.code(archive))
    with pytest.raises(pytest.fail.Exception, match="would have been run"):
        await runtime(domain).found()


# ---- signatures


ASKS_FOR_MORE = [{"crit": ["exp"]}, {"jwk": {}}, {"jku": "http://x"}, {"b64": False}]


def header(**said):
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


async def test_unsigned(domain, autojump_clock):
    """SEC-34."""
    domain.serves_raw(json.dumps(domain.profile()))
    await runtime(domain).refused("unsigned", "it is not signed")


@pytest.mark.parametrize("alg", ["none", "None", "", None, "EdDSA ", "ES256"])
async def test_alg_none(domain, alg, autojump_clock):
    _, payload, _ = domain.serves(domain.profile()).split(".")
    said = header(alg=alg, kid="domain", typ=SealType.DESCRIPTOR)
    domain.serves_raw(f"{said}.{payload}.AA")
    await runtime(domain).refused("unsigned", "it is not signed by EdDSA")


async def test_a_public_key_used_as_a_secret(domain, autojump_clock):
    """HS256 over the public key: what anybody who knows it could make."""
    from joserfc import jws
    from joserfc.jwk import OctKey

    secret = OctKey.import_key(domain.key.public()["x"])
    said = {"alg": "HS256", "kid": "domain", "typ": str(SealType.DESCRIPTOR)}
    content = json.dumps({**domain.profile()}).encode()
    domain.serves_raw(jws.serialize_compact(said, content, secret))
    await runtime(domain).refused("unsigned", "it is not signed by EdDSA")


async def test_wrong_key(domain, autojump_clock):
    """SEC-34."""
    domain.serves(domain.profile(), make_key("EdDSA", "outsider"))
    await runtime(domain).refused("wrong-key", "the key 'outsider' is not trusted")


async def test_a_key_that_only_has_the_right_name(domain, autojump_clock):
    domain.serves(domain.profile(), make_key("EdDSA", "domain"))
    await runtime(domain).refused("bad-signature", "its signature does not fit")


async def test_the_key_of_a_publisher_is_not_that_of_the_domain(domain, autojump_clock):
    domain.serves(domain.profile(), domain.acme)
    await runtime(domain).refused("wrong-key", "the key 'acme-1' is not trusted")


@pytest.mark.parametrize("more", ASKS_FOR_MORE)
async def test_a_header_that_asks_for_more(domain, more, autojump_clock):
    _, payload, signature = domain.serves(domain.profile()).split(".")
    said = header(alg="EdDSA", kid="domain", typ=SealType.DESCRIPTOR, **more)
    domain.serves_raw(f"{said}.{payload}.{signature}")
    await runtime(domain).refused("bad-signature", "its header holds more than")


async def test_something_else_that_the_domain_signed(domain, autojump_clock):
    """A list of what is revoked, a login token: signed by the same key, and no descriptor."""
    domain.serves_raw(domain.as_listed(domain.profile(), SealType.REVOCATIONS))
    await runtime(domain).refused("bad-signature", "it was not signed as protofly-descriptor+jws")


async def test_a_changed_payload(domain, autojump_clock):
    head, payload, signature = domain.serves(domain.profile()).split(".")
    content = json.loads(base64.urlsafe_b64decode(payload + "=="))
    content["profile"]["endpoint"] = "ws://evil.example/link"
    domain.serves_raw(f"{head}.{header(**content)}.{signature}")
    await runtime(domain).refused("bad-signature", "its signature does not fit")


# ---- place and time


async def test_a_descriptor_of_another_domain(domain, autojump_clock):
    """Signed by a key that is trusted for its own domain, and served by this one."""
    other = Publishing(domain="c.ex", key=domain.key)
    domain.serves_raw(other.serves(other.profile()))
    await runtime(domain).refused("misplaced", "it was signed for another place")


async def test_another_descriptor_of_the_same_domain(domain, autojump_clock):
    moved = domain.profile(cguid=Entry("b.ex", CatalogueType.STUB, "beta").address)
    domain.serves_raw(domain.as_listed({**moved, "type": "protocolstub", "objectName": "beta"}))
    await runtime(domain).refused("misplaced", "protocolstub/beta")


async def test_expired(domain, autojump_clock):
    """SEC-34."""
    domain.offers(expires=domain.now - 1)
    await runtime(domain).refused("expired", "it expired")


async def test_good_for_ever(domain, autojump_clock):
    domain.offers(expires=domain.now + DESCRIPTOR_LIFE + DAY)
    await runtime(domain).refused("lives-too-long", "good for more than 90 days")


async def test_frozen(domain, autojump_clock):
    """T14: whoever keeps newer ones away gains the life of the last, and no more."""
    domain.offers(expires=domain.now + 100)
    asked = runtime(domain)
    await asked.found()
    domain.is_away = True
    domain.now += 50
    assert await runtime(domain, shelf=asked.shelf).found()
    domain.now += 51
    await runtime(domain, shelf=asked.shelf).refused("expired", "it expired 1 s ago")


async def test_a_catalogue_that_is_away_from_the_beginning(domain, autojump_clock):
    domain.is_away = True
    await runtime(domain).refused("away", "cannot be read: nobody is there")


async def test_rolled_back(domain, autojump_clock):
    """SEC-34."""
    domain.offers(counter=5)
    asked = runtime(domain)
    await asked.found()
    domain.offers(counter=4)
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("rolled-back", "its counter 4 is less than 5, which was seen before")


async def test_another_one_with_the_same_counter(domain, autojump_clock):
    """Two texts for one number: the domain, or who has its key, shows each to somebody else."""
    domain.offers(counter=5)
    asked = runtime(domain)
    await asked.found()
    domain.offers(counter=5, endpoint="ws://evil.example/link")
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("rolled-back", "another one with the same counter 5")


async def test_rolled_back_after_a_restart(domain, tmp_path):
    domain.offers(counter=5)
    await runtime(domain, shelf=FolderStore(tmp_path)).found()
    domain.offers(counter=4)
    again = runtime(domain, shelf=FolderStore(tmp_path))
    await again.refused("rolled-back", "its counter 4 is less than 5")
