"""Options of the engine that the nodes of a domain share."""

import pytest

from actors.cli.command_error import ExitCode
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
        ((*ENGINE, "--registry", "r.sqlite"), "leave --registry and --state out"),
        ((*ENGINE, "--state", "s.sqlite"), "leave --registry and --state out"),
        ((*SEVERAL, *ENGINE), "runs an engine of its own"),
        ((*SEVERAL, "--engine-credentials", "/nowhere"), "leave --engine, --engine-credentials"),
        ((*SEVERAL, "--node-name", "one"), "and --node-name out"),
        ((*SEVERAL, "--registry", "r.sqlite"), "leave --registry and --state out"),
        ((*SEVERAL, "--state", "s.sqlite"), "leave --registry and --state out"),
        ((*SEVERAL, "--registry", "http://127.0.0.1:1"), "--processes and a registry behind"),
    ],
)
def test_contradicting_options_are_reported_in_one_sentence(options, named):
    ended = typed(*NODE, *options)
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert named in ended.err[0]
    assert "secret" not in ended.err[0]
