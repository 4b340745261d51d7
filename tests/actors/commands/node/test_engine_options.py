"""Options of the engine that the nodes of a domain share."""

import orjson
import pytest

from actors.cli.group import ExitCode
from actors.keys.signing import make_key
from tests.support.command import typed

NODE = ("node", "--domain", "a.example")
ENGINE = ("--engine", "nats://127.0.0.1:1")
SEVERAL = ("--processes", "2")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--node-name", "one"), "add --engine"),
        (("--engine-credentials", "/nowhere"), "add --engine"),
        (("--engine", "http://127.0.0.1:1"), "no URL such as nats://"),
        (("--engine", "nats://a b"), "'nats://a b' is no URL such as nats://"),
        (("--engine", "nats://a:99999"), "'nats://a:99999' is no URL of a server"),
        (("--engine", "nats://me:secret@127.0.0.1:1"), "credentials are in a file"),
        (("--engine", "nats://me:secret@127.0.0.1:99999"), "credentials are in a file"),
        ((*ENGINE, "--engine-credentials", "/nowhere"), "/nowhere"),
        ((*ENGINE, "--registry", "r.sqlite"), "; leave --registry out"),
        ((*ENGINE, "--state", "s.sqlite"), "; leave --state out"),
        ((*SEVERAL, *ENGINE), "runs an engine of its own"),
        ((*SEVERAL, "--engine-credentials", "/nowhere"), "leave --engine, --engine-credentials"),
        ((*SEVERAL, "--node-name", "one"), "and --node-name out"),
        ((*SEVERAL, "--registry", "r", "--state", "s"), "; leave --registry and --state out"),
        ((*SEVERAL, "--state", "s.sqlite"), "; leave --state out"),
        ((*SEVERAL, "--registry", "http://127.0.0.1:1"), "--processes and a registry behind"),
    ],
)
def test_contradicting_options_are_reported_in_one_sentence(options, named):
    ended = typed(*NODE, *options)
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert named in ended.err[0]
    assert "secret" not in ended.err[0]


@pytest.mark.parametrize("shared", [ENGINE, SEVERAL])
def test_a_file_of_used_tokens_beside_an_engine_is_refused(tmp_path, shared):
    """SEC-04: it would be asked instead of the engine, and knows one node's tokens only."""
    jwks = tmp_path / "jwks.json"
    jwks.write_bytes(orjson.dumps({"keys": [make_key("EdDSA").public()]}))
    ended = typed(*NODE, *shared, "--jwks", str(jwks), "--used-tokens", str(tmp_path / "used"))
    assert ended.status == ExitCode.CONFIGURATION
    why = "the engine keeps records, sessions and used login tokens; leave --used-tokens out"
    assert ended.err == [f"protofly: {why}"]
