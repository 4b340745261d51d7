"""`python -m actors stub publish`: what comes into a catalogue and what not (CAT-01..09, S16)."""

from hashlib import sha256

import pytest

from actors.cli.group import ExitCode
from actors.commands.stub import sign
from specs.limits.group import GROUP_FILE_BYTES
from tests.support.catalogues import noise, sources
from tests.support.command import called
from tests.support.runtime.stub_publisher import ENTRY, refused

# ---- publishing


def test_a_published_file_is_at_the_path_of_its_address(publisher):
    publisher.package()
    publisher.publish("--keys", publisher.key["jwks"])
    digest = sha256((publisher.folder / "d.zip").read_bytes()).hexdigest()
    files = {
        path.relative_to(publisher.catalogue).as_posix()
        for path in publisher.catalogue.rglob("*")
        if path.is_file()
    }
    assert files == {
        ENTRY,
        f".well-known/sourcepackage/{digest}",
        ".well-known/actors.json",
        ".well-known/actors-catalogue.json",
    }


@pytest.mark.parametrize("size", [0, GROUP_FILE_BYTES])
def test_a_package_that_is_too_large_for_several_nodes_is_published_and_reported(publisher, size):
    sources(publisher.folder / "code", noise(size))
    publisher.package()
    done = publisher.publish("--keys", publisher.key["jwks"])
    assert (done.status, len(done.err)) == (ExitCode.OK, 1 if size else 0)
    assert all(str(GROUP_FILE_BYTES) in line for line in done.err)


def test_a_lower_counter_is_not_published(publisher):
    publisher.published("--counter", "7")
    before = (publisher.catalogue / ENTRY).read_bytes()
    publisher.sign("--counter", "6")
    refused(publisher.publish(), "its counter 6 is less than 7")
    assert (publisher.catalogue / ENTRY).read_bytes() == before


def test_the_same_once_more_is_published(publisher):
    publisher.published("--counter", "7")
    assert publisher.publish().status == ExitCode.OK


def test_a_descriptor_with_an_unpublished_key_is_not_published(publisher):
    publisher.published("--counter", "7")
    publisher.sign("--counter", "8", key=publisher.made("thief", "others"))
    refused(publisher.publish(), "the key 'thief' is not trusted")


def test_without_published_keys_nothing_is(publisher):
    publisher.sign()
    refused(publisher.publish(), "no keys are published there yet", ExitCode.CONFIGURATION)
    assert not (publisher.catalogue / ENTRY).exists()


def test_keys_that_did_not_sign_it_are_not_published(publisher):
    """Else nothing that stands there would be believed any more."""
    publisher.published()
    path = publisher.catalogue / ".well-known/actors.json"
    before = path.read_bytes()
    other = publisher.made("thief", "others")
    refused(publisher.publish("--keys", other["jwks"]), "is not trusted")
    assert path.read_bytes() == before


def test_a_refused_publication_leaves_an_empty_catalogue_empty(publisher):
    publisher.sign()
    other = publisher.made("thief", "others")
    refused(publisher.publish("--keys", other["jwks"]), "is not trusted")
    publisher.write("d.jws", "no signature")
    refused(publisher.publish("--keys", publisher.key["jwks"]), "it is not signed")
    assert not publisher.catalogue.exists()


def test_keys_are_changed_with_what_they_signed(publisher):
    publisher.published("--counter", "7")
    new = publisher.made("b2", "new")
    publisher.sign("--counter", "8", key=new)
    assert publisher.publish("--keys", new["jwks"]).status == ExitCode.OK
    assert publisher.verify("--keys", new["jwks"]).status == ExitCode.OK


def test_a_package_that_is_not_the_promised_one_is_not_published(publisher):
    publisher.package()
    content = bytearray((publisher.folder / "d.zip").read_bytes())
    content[-30] ^= 1
    (publisher.folder / "d.zip").write_bytes(content)
    refused(
        publisher.publish("--keys", publisher.key["jwks"]), "is not the one whose hash was signed"
    )
    assert not (publisher.catalogue / ENTRY).exists()


def test_a_package_that_is_missing_is_said(publisher):
    publisher.package()
    (publisher.folder / "d.zip").unlink()
    refused(publisher.publish("--keys", publisher.key["jwks"]), "name it with --package")


def test_two_domains_do_not_share_a_directory(publisher):
    publisher.published()
    text = (publisher.folder / "d.jws").read_bytes()
    other = (
        "--domain",
        "c.example",
        "--key",
        publisher.key["key"],
        "--out",
        str(publisher.folder / "c.jws"),
    )
    assert called(sign, str(publisher.folder / "draft.json"), *other).status == ExitCode.OK
    refused(
        publisher.publish(file="c.jws"), "take a directory for each domain", ExitCode.CONFIGURATION
    )
    assert (publisher.catalogue / ENTRY).read_bytes().strip() == text.strip()
