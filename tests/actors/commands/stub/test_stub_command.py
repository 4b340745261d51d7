"""`python -m actors stub`: listing and checking, and all of it as processes (CAT-01..09, S16)."""

import json

import pytest

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


def test_each_check_of_what_is_right_is_reported(publisher):
    publisher.published()
    done = publisher.verify("--json", "--trust", publisher.trust())
    assert done.status == ExitCode.OK
    assert checks(done) == [
        ("form", True), ("signature", True), ("revoked", True), ("time", True), ("level", True),
    ]  # fmt: skip


def test_a_package_is_checked_as_well(publisher):
    publisher.write("draft.json", {"endpoints": ["ws://node.b.example/link"]})
    publisher.package()
    publisher.publish("--keys", publisher.key["jwks"])
    trust = publisher.trust('publishers = ["acme"]\n[publishers.acme]\nkeys = "acme/jwks.json"\n')
    done = publisher.verify("--json", "--trust", trust)
    assert done.status == ExitCode.OK, done.err
    assert checks(done)[-2:] == [("publisher", True), ("package", True)]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda publisher: publisher.write("d.jws", "{}"), "it is not signed"),
        (
            lambda publisher: publisher.sign(key=publisher.made("thief", "o")),
            "the key 'thief' is not trusted",
        ),
        (lambda publisher: publisher.sign(draft="old.json"), "it expired"),
    ],
    ids=["unsigned", "outsider", "expired"],
)
def test_why_a_runtime_would_refuse_it_is_said(publisher, spoil, said):
    publisher.sign()
    spoil(publisher)
    refused(
        publisher.verify("--trust", publisher.trust(), where=str(publisher.folder / "d.jws")), said
    )


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


def test_a_person_signs_publishes_and_looks(publisher):
    key, folder = publisher.key, publisher.folder
    draft, out, into = str(folder / "draft.json"), str(folder / "d.jws"), str(publisher.catalogue)
    signed = typed(
        "stub", "sign", draft, "--domain", "b.example", "--key", key["key"], "--out", out
    )
    put = typed("stub", "publish", out, "--into", into, "--keys", key["jwks"])
    shown = typed("stub", "list", into)
    good = typed("stub", "verify", f"{into}/{ENTRY}", "--trust", publisher.trust())
    bad = typed("stub", "publish", str(folder / "gone.jws"), "--into", into)

    assert [one.status for one in (signed, put, shown, good)] == [ExitCode.OK] * 4
    assert (bad.status, len(bad.err)) == (ExitCode.CONFIGURATION, 1)
    assert shown.out[1].split()[0] == "protocolstub/default"


def test_a_directory_that_cannot_be_written_is_one_sentence(publisher):
    publisher.sign()
    (publisher.folder / "file").write_text("")
    into = str(publisher.folder / "file" / "x")
    done = typed("stub", "publish", str(publisher.folder / "d.jws"), "--into", into)
    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
