"""`python -m actors config`: flag > environment > file > default, and which of them it was."""

import datetime as dt
import os
import socket
import sqlite3
from contextlib import closing

import orjson
import pytest

from actors.cli.group import ExitCode
from actors.commands.node import command
from actors.dev.authority import open_authority
from actors.node.config import NodeConfig
from tests.support.command import typed
from transports.tls import server_context

FILE = '[node]\ndomain = "file.example"\nlisten = "127.0.0.1:1"\nallow-legacy = true\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "node.toml"
    path.write_text(FILE)
    return str(path)


def shown(*arguments, **env):
    """The options of a command by name, as its JSON tells them."""
    ended = typed("config", "show", "--json", *arguments, env={**os.environ, **env})
    assert ended.status == ExitCode.OK, ended.err
    return {reported["name"]: reported for reported in map(orjson.loads, ended.out)}


def test_the_first_of_flag_environment_file_default_wins(file):
    """Each option is shown with the one that it has its value from."""
    options = shown(
        "node", "--config", file, "--listen", "127.0.0.1:3",
        PROTOFLY_NODE_LISTEN="127.0.0.1:2", PROTOFLY_NODE_DOMAIN="environment.example",
    )  # fmt: skip
    reported = {name: (one["value"], one["origin"], one["where"]) for name, one in options.items()}
    assert reported["listen"] == ("127.0.0.1:3", "command line", "")
    assert reported["domain"] == ("environment.example", "environment", "PROTOFLY_NODE_DOMAIN")
    assert reported["allow-legacy"] == (True, "file", f"{file} [node]")
    assert reported["registry"] == (None, "default", "")


@pytest.mark.parametrize("order", [0, 1])
def test_a_profile_gives_way_to_a_file_and_to_a_flag(order, tmp_path):
    file = tmp_path / "node.toml"
    file.write_text('[node]\nhandshake-rate = "7"\n')
    pairs = [("--profile", "upstream"), ("--config", str(file))]
    first, second = pairs[order], pairs[1 - order]
    options = shown("node", *first, *second, "--outbox-bytes", "1MiB")
    reported = {name: (one["value"], one["origin"], one["where"]) for name, one in options.items()}
    assert reported["allow-legacy"] == (True, "profile", "upstream")
    assert reported["handshake-rate"] == ("7", "file", f"{file} [node]")
    assert reported["outbox-bytes"] == ("1MiB", "command line", "")
    assert reported["fan-out"] == ("10000", "default", "")


