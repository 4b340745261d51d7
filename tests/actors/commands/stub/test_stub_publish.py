"""`python -m actors stub publish`: what comes into a catalogue and what not (CAT-01..09, S16)."""

from hashlib import sha256

from actors.cli.command_error import ExitCode
from actors.commands.stub.sign import command as sign
from tests.support.command import called
from tests.support.runtime.stub_publisher import ENTRY, refused

# ---- publishing


def test_what_is_published_lies_as_its_address_says(desk):
    desk.package()
    desk.publish("--keys", desk.key["jwks"])
    digest = sha256((desk.folder / "d.zip").read_bytes()).hexdigest()
    files = {
        path.relative_to(desk.catalogue).as_posix()
        for path in desk.catalogue.rglob("*")
        if path.is_file()
    }
    assert files == {
        ENTRY,
        f".well-known/sourcepackage/{digest}",
        ".well-known/actors.json",
        ".well-known/actors-catalogue.json",
    }


def test_a_lower_counter_is_not_published(desk):
    desk.published("--counter", "7")
    before = (desk.catalogue / ENTRY).read_bytes()
    desk.sign("--counter", "6")
    refused(desk.publish(), "its counter 6 is less than 7")
    assert (desk.catalogue / ENTRY).read_bytes() == before


def test_the_same_once_more_is_published(desk):
    desk.published("--counter", "7")
    assert desk.publish().status == ExitCode.OK


def test_what_the_published_keys_did_not_sign_is_not_published(desk):
    desk.published("--counter", "7")
    desk.sign("--counter", "8", key=desk.made("thief", "others"))
    refused(desk.publish(), "the key 'thief' is not trusted")


def test_without_published_keys_nothing_is(desk):
    desk.sign()
    refused(desk.publish(), "no keys are published there yet", ExitCode.CONFIGURATION)
    assert not (desk.catalogue / ENTRY).exists()


def test_keys_that_did_not_sign_it_are_not_published(desk):
    """Else nothing that stands there would be believed any more."""
    desk.published()
    path = desk.catalogue / ".well-known/actors.json"
    before = path.read_bytes()
    other = desk.made("thief", "others")
    refused(desk.publish("--keys", other["jwks"]), "is not trusted")
    assert path.read_bytes() == before


def test_what_is_refused_leaves_nothing_in_an_empty_catalogue(desk):
    desk.sign()
    other = desk.made("thief", "others")
    refused(desk.publish("--keys", other["jwks"]), "is not trusted")
    desk.write("d.jws", "no signature")
    refused(desk.publish("--keys", desk.key["jwks"]), "it is not signed")
    assert not desk.catalogue.exists()


def test_keys_are_changed_with_what_they_signed(desk):
    desk.published("--counter", "7")
    new = desk.made("b2", "new")
    desk.sign("--counter", "8", key=new)
    assert desk.publish("--keys", new["jwks"]).status == ExitCode.OK
    assert desk.verify("--keys", new["jwks"]).status == ExitCode.OK


def test_a_package_that_is_not_the_promised_one_is_not_published(desk):
    desk.package()
    content = bytearray((desk.folder / "d.zip").read_bytes())
    content[-30] ^= 1
    (desk.folder / "d.zip").write_bytes(content)
    refused(desk.publish("--keys", desk.key["jwks"]), "is not the one whose hash was signed")
    assert not (desk.catalogue / ENTRY).exists()


def test_a_package_that_is_missing_is_said(desk):
    desk.package()
    (desk.folder / "d.zip").unlink()
    refused(desk.publish("--keys", desk.key["jwks"]), "name it with --package")


def test_two_domains_do_not_share_a_directory(desk):
    desk.published()
    text = (desk.folder / "d.jws").read_bytes()
    other = ("--domain", "c.example", "--key", desk.key["key"], "--out", str(desk.folder / "c.jws"))
    assert called(sign, str(desk.folder / "draft.json"), *other).status == ExitCode.OK
    refused(desk.publish(file="c.jws"), "take a directory for each domain", ExitCode.CONFIGURATION)
    assert (desk.catalogue / ENTRY).read_bytes().strip() == text.strip()
