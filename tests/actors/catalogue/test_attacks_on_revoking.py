"""Attacks on the list of what is revoked: it stays revoked (S16, T14)."""

from hashlib import sha256

from actors.catalogue.trust_file import DomainTrust, KeyTrust, Trust
from actors.keys.signing import make_key
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.descriptor import Revoked
from tests.actors.catalogue.stub_supply import Runtime, runtime
from tests.support.catalogues import DAY, STUB_B, key_set

# ---- what is revoked


async def test_revoked(domain, autojump_clock):
    """SEC-34."""
    domain.offers(counter=3)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3, why="key lost"))
    await runtime(domain).refused("revoked", "it is revoked by its domain: key lost")


async def test_a_descriptor_newer_than_a_revoked_one_is_accepted(domain, autojump_clock):
    domain.offers(counter=4)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3))
    assert await runtime(domain).found()


async def test_a_revoked_package(domain, archive):
    domain.serves(domain.code(archive))
    domain.revokes(Revoked(sha256=sha256(archive).hexdigest()))
    await runtime(domain).refused("revoked", "its package is revoked")


async def test_a_list_that_is_kept_away_is_remembered(domain, autojump_clock):
    domain.offers(counter=4)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3))
    asked = runtime(domain)
    await asked.found()
    domain.files.pop(".well-known/actors-revoked.jws")
    domain.now += 2 * DAY
    domain.offers(counter=5)
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("list-expired", "its list of what is revoked expired")


async def test_a_list_by_which_something_was_refused_is_remembered_too(domain, autojump_clock):
    """S16, T14: whoever withholds it afterwards does not bring back what it revoked."""
    domain.offers(counter=3)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3, why="key lost"))
    asked = runtime(domain)
    await asked.refused("revoked", "it is revoked by its domain: key lost")
    domain.files.pop(REVOKED)
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("revoked", "it is revoked by its domain: key lost")


async def test_an_older_list_after_one_by_which_something_was_refused(domain, autojump_clock):
    """S16, T14: the same for whoever shows the list before it."""
    domain.offers(counter=3)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3), counter=2)
    asked = runtime(domain)
    await asked.refused("revoked", "it is revoked by its domain")
    domain.revokes(counter=1)
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("list-rolled-back", "has the counter 1, and another with 2 was seen")


async def test_a_list_outlives_the_key_that_signed_it(domain, autojump_clock):
    """T14: what was revoked stays so when a key is rotated, and a new list is taken."""
    domain.offers(counter=3)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3))
    trust = Trust({"b.ex": DomainTrust(KeyTrust.PUBLISHED)})
    asked = Runtime(domain, trust)
    await asked.refused("revoked", "it is revoked")
    domain.key = make_key("EdDSA", "next")
    domain.files[DOMAIN_KEYS] = key_set(domain.key)
    domain.offers(counter=3)
    domain.revokes(Revoked(cguid=STUB_B.address, counter=3), counter=2)
    await Runtime(domain, trust, asked.shelf).refused("revoked", "it is revoked")
    domain.offers(counter=4)
    assert await Runtime(domain, trust, asked.shelf).found()


async def test_an_older_list(domain, autojump_clock):
    domain.offers()
    domain.revokes(Revoked(sha256="0" * 64), counter=2)
    asked = runtime(domain)
    await asked.found()
    domain.revokes(counter=1)
    again = runtime(domain, shelf=asked.shelf)
    await again.refused("list-rolled-back", "has the counter 1, and another with 2 was seen")


async def test_a_list_with_a_foreign_signature(domain, autojump_clock):
    domain.offers()
    domain.revokes(key=make_key("EdDSA", "domain"))
    await runtime(domain).refused("bad-signature", "its signature does not fit")