def test_a_profile_may_be_named_in_a_file(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text('[node]\nprofile = "upstream"\n')
    assert shown("node", "--config", str(file))["loose-names"]["origin"] == "profile"


def test_a_profile_that_there_is_not_is_refused():
    ended = typed("config", "show", "node", "--profile", "downstream")
    assert ended.status == ExitCode.USAGE
    assert "upstream" in ended.err[-1]


def test_the_output_of_show_is_a_file_with_the_same_options(file, tmp_path):
    ended = typed("config", "show", "--origin", "node", "--config", file)
    again = tmp_path / "again.toml"
    again.write_text("\n".join(ended.out))
    first, second = shown("node", "--config", file), shown("--config", str(again))
    assert {name: one["value"] for name, one in first.items()} == {
        name: one["value"] for name, one in second.items()
    }


def test_a_value_that_a_command_would_refuse_is_refused(file):
    ended = typed("config", "show", "node", "--config", file, "--domain", "a b")
    assert ended.status == ExitCode.USAGE
    assert "no domain name" in ended.err[-1]


def test_several_values_are_shown_as_several():
    named = "echo=actors.hyperties:Echo two=actors.hyperties:Counter"
    options = shown("runtime", PROTOFLY_RUNTIME_HYPERTY=named)
    assert options["hyperty"]["value"] == named.split()


def test_a_file_in_order_is_said_to_be():
    ended = typed("config", "check", "examples/node.toml")
    assert (ended.status, ended.err) == (ExitCode.OK, [])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[node]\nfrobnicate = 1", "'frobnicate', which is no option of node"),
        ("[nude]\ndomain = 'a.ex'", "no such command"),
        ("[node]\nallow-legacy = 'perhaps'", "Invalid value for '--allow-legacy'"),
        ("[node]\nlog = 'loud'", "Invalid value for '--log'"),
        ("[node]\nhttp-token-file = '/nowhere'", "add --http"),
        ("[node]\nrest = true", "--rest serves runtimes over HTTP, but no place"),
        ("[node]\nhttp = '127.0.0.1:0'\nhttp-token-file = '/nowhere'", "cannot read /nowhere"),
        ("[runtime]\nname = 'a/b'", "is no name"),
        ("[node]\nallow-legacy = 3", "allow-legacy has to be true or false"),
        ("[node]\npolicy = 7", "policy has to be a list, or one text"),
        ("[node]\ndomain = true", "domain has to be a text or a number"),
        ("[node]\nlisten = ['127.0.0.1:0']", "listen has to be a text or a number"),
        ("domain = 'a.ex'", "no such command"),
        ("node = 7", "a table [node] belongs"),
        ("domain = ", "no TOML"),
    ],
)
def test_a_file_that_is_wrong_is_reported_in_one_sentence(tmp_path, content, complaint):
    path = tmp_path / "wrong.toml"
    path.write_text(content)
    ended = typed("config", "check", str(path))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert complaint in ended.err[0]


def test_which_file_was_read_is_in_the_log(file):
    ended = typed("node", "--config", file, "--log", "info", "--registry", "/nowhere/x")
    assert any(f'configuration loaded" file={file}' in line for line in ended.err)


@pytest.mark.parametrize("content", ["[node]\nfan-out = 'many'", "[nude]\ndomain = 'b.ex'"])
def test_an_invalid_file_is_a_wrong_configuration_for_the_node_too(tmp_path, content):
    file = tmp_path / "node.toml"
    file.write_text(content)
    ended = typed("node", "--domain", "a.ex", "--config", str(file))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert str(file) in ended.err[0]


def test_a_wrong_value_in_the_environment_is_reported_by_the_name_of_the_variable():
    env = {**os.environ, "PROTOFLY_NODE_FAN_OUT": "many"}
    ended = typed("node", "--domain", "a.ex", env=env)
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert ended.err[0].startswith("protofly: PROTOFLY_NODE_FAN_OUT: ")


def test_a_variable_that_is_no_option_is_reported_and_ignored():
    """Kubernetes makes such variables by itself, so it is no error."""
    env = {**os.environ, "PROTOFLY_NODE_FAN_OUTS": "7"}
    ended = typed("config", "show", env=env)
    assert ended.status == ExitCode.OK
    assert ended.err == ["protofly: PROTOFLY_NODE_FAN_OUTS is no option of node, and ignored"]


def findings(tmp_path, content, *more):
    path = tmp_path / "wrong.toml"
    path.write_text(content)
    ended = typed("config", "check", str(path), *more)
    assert ended.status == (ExitCode.CONFIGURATION if ended.err else ExitCode.OK)
    return [line.removeprefix("protofly: ").replace(str(path), "FILE") for line in ended.err]


