"""What a runtime wants of direct links, as its options say it."""

import pytest
from click.testing import CliRunner

from actors.cli.options import define_command
from actors.commands.runtime import read_links
from fsm.commands.parameters import group
from fsm.p2p.dialling import WHENEVER_POSSIBLE, LinkPolicy, P2pUse, P2pWait, PeerPolicy

RB = "hyperty-runtime://b.ex/rb"


def given(*options):
    """Run a command that has these options only; return its options, or its error."""
    reported = []

    @define_command("links")
    def command(links=group(read_links)):
        reported.append(links)

    result = CliRunner().invoke(command, options)
    return (reported[0], result.exit_code) if reported else (result.output, result.exit_code)


def test_links_are_wanted_whenever_possible_by_default():
    assert given() == (WHENEVER_POSSIBLE, 0)


def test_every_use_of_links_has_an_option():
    peers = (
        PeerPolicy(RB, P2pUse.REQUIRED),
        PeerPolicy("*.b.ex", P2pUse.WHEN_ASKED),
        PeerPolicy("c.ex", P2pUse.NEVER),
    )
    options = [f"{RB}=required", "*.B.ex=when-asked", "c.ex=never"]
    flat = [part for one in options for part in ("--p2p-peer", one)]
    reported = given("--p2p-use", "never", "--p2p-wait", "await", *flat)
    assert reported == (LinkPolicy(P2pUse.NEVER, peers, P2pWait.AWAIT), 0)


@pytest.mark.parametrize(
    "peer",
    ["b.ex", "b.ex=sometimes", "=never", "b ex=never", "hyperty://b.ex/h=never", f"{RB}/sm=never"],
)
def test_an_empty_option_is_refused(peer):
    output, code = given("--p2p-peer", peer)
    assert code == 2
    assert "--p2p-peer" in output
