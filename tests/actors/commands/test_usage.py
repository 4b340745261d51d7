"""What a person sees who gets the command line wrong."""

import sys

import pytest
import trio

from actors.cli.group import SUMMARIES, CommandGroup, ExitCode
from tests.support.command import ROOT, typed


def test_help_lists_every_command():
    ended = typed("--help")
    assert ended.status == ExitCode.OK
    assert all(any(f"  {name} " in line for line in ended.out) for name in SUMMARIES)


async def test_help_needs_none_of_what_the_commands_need():
    """What is imported decides how soon it is there: no Trio, no codec, no machines."""
    code = "import sys; import actors.__main__; print(*sys.modules)"
    reported = await trio.run_process([sys.executable, "-c", code], cwd=ROOT, capture_stdout=True)
    assert not {"trio", "cattrs", "transitions", "orjson"} & set(reported.stdout.decode().split())


@pytest.mark.parametrize(
    "name", ["bench", "find", "observe", "release", "report", "request", "send", "top"]
)
async def test_help_of_a_command_needs_no_runtime(name):
    """What only its work needs is not imported: signatures, HTTP, files of stores, the runtime."""
    words = [sys.executable, "-X", "importtime", "-m", "actors", name, "--help"]
    ended = await trio.run_process(words, cwd=ROOT, capture_stdout=True, capture_stderr=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines()}
    assert "actors.runtime.config" in imported
    assert not imported & {
        "joserfc", "cryptography", "httpcore", "sqlite3", "trio_websocket", "prometheus_client",
        "cattrs", "actors.runtime.runtime", "actors.runtime.hyperty.hyperty",
        "actors.runtime.bus.ports", "actors.kit.supervision.supervisor",
        "fsm.registry.resolve.links", "transports.webrtc.process",
    }  # fmt: skip


def test_the_version_is_reported():
    ended = typed("--version")
    assert ended.status == ExitCode.OK
    assert "protofly" in ended.out[0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--frobnicate"], "No such option"),
        (["frobnicate"], "No such command"),
        (["nod"], "Did you mean 'node'?"),
        (["token", "isue"], "Did you mean 'issue'?"),
        (["node", "--domian", "a.ex"], "'--domain'"),
        (["node", "--frobnicate"], "No such option"),
        (["node"], "Missing option"),
        (["node", "--domain", "a b"], "no domain name"),
        (["node", "--domain", "a.ex/x"], "no domain name"),
        (["node", "--domain", "a.ex", "--log", "loud"], "Invalid value"),
        (["runtime", "--domain", "a.ex", "--node", "ws://x/", "--name", "a b"], "no name"),
        (["runtime", "--domain", "a.ex", "--node", "ws://x/", "--name", "a/b"], "no name"),
        (["runtime", "--domain", "a.ex", "--node", "ws://x/", "--name", ""], "no name"),
        (
            ["runtime", "--domain", "a.ex", "--node", "ws://x/", "--name", "r", "--p2p", "owl"],
            "none of",
        ),
        (
            ["runtime", "--domain", "a.ex", "--node", "ws://x/", "--name", "r", "--hyperty", "x"],
            "form",
        ),
        (["request", "--domain", "a.ex", "--node", "ws://x/", "nonsense", "1"], "no address"),
        (["request", "--domain", "a.ex", "--node", "ws://x/", "hyperty://a.ex/1", "{"], "no JSON"),
    ],
)
def test_wrong_usage_is_reported_and_ends_with_2(arguments, complaint):
    ended = typed(*arguments)
    assert ended.status == ExitCode.USAGE
    assert complaint in " ".join(ended.err)
    assert not ended.out


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_summary_of_a_command_is_the_one_of_its_module(name):
    command = CommandGroup().get_command(None, name)
    assert command.name == name
    assert command.help