def test_all_that_is_wrong_is_found_at_once(tmp_path):
    """Each finding stands in a line of its own, and what only follows from another is left out."""
    (tmp_path / "policy.toml").write_text("nonsense")
    found = findings(
        tmp_path,
        f"""
        [node]
        domian = "a.example"
        fan-out = "many"
        log = "loud"
        listen = "nowhere"
        http = "nobody"
        rest = true
        policy = ["{tmp_path}/policy.toml", "{tmp_path}/none.toml"]
        registry = "{tmp_path}/none/registry"
        loose-names = true
        tls-cert = "{tmp_path}/none.pem"
        [runtime]
        name = "a/b"
        hyperty = ["one=no.such:Echo", "two=actors.hyperties:Nobody"]
        token-file = "{tmp_path}/none.token"
        trace-bodies = true
        [nodes]
        """,
    )
    expected = [
        "there is no such command", "did you mean 'domain'?", "--log", "--fan-out", "--listen",
        "--http", "--loose-names", "--tls-cert", "policy.toml", "none.toml", "none/registry",
        "'a/b' is no name", "none.token", "trace-bodies", "no.such", "Nobody",
    ]  # fmt: skip
    for word in expected:
        assert [line for line in found if word in line], word
    assert len(found) == len(expected), found


def test_an_argument_of_a_command_hides_no_finding(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[request]\nnonsense = 1\nverb = "to"\n')
    found = typed("config", "check", str(file)).err
    assert ["nonsense" in line for line in found] == [True, False]
    assert "'to'" in found[1]


def test_a_misspelt_table_is_answered_with_the_name_that_is_like_it(tmp_path):
    (found,) = findings(tmp_path, "[nodes]\ndomain = 'a.ex'")
    assert "did you mean 'node'?" in found


def test_certificates_that_are_over_or_do_not_fit_their_key_are_found(tmp_path):
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    old = open_authority(made(tmp_path / "old"), ["localhost"], long_ago)
    new = open_authority(made(tmp_path / "new"), ["localhost"], dt.datetime.now(dt.UTC))
    tables = "[node]\ntls-cert = '{}'\ntls-key = '{}'\n"
    assert findings(tmp_path, tables.format(new.cert, new.key)) == []
    (over,) = findings(tmp_path, tables.format(old.cert, old.key))
    assert f"{old.cert} is good until 2020-03-31 only; renew it" in over
    (unfit,) = findings(tmp_path, tables.format(new.cert, old.key))
    assert "it is not the key of the certificate" in unfit


def test_a_node_with_a_certificate_that_is_over_says_so(tmp_path):
    old = open_authority(
        made(tmp_path / "old"), ["localhost"], dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    )
    certificate = command._Certificate("tls_", server_context(old.cert, old.key), old.cert, old.key)
    config = NodeConfig(domain="a.example")
    (remark,) = command._remarks(config, [certificate], is_locked=False, processes=1)
    assert "is good until 2020-03-31 only; peers will not accept it" in remark


def test_databases_of_others_are_found_and_nothing_is_made(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE mine (one)")
    table = "[node]\nregistry = '{0}/{1}'\n[runtime]\nstore = '{0}/{1}'\nidentity = '{0}/key'\n"
    assert findings(tmp_path, table.format(tmp_path, "fresh")) == []
    assert {path.name for path in tmp_path.iterdir()} == {"other", "wrong.toml"}
    registry, store = findings(tmp_path, table.format(tmp_path, "other"))
    assert "it is the database of another program" in registry
    assert "it is the database of another program" in store


def test_metrics_that_everybody_could_read_are_found(tmp_path):
    (found,) = findings(tmp_path, "[node]\nhttp = '0.0.0.0:9440'")
    assert "--http-token-file" in found


def test_a_port_in_use_is_found_if_that_is_asked_for(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        table = f"[node]\nlisten = '127.0.0.1:{taken.getsockname()[1]}'"
        assert findings(tmp_path, table) == []
        (found,) = findings(tmp_path, table, "--ports")
    assert "choose another place with --listen" in found


def made(folder):
    folder.mkdir()
    return folder


def test_a_byte_order_mark_is_named(tmp_path):
    """Editors of Windows write one, and none shows it."""
    file = tmp_path / "node.toml"
    file.write_text(f"\ufeff{FILE}")
    ended = typed("config", "check", str(file))
    assert ended.status == ExitCode.CONFIGURATION
    assert "byte order mark" in "\n".join(ended.err)
