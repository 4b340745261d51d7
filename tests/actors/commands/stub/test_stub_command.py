"""`python -m actors stub`: listing and checking, and all of it as processes (CAT-01..09, S16)."""

import json

from actors.cli.group import ExitCode
from actors.commands.stub import list_entries as list_
from tests.support.command import called, typed
from tests.support.runtime.stub_publisher import ENTRY, checks, refused

# ---- showing


def test_a_catalogue_is_listed(publisher):
    publisher.published("--counter", "7")
    publisher.sign("--entry", "protocolstub/beta")
    publisher.publish()
    table = called(list_, str(publisher.catalogue)).out
    lines = [json.loads(line) for line in called(list_, str(publisher.catalogue), "--json").out]

    assert [line["entry"] for line in lines] == ["protocolstub/default", "protocolstub/beta"]
    assert (lines[0]["counter"], lines[0]["state"]) == (7, "signed")
    assert len(table) == 3
    assert "wss://node.b.example:4123/link" in table[1]


def test_a_spoilt_descriptor_is_listed_as_such(publisher):
    publisher.published()
    path = publisher.catalogue / ENTRY
    head, payload, signature = path.read_text().split(".")
    path.write_text(f"{head}.{payload}.{'A' * len(signature.strip())}")
    [line] = [json.loads(one) for one in called(list_, str(publisher.catalogue), "--json").out]
    assert line["state"] == "its signature does not fit"


def test_a_place_without_a_catalogue_is_said(publisher):
    refused(called(list_, str(publisher.folder)), "has no .well-known", ExitCode.FAILED)


def test_without_keys_nothing_is_verified_and_that_is_said(publisher):
    publisher.published()
    done = publisher.verify("--json")
    assert (done.status, dict(checks(done))["signature"]) == (ExitCode.OK, None)


def test_a_package_is_checked_as_well(publisher):
    publisher.write("draft.json", {"endpoints": ["ws://node.b.example/link"]})
    publisher.package()
    publisher.publish("--keys", publisher.key["jwks"])
    trust = publisher.trust('publishers = ["acme"]\n[publishers.acme]\nkeys = "acme/jwks.json"\n')
    done = publisher.verify("--json", "--trust", trust)
    assert done.status == ExitCode.OK, done.err
    assert checks(done)[-2:] == [("publisher", True), ("package", True)]


def test_a_descriptor_of_another_type_is_verified_as_well(publisher):
    publisher.sign("--entry", "runtime/pc")
    done = publisher.verify("--trust", publisher.trust(), where=str(publisher.folder / "d.jws"))
    assert done.status == ExitCode.OK


def test_a_misplaced_descriptor_is_reported(publisher):
    publisher.published()
    path = publisher.catalogue / ENTRY
    path.rename(path.with_name("other"))
    refused(publisher.verify(where=str(path.with_name("other"))), "it stands at")


# ---- as processes


def test_a_directory_that_cannot_be_written_is_one_sentence(publisher):
    publisher.sign()
    (publisher.folder / "file").write_text("")
    into = str(publisher.folder / "file" / "x")
    done = typed("stub", "publish", str(publisher.folder / "d.jws"), "--into", into)
    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
