"""Settings that `runtime` refuses: one sentence, and the exit status of a wrong setting."""

import pytest

from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed

NODE = ("node", "--domain", "a.example", "--allow-legacy")


NAMED = ("--domain", "a.example", "--name", "ra", "--node")


def sentence_of(ended):
    """Return what a runtime that cannot run says."""
    assert (ended.status, ended.out) == (ExitCode.CONFIGURATION, [])
    [sentence] = ended.err
    return sentence


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("tests.actors.commands.runtime.broken:Unmade", "KeyError: 'no such setting'"),
        (
            "tests.actors.commands.runtime.broken:Unstarted",
            "ZeroDivisionError: nothing to divide by",
        ),
        ("tests.actors.commands.runtime.broken_module:Any", "ValueError: this module is broken"),
    ],
)
async def test_a_hyperty_that_crashes_before_it_runs_is_named_with_its_error(where, why):
    async with serving(*NODE) as node:
        ended = await call("runtime", *NAMED, node.url, "--hyperty", f"x={where}", "--p2p", "none")
    reported = sentence_of(ended)
    assert f"{where} could not be started: {why}; " in reported


def test_where_a_hyperty_crashed_is_in_the_log():
    more = ("--hyperty", "x=tests.actors.commands.runtime.broken_module:Any", "--log", "info")
    ended = typed("runtime", *NAMED, "ws://127.0.0.1:1/link", *more)
    assert any("broken_module.py" in line for line in ended.err)
    assert ended.status == ExitCode.CONFIGURATION


@pytest.mark.parametrize("kinds", ["none", "unix"])
def test_a_host_that_is_not_needed_is_not_looked_at(kinds):
    named = ("--domain", "a.example", "--name", "ra", "--node", "ws://127.0.0.1:1/link")
    host = ("--p2p-host", "no.such.host.invalid", "--p2p", kinds)
    ended = typed("runtime", *named, *host)
    assert ended.status == ExitCode.CANNOT_CONNECT


async def test_a_sandbox_that_does_not_fit_into_the_total_is_refused_in_one_sentence():
    """SEC-32."""
    crew = ("--hyperty", "a=actors.hyperties:Echo", "--hyperty", "b=actors.hyperties:Echo")
    apart = ("--sandbox", "process", "--sandbox-memory", "256", "--log", "error")
    async with serving(*NODE) as node:
        ended = await call("runtime", *NAMED, node.url, *crew, *apart, "--p2p", "none")
    reported = sentence_of(ended)
    assert "may use 256 MiB of memory, and 1 of 256 MiB each run already" in reported
    assert "raise --sandbox-memory" in reported
