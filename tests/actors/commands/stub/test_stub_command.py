"""`python -m actors stub`: listing and checking, and all of it as processes (CAT-01..09, S16)."""

import json

import pytest

from actors.cli.command_error import ExitCode
from actors.commands.stub.list import command as list_
from tests.support.command import called, typed
from tests.support.runtime.stub_publisher import ENTRY, checks, refused

# ---- showing


def test_a_catalogue_is_listed(desk):
    desk.published("--counter", "7")
    desk.sign("--entry", "protocolstub/beta")
    desk.publish()
    table = called(list_, str(desk.catalogue)).out
    lines = [json.loads(line) for line in called(list_, str(desk.catalogue), "--json").out]

    assert [line["entry"] for line in lines] == ["protocolstub/default", "protocolstub/beta"]
    assert (lines[0]["counter"], lines[0]["state"]) == (7, "signed")
    assert len(table) == 3
    assert "ws://node.b.example:4123/link" in table[1]


def test_a_spoilt_descriptor_is_listed_as_such(desk):
    desk.published()
    path = desk.catalogue / ENTRY
    head, payload, signature = path.read_text().split(".")
    path.write_text(f"{head}.{payload}.{'A' * len(signature.strip())}")
    [line] = [json.loads(one) for one in called(list_, str(desk.catalogue), "--json").out]
    assert line["state"] == "its signature does not fit"


def test_a_place_without_a_catalogue_is_said(desk):
    refused(called(list_, str(desk.folder)), "has no .well-known", ExitCode.FAILED)


def test_without_keys_nothing_is_verified_and_that_is_said(desk):
    desk.published()
    done = desk.verify("--json")
    assert (done.status, dict(checks(done))["signature"]) == (ExitCode.OK, None)


def test_each_check_of_what_is_right_is_reported(desk):
    desk.published()
    done = desk.verify("--json", "--trust", desk.trust())
    assert done.status == ExitCode.OK
    assert checks(done) == [
        ("form", True), ("signature", True), ("revoked", True), ("time", True), ("level", True),
    ]  # fmt: skip


def test_a_package_is_checked_as_well(desk):
    desk.write("draft.json", {"endpoints": ["ws://node.b.example/link"]})
    desk.package()
    desk.publish("--keys", desk.key["jwks"])
    trust = desk.trust('publishers = ["acme"]\n[publishers.acme]\nkeys = "acme/jwks.json"\n')
    done = desk.verify("--json", "--trust", trust)
    assert done.status == ExitCode.OK, done.err
    assert checks(done)[-2:] == [("publisher", True), ("package", True)]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda desk: desk.write("d.jws", "{}"), "it is not signed"),
        (lambda desk: desk.sign(key=desk.made("thief", "o")), "the key 'thief' is not trusted"),
        (lambda desk: desk.sign(draft="old.json"), "it expired"),
    ],
    ids=["unsigned", "stranger", "expired"],
)
def test_why_a_runtime_would_refuse_it_is_said(desk, spoil, said):
    desk.sign()
    spoil(desk)
    refused(desk.verify("--trust", desk.trust(), where=str(desk.folder / "d.jws")), said)


def test_what_is_no_stub_is_verified_as_well(desk):
    desk.sign("--entry", "hyperty/chat")
    done = desk.verify("--trust", desk.trust(), where=str(desk.folder / "d.jws"))
    assert done.status == ExitCode.OK


def test_what_stands_in_the_wrong_place_is_said(desk):
    desk.published()
    path = desk.catalogue / ENTRY
    path.rename(path.with_name("other"))
    refused(desk.verify(where=str(path.with_name("other"))), "it stands at")


# ---- as processes


def test_a_person_signs_publishes_and_looks(desk):
    key, folder = desk.key, desk.folder
    draft, out, into = str(folder / "draft.json"), str(folder / "d.jws"), str(desk.catalogue)
    signed = typed(
        "stub", "sign", draft, "--domain", "b.example", "--key", key["key"], "--out", out
    )
    put = typed("stub", "publish", out, "--into", into, "--keys", key["jwks"])
    shown = typed("stub", "list", into)
    good = typed("stub", "verify", f"{into}/{ENTRY}", "--trust", desk.trust())
    bad = typed("stub", "publish", str(folder / "gone.jws"), "--into", into)

    assert [one.status for one in (signed, put, shown, good)] == [ExitCode.OK] * 4
    assert (bad.status, len(bad.err)) == (ExitCode.CONFIGURATION, 1)
    assert shown.out[1].split()[0] == "protocolstub/default"


def test_a_directory_that_cannot_be_written_is_one_sentence(desk):
    desk.sign()
    (desk.folder / "file").write_text("")
    into = str(desk.folder / "file" / "x")
    done = typed("stub", "publish", str(desk.folder / "d.jws"), "--into", into)
    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
