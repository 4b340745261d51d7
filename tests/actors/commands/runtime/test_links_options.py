"""What a runtime wants of direct links, as its options say it."""

import pytest
from click.testing import CliRunner

from actors.cli.options import define_command
from actors.commands.runtime import read_links
from fsm.commands.parameters import group

RB = "hyperty-runtime://b.ex/rb"


def given(*options):
    """Run a command that has these options only; return its options, or its error."""
    reported = []

    @define_command("links")
    def command(links=group(read_links)):
        reported.append(links)

    result = CliRunner().invoke(command, options)
    return (reported[0], result.exit_code) if reported else (result.output, result.exit_code)


@pytest.mark.parametrize(
    "peer",
    ["b.ex", "b.ex=sometimes", "=never", "b ex=never", "hyperty://b.ex/h=never", f"{RB}/sm=never"],
)
def test_an_empty_option_is_refused(peer):
    output, code = given("--p2p-peer", peer)
    assert code == 2
    assert "--p2p-peer" in output
