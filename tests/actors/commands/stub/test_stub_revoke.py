"""`python -m actors stub revoke`: what is refused from then on (CAT-01..09, S16)."""

import json

from actors.cli.group import ExitCode
from actors.commands.stub import list_entries as list_
from actors.commands.stub import revoke
from tests.support.command import called
from tests.support.runtime.stub_publisher import refused

# ---- revoking


def test_a_revoked_descriptor_is_refused_and_cannot_be_published(publisher):
    publisher.published("--counter", "7")
    done = called(
        revoke, "--into", str(publisher.catalogue), "--domain", "b.example",
        "--key", publisher.key["key"],
        "--entry", "protocolstub/default", "--up-to", "7", "--why", "key lost",
    )  # fmt: skip
    assert (done.status, json.loads(done.out[0])["entries"]) == (ExitCode.OK, 1)
    refused(publisher.verify("--keys", publisher.key["jwks"]), "revoked by its domain: key lost")
    assert called(list_, str(publisher.catalogue)).out[-1].endswith("  revoked")
    refused(publisher.publish(), "revoked by its domain")
    publisher.sign("--counter", "8")
    assert publisher.publish().status == ExitCode.OK


def test_a_list_is_renewed_and_keeps_what_it_has(publisher):
    publisher.published()
    where = (
        "--into",
        str(publisher.catalogue),
        "--domain",
        "b.example",
        "--key",
        publisher.key["key"],
    )
    first = json.loads(called(revoke, *where, "--package", "0" * 64).out[0])
    second = json.loads(called(revoke, *where).out[0])
    assert second["counter"] > first["counter"]
    assert (first["entries"], second["entries"]) == (1, 1)


def test_a_list_that_no_runtime_would_take_is_not_written(publisher):
    """It would take everything away: whoever reads it refuses all of the domain."""
    publisher.published()
    other, into = publisher.made("b2", "others"), ("--into", str(publisher.catalogue))
    own, strange = ("--key", publisher.key["key"]), ("--key", other["key"])
    done = called(revoke, *into, "--domain", "b.example", *strange)
    refused(done, "'b2' is not trusted; sign it with a key that is published there")
    done = called(revoke, *into, "--domain", "c.example", *own)
    refused(done, "take a directory for each domain", ExitCode.CONFIGURATION)
    assert not (publisher.catalogue / ".well-known/actors-revoked.jws").exists()

    assert called(revoke, *into, "--domain", "b.example", *own).status == ExitCode.OK
    done = called(revoke, *into, "--domain", "c.example", *own)
    refused(done, "it is the list of b.example", ExitCode.CONFIGURATION)
    assert publisher.verify("--keys", publisher.key["jwks"]).status == ExitCode.OK
