"""Attacks by places a stub would lead to, and by keys that say whose it is (S15, S16, T12)."""

import pytest

from actors.catalogue.source import Places
from actors.catalogue.trust_file import DomainTrust, KeyTrust, Trust
from actors.keys.signing import make_key
from specs.addresses.address import DOMAIN_KEYS
from tests.actors.catalogue.stub_supply import Runtime, runtime
from tests.support.catalogues import NODE_B, key_set

# ---- where it leads


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "0x7f000001", "2130706433", "10.0.0.1", "192.168.1.1", "172.16.0.9",
        "169.254.169.254", "0.0.0.1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "localhost",
        "LOCALHOST.", "printer.local", "intranet", "[::1]", "[::]", "[fe80::1]", "[fc00::1]",
        "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:1::1]",
        "metadata.google.internal", "",
    ],
)  # fmt: skip
async def test_a_private_place(domain, host, autojump_clock):
    """S15: nothing is even looked up."""
    domain.offers(endpoint=f"ws://{host}:80/link")
    await runtime(domain).refused("private-place", "its endpoint")


async def test_a_place_on_this_machine(domain, autojump_clock):
    domain.offers(endpoint="/run/secret.sock")
    await runtime(domain).refused("private-place", "names no host")


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_endpoint_without_tls(domain, scheme, autojump_clock):
    """SEC-13."""
    domain.offers(endpoint=f"{scheme}://node.b.ex/link")
    await runtime(domain).refused("without-tls", "is on another machine and without TLS")


async def test_an_unknown_stub(domain, autojump_clock):
    domain.serves(domain.draft(profile={"stub": "telnet", "endpoint": NODE_B}))
    await runtime(domain).refused("unknown-stub", "no stub 'telnet' ships with this runtime")


# ---- keys


async def test_an_untrusted_domain(domain, autojump_clock):
    domain.offers()
    asked = Runtime(domain, Trust({}))
    await asked.refused("unknown-domain", "no entry of the trust file names b.ex")


async def test_no_catalogue_is_asked_for_an_untrusted_domain(domain, autojump_clock):
    def opened(_):
        pytest.fail("a catalogue was opened")

    asked = Runtime(domain, Trust({}), places=Places(general=opened))
    await asked.refused("unknown-domain", "no entry of the trust file names b.ex")


async def test_keys_that_change_after_first_use(domain, autojump_clock):
    """TOFU: the first keys stay, whoever the catalogue says the domain is now."""
    domain.offers()
    trust = Trust({"b.ex": DomainTrust(KeyTrust.FIRST_USE)})
    asked = Runtime(domain, trust)
    await asked.found()
    thief = make_key("EdDSA", "thief")
    domain.files[DOMAIN_KEYS] = key_set(thief)
    domain.serves(domain.profile(counter=9), thief)
    again = Runtime(domain, trust, asked.shelf)
    await again.refused("wrong-key", "the key 'thief' is not trusted")


async def test_keys_of_first_use_are_kept_only_if_they_signed(domain, autojump_clock):
    outsider = make_key("EdDSA", "outsider")
    domain.files[DOMAIN_KEYS] = key_set(outsider)
    domain.offers()
    trust = Trust({"b.ex": DomainTrust(KeyTrust.FIRST_USE)})
    asked = Runtime(domain, trust)
    await asked.refused("wrong-key", "the key 'domain' is not trusted")
    domain.files[DOMAIN_KEYS] = key_set(domain.key)
    assert await Runtime(domain, trust, asked.shelf).found()


async def test_published_keys_need_a_place_that_proves_its_owner(domain, autojump_clock):
    domain.offers()
    source = domain.source()
    source.proves_domain = False
    trust = Trust({"b.ex": DomainTrust(KeyTrust.PUBLISHED)})
    asked = Runtime(domain, trust, places=Places({"b.ex": lambda _: source}))
    await asked.refused("wrong-key", "nothing proves whose they are")


async def test_published_keys_may_change_at_a_place_that_proves_its_owner(domain, autojump_clock):
    domain.offers()
    trust = Trust({"b.ex": DomainTrust(KeyTrust.PUBLISHED)})
    asked = Runtime(domain, trust)
    await asked.found()
    domain.key = make_key("EdDSA", "next")
    domain.files[DOMAIN_KEYS] = key_set(domain.key)
    domain.offers(counter=2)
    assert await Runtime(domain, trust, asked.shelf).found()


async def test_without_a_catalogue_for_it_a_domain_is_refused(domain, autojump_clock):
    asked = Runtime(domain, domain.trust(), places=Places())
    await asked.refused("not-there", "no catalogue is configured for its domain")
