"""Where a node's back ends are: files, servers, and what is neither."""

from pathlib import Path

import pytest

from actors.cli.group import CommandError, ExitCode
from actors.commands.node.fields import back_ends, registry_file
from actors.kit.back_ends.ice import IcePlan, ListedServer
from actors.kit.http_client import ServerUrl
from actors.node.connectors.quality import ConfiguredServers
from tests.support.command import typed


def opened(registry=None, global_registry=None, qos=None, **more):
    rest = dict.fromkeys(["ice", "push_key", "push_contact", "state"])
    rest |= {"push_service": frozenset()} | more
    return back_ends(registry=registry, global_registry=global_registry, qos=qos, **rest)


def test_without_options_records_are_in_memory_and_there_are_no_back_ends():
    ends = opened()
    assert (ends.registry, ends.global_registry, ends.quality) == (None,) * 3
    assert registry_file(registry=None) is None


def test_a_registry_is_a_file_or_a_server():
    assert registry_file(registry="r.sqlite") == Path("r.sqlite")
    assert opened("r.sqlite").registry is None
    server = "https://registry.example/base/"
    assert registry_file(registry=server) is None
    assert opened(server).registry == ServerUrl("https", "registry.example", 443, "/base")


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--registry", {"registry": "http://"}),
        ("--global-registry", {"global_registry": "registry.example"}),
        ("--qos", {"qos": "ftp://x"}),
    ],
)
def test_an_url_without_a_server_is_refused_in_one_sentence_with_the_option(option, values):
    with pytest.raises(CommandError, match=f"names no HTTP server: .*{option}") as caught:
        opened(**values)
    assert caught.value.code == ExitCode.CONFIGURATION


def test_devices_are_kept_beside_the_state_file(tmp_path):
    key, contact = tmp_path / "push.key", "mailto:ops@a.ex"
    push = opened("r.db", push_key=key, push_contact=contact).push
    assert (push.file, push.contact) == (Path("r.db-state-devices"), contact)
    again = opened(push_key=key, push_contact=contact).push
    assert (again.file, again.key.public()) == (None, push.key.public())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--push-key", "push.key"), "--push-contact"),
        (("--push-key", "none/push.key", "--push-contact", "mailto:a@a.ex"), "--push-key"),
        (("--push-contact", "ops@a.ex"), "neither mailto:... nor https://"),
        (("--push-service", "push.example"), "no origin such as https://push.example"),
        (("--push-service", "https://push.example/x"), "has a path"),
    ],
)
def test_options_by_which_nobody_is_woken_are_refused(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = typed("node", "--domain", "a.ex", *options)
    assert (ended.status in {ExitCode.USAGE, ExitCode.CONFIGURATION}, ended.out) == (True, [])
    assert said in ended.err[-1]


def test_a_folder_is_no_registry(tmp_path):
    ended = typed("node", "--domain", "a.ex", "--registry", str(tmp_path))
    assert ended.status == ExitCode.USAGE
    assert "is a folder" in ended.err[-1]


def test_servers_are_listed_in_a_file_or_known_to_a_broker(tmp_path):
    plan = IcePlan((ListedServer(("stun:stun.a.ex",)),))
    assert isinstance(opened(ice=plan).quality(), ConfiguredServers)
    with pytest.raises(CommandError, match="give one of them"):
        opened(qos="http://127.0.0.1:1", ice=plan)
    file = tmp_path / "ice.toml"
    file.write_text("[[servers]]")
    ended = typed("node", "--domain", "a.ex", "--ice", str(file))
    assert ended.status == ExitCode.USAGE
    assert ": unknown key 'servers'" in ended.err[-1]
