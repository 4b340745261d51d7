"""The options of a domain without a message node (PFY-13)."""

import pytest

from actors.cli.group import ExitCode
from tests.support.command import typed

RUNTIME = ("runtime", "--domain", "a.ex", "--name", "one")


@pytest.mark.parametrize(
    ("more", "status", "why"),
    [
        ((), ExitCode.CONFIGURATION, "the domain has no server; add --node, --registry"),
        (("--registry", "ws://x"), ExitCode.USAGE, "names no HTTP server"),
        (
            ("--registry", "http://127.0.0.1:1", "--node", "ws://127.0.0.1:1/link"),
            ExitCode.USAGE,
            "remove one of them",
        ),
    ],
    ids=["neither", "no server", "both"],
)
def test_a_runtime_needs_a_node_or_a_registry(more, status, why):
    ended = typed(*RUNTIME, *more)
    assert ended.status == status
    assert why in ended.err[-1]
