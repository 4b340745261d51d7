"""Attacks by packages: what is not the very bytes that were signed is not run (S16, T15)."""

from hashlib import sha256

import pytest

from actors.catalogue.memory import FolderStore
from actors.keys.signing import make_key
from specs.limits.foreign_code import PACKAGE_BYTES
from tests.actors.catalogue.stub_supply import runtime, served_package
from tests.support.catalogues import NODE_B, archive_of

# ---- packages


async def test_hash_mismatch(domain, archive, tmp_path):
    domain.serves(domain.code(archive))
    other = bytearray(archive)
    other[len(other) // 2] ^= 1
    domain.files[served_package(domain, archive)] = bytes(other)
    await runtime(domain).refused("wrong-hash", "is not the one whose hash was signed")


async def test_another_size(domain, archive):
    domain.serves(domain.code(archive))
    domain.files[served_package(domain, archive)] = archive + b"\0"
    await runtime(domain).refused("too-large", "bytes and not")


async def test_oversize(domain, archive):
    domain.serves(domain.code(archive))
    domain.files[served_package(domain, archive)] = bytes(PACKAGE_BYTES + 1)
    await runtime(domain).refused("away", f"is larger than {PACKAGE_BYTES} bytes")


async def test_changed_in_the_store_after_it_was_checked(domain, archive, tmp_path):
    """T15: what lies in the store is hashed anew; a swapped file is fetched again."""
    domain.serves(domain.code(archive))
    store = FolderStore(tmp_path / "store")
    await store.keep_package(sha256(archive).hexdigest(), b"swapped")
    assert await store.package(sha256(archive).hexdigest()) is None
    domain.files.pop(served_package(domain, archive))
    asked = runtime(domain, shelf=store)
    await asked.refused("not-there", "has no .well-known/sourcepackage/")


async def test_publisher_not_allowed(domain, archive):
    """SEC-34."""
    domain.serves(domain.code(archive))
    await runtime(domain, publishers=()).refused(
        "unknown-publisher", "the publisher of its code, 'acme', is not allowed"
    )


async def test_a_publisher_that_did_not_sign(domain, archive):
    """The domain says that somebody trusted made it; that one has not."""
    true, domain.acme = domain.acme, make_key("EdDSA", "acme-1")
    domain.serves(domain.code(archive))
    domain.acme = true
    await runtime(domain).refused("publisher-signature", "'acme' did not sign its package")


async def test_a_publishers_signature_of_another_package(domain, archive, tmp_path):
    signed = domain.code(archive)["sourcePackage"]["signature"]
    draft = domain.code(archive_of(tmp_path / "evil", {"stub.py": "import os\n"}))
    draft["sourcePackage"]["signature"] = signed
    domain.serves(draft)
    await runtime(domain).refused("publisher-signature", "signed another package")


async def test_another_entry_point_than_the_publisher_signed(domain, archive):
    draft = domain.code(archive)
    draft["sourcePackage"]["sourceCodeClassname"] = "stub:evil"
    domain.serves(draft)
    await runtime(domain).refused("publisher-signature", "signed another package")


@pytest.mark.parametrize("machine", ["0" * 64, "stub_connection", None])
async def test_an_unknown_machine(domain, archive, machine):
    domain.serves({**domain.code(archive), "machine": machine})
    await runtime(domain).refused("unknown-machine", "an unknown machine")


async def test_code_without_places_to_dial(domain, archive):
    domain.serves({**domain.code(archive), "endpoints": []})
    await runtime(domain).refused("no-endpoints", "it does not say where its code dials")


async def test_code_that_dials_without_tls(domain, archive):
    """SEC-13."""
    domain.serves({**domain.code(archive), "endpoints": [NODE_B, "ws://node.b.ex/link"]})
    await runtime(domain).refused("without-tls", "its endpoint 'ws://node.b.ex/link' is")


async def test_another_language(domain, archive):
    domain.serves({**domain.code(archive), "language": "javascript ECMA6"})
    await runtime(domain).refused("language", "its code is written in 'javascript ECMA6'")
