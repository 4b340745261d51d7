"""`python -m actors stub publish`: what comes into a catalogue and what not (CAT-01..09, S16)."""

import pytest

from actors.cli.group import ExitCode
from specs.limits.group import GROUP_FILE_BYTES
from tests.support.catalogues import noise, sources
from tests.support.runtime.stub_publisher import ENTRY, refused

# ---- publishing


@pytest.mark.parametrize("size", [0, GROUP_FILE_BYTES])
def test_a_package_that_is_too_large_for_several_nodes_is_published_and_reported(publisher, size):
    sources(publisher.folder / "code", noise(size))
    publisher.package()
    done = publisher.publish("--keys", publisher.key["jwks"])
    assert (done.status, len(done.err)) == (ExitCode.OK, 1 if size else 0)
    assert all(str(GROUP_FILE_BYTES) in line for line in done.err)


def test_a_descriptor_with_an_unpublished_key_is_not_published(publisher):
    publisher.published("--counter", "7")
    publisher.sign("--counter", "8", key=publisher.made("thief", "others"))
    refused(publisher.publish(), "the key 'thief' is not trusted")


def test_without_published_keys_nothing_is(publisher):
    publisher.sign()
    refused(publisher.publish(), "no keys are published there yet", ExitCode.CONFIGURATION)
    assert not (publisher.catalogue / ENTRY).exists()


def test_a_package_that_is_missing_is_said(publisher):
    publisher.package()
    (publisher.folder / "d.zip").unlink()
    refused(publisher.publish("--keys", publisher.key["jwks"]), "name it with --package")
