"""`examples/node.toml` names every option of a node; the file of the page for operators serves."""

import re
import tomllib

from actors.cli.group import command_of
from actors.commands.config import read_context
from tests.support.command import ROOT

EXAMPLE = ROOT / "examples" / "node.toml"
NODE = command_of("node")
NAMES = sorted(one.name.replace("_", "-") for one in NODE.params if one.name != "config")

_OPTION = re.compile(r"^(?:# )?([a-z0-9-]+) = ", re.MULTILINE)


def test_every_option_stands_in_the_example_and_nothing_else_and_nothing_twice():
    assert sorted(_OPTION.findall(EXAMPLE.read_text())) == NAMES


def test_every_value_of_the_example_would_be_taken(tmp_path):
    whole = re.sub(r"^# ([a-z0-9-]+ = )", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    assert sorted(tomllib.loads(whole)["node"]) == NAMES
    file, ice = tmp_path / "whole.toml", tmp_path / "ice.toml"
    ice.write_text('[[server]]\nurls = ["stun:stun.a.example"]\n')
    ice.chmod(0o600)
    file.write_text(whole.replace("/etc/protofly/ice.toml", str(ice)))
    assert read_context(NODE, ("--config", str(file))).params["domain"] == "a.example"
