"""`python -m actors stub sign`: what is signed, and what is not (CAT-01..09, S16)."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from actors.cli.group import ExitCode
from actors.commands.token import make_keys as keys
from tests.support.catalogues import sources
from tests.support.command import called
from tests.support.runtime.stub_publisher import DRAFT, refused

# ---- signing


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--package", "."), "--package needs --entry-point"),
        (("--publisher", "acme"), "need --package"),
        (("--entry", "stub/default"), "is no TYPE/NAME"),
        (("--entry", "protocolstub/../x"), "is no TYPE/NAME"),
        (("--days", "91"), "91"),
        (("--counter", "0"), "0"),
        (("--machine", "telnet"), "telnet"),
    ],
)
def test_wrong_usage_is_said(publisher, more, said):
    done = publisher.sign(*more)
    assert done.status == ExitCode.USAGE
    assert said in " ".join(done.err)
    assert not (publisher.folder / "d.jws").exists()


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ("{", "is no JSON"),
        ({**DRAFT, "expires": "soon"}, "expires"),
        ("[]", "holds no JSON object"),
        ({"profile": {"stub": "websocket"}}, "does not say where the stub dials"),
        (
            {"cguid": "hyperty-catalogue://catalogue.c.ex/.well-known/protocolstub/x"},
            "is not that of",
        ),
        ({"type": "hyperty"}, "is not that of"),
    ],
)
def test_a_draft_that_is_none_is_said(publisher, draft, said):
    publisher.write("bad.json", draft)
    done = publisher.sign(draft="bad.json")
    refused(done, said, ExitCode.CONFIGURATION)


def test_a_key_for_another_algorithm_is_said(publisher):
    key = json.loads(called(keys, "--out", str(publisher.folder / "es"), "--alg", "ES256").out[0])
    refused(publisher.sign(key=key), "catalogues are signed by EdDSA", ExitCode.CONFIGURATION)


def test_a_package_that_all_runtimes_would_refuse_is_not_signed(publisher):
    (publisher.folder / "code").mkdir()
    (publisher.folder / "code" / "other.py").write_text("")
    done = publisher.sign(
        "--package", str(publisher.folder / "code"), "--entry-point", "stub:activate",
        "--publisher", "acme", "--publisher-key", publisher.key["key"],
    )  # fmt: skip
    refused(done, "has no module 'stub'", ExitCode.CONFIGURATION)


STUB, HYPERTY = "protocolstub/default", "hyperty/greeter"


def entry_signed(publisher, source, entry, path="code.py", point="code:Thing"):
    """What signing says of a package of one module."""
    sources(publisher.folder / "one", {path: source})
    draft = {**DRAFT, "endpoints": ["ws://b.example/"]} if entry == STUB else {}
    publisher.write("one.json", {k: v for k, v in draft.items() if k != "profile"})
    return publisher.sign(
        "--package", str(publisher.folder / "one"), "--entry-point", point, "--entry", entry,
        "--publisher", "acme", "--publisher-key", publisher.key["key"],
        *(("--machine", "stub_connection") if entry == STUB else ()), draft="one.json",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "entry", "said"),
    [
        ("", STUB, "has no 'Thing' in its module 'code' for its entry point"),
        ("class Other:\n    class Thing: ...", HYPERTY, "has no 'Thing' in its module 'code'"),
        ("def make():\n    Thing = 1", STUB, "has no 'Thing'"),
        ("print(Thing)", HYPERTY, "has no 'Thing'"),
        ("from things import Thing as Other", HYPERTY, "has no 'Thing'"),
        ("def Thing(): ...", HYPERTY, "has a function as its entry point 'code:Thing'"),
        ("class Thing(:", HYPERTY, "has a file 'code.py' that Python cannot compile"),
    ],
)
def test_a_package_without_its_entry_point_is_not_signed(publisher, source, entry, said):
    refused(entry_signed(publisher, source, entry), said, ExitCode.CONFIGURATION)
    assert not (publisher.folder / "d.jws").exists()
    assert not (publisher.folder / "d.zip").exists()


def test_the_entry_point_of_a_folder_is_looked_for_in_its_init(publisher):
    where = {"path": "code/part/__init__.py", "point": "code.part:Thing"}
    assert entry_signed(publisher, "class Thing: ...", HYPERTY, **where).status == ExitCode.OK


@pytest.mark.parametrize("content", ["{}", '{"keys":[]}', '{"keys":[{"kty":"oct"}]}', "private"])
def test_what_are_no_public_keys_is_not_signed(publisher, content):
    """A private key that is named by mistake does not get into a catalogue."""
    made = json.loads(called(keys, "--out", str(publisher.folder / "domain")).out[0])
    file = publisher.folder / "keys.json"
    file.write_text(Path(made["key"]).read_text() if content == "private" else content)
    done = publisher.sign("--domain-keys", str(file))

    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
    assert not (publisher.folder / "d.jws").exists()


# ---- files of upstream's catalogues

SCHEMA = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {"scheme": {"constant": "comm"}, "children": {"constant": ["message"]}},
}
OF_UPSTREAM = {
    "sourcePackage": {
        "sourceCode": b64encode(json.dumps(SCHEMA).encode()).decode(),
        "sourceCodeClassname": "Chat", "encoding": "base64", "signature": "",
    },
    "cguid": 1, "type": "DataSchemas", "version": "0.1", "description": "of a chat",
    "objectName": "Chat", "configuration": {"iceServers": [{"urls": ["stun:a.ex"]}]},
    "sourcePackageURL": "/sourcePackage", "language": "JSON-Schema", "signature": "",
    "messageSchemas": "", "dataObjects": [], "accessControlPolicy": "somePolicy",
}  # fmt: skip


@pytest.mark.parametrize("configuration", [{"iceServers": [{"urls": ["stun:a.ex"]}]}, [], {}])
@pytest.mark.parametrize("many", [True, False])
def test_a_data_schema_of_upstreams_catalogue_is_signed(publisher, many, configuration):
    """CAT-05: a number as its cguid, its schema in base64, lists in its configuration."""
    file = {**OF_UPSTREAM, "configuration": configuration}
    publisher.write("up.json", {"Other": {}, "Chat": file} if many else file)
    done = publisher.sign("--entry", "dataschema/Chat", draft="up.json")
    assert done.status == ExitCode.OK, done.err
    shown = publisher.verify("--json", where=str(publisher.folder / "d.jws"))
    descriptor = json.loads(shown.out[-1])["descriptor"]
    assert (descriptor["schema"], descriptor["scheme"]) == (SCHEMA, "comm")
    assert descriptor["children"] == ["message"]
    assert descriptor["cguid"].endswith("/.well-known/dataschema/Chat")
    assert "sourcePackage" not in descriptor


@pytest.mark.parametrize("kind", ["hyperty", "protocolstub"])
def test_code_of_upstreams_catalogue_is_refused_in_a_sentence(publisher, kind):
    publisher.write("up.json", {**OF_UPSTREAM, "language": "javascript", "type": "Hyperties"})
    done = publisher.sign("--entry", f"{kind}/Chat", draft="up.json")
    refused(done, "its code is in javascript, and only python can run here", done.status)
    assert done.status != ExitCode.OK


def test_a_source_that_is_no_schema_is_refused(publisher):
    package = {**OF_UPSTREAM["sourcePackage"], "sourceCode": "SGVsbG8="}
    publisher.write("up.json", {**OF_UPSTREAM, "sourcePackage": package})
    done = publisher.sign("--entry", "dataschema/Chat", draft="up.json")
    refused(done, "no JSON Schema in base64", done.status)
