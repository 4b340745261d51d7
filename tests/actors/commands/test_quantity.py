"""Numbers that options take: what is none is a wrong call, wherever it is said."""

import pytest

from actors.cli.group import ExitCode
from actors.commands.node.command import command as node
from actors.commands.stub import revoke, sign
from actors.commands.token import issue
from tests.support.command import called

SIGN = ("d.json", "--domain", "b.example", "--key", "k", "--out", "o")
REVOKE = ("--into", "c", "--domain", "b.example", "--key", "k")
ISSUE = ("--key", "k", "--user", "user://a.example/u", "--domain", "a.example")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "many"])
@pytest.mark.parametrize(
    ("command", "option", "others"),
    [
        (sign, "--days", SIGN),
        (revoke, "--days", REVOKE),
        (issue, "--life", ISSUE),
        (issue, "--not-before", ISSUE),
        (node, "--session-life", ("--domain", "a.example")),
    ],
)
def test_an_invalid_number_is_a_usage_error(command, option, others, number):
    done = called(command, *others, f"{option}={number}")
    assert (done.status, done.out, len(done.err)) == (ExitCode.USAGE, [], 1)
    assert option in done.err[0]
