"""`python -m actors config`: flag > environment > file > default, and which of them it was."""

import datetime as dt
import sqlite3
from contextlib import closing

import pytest

from actors.cli.group import ExitCode
from actors.dev.authority import open_authority
from actors.node.registry.record_file import SqliteRecords
from tests.support.command import typed

FILE = '[node]\ndomain = "file.example"\nlisten = "127.0.0.1:1"\nallow-legacy = true\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "node.toml"
    path.write_text(FILE)
    return str(path)


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


def test_databases_of_others_are_found_and_nothing_is_made(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE mine (one)")
    table = "[node]\nregistry = '{0}/{1}'\n[runtime]\nstore = '{0}/{1}'\nidentity = '{0}/key'\n"
    assert findings(tmp_path, table.format(tmp_path, "fresh")) == []
    assert {path.name for path in tmp_path.iterdir()} == {"other", "wrong.toml"}
    registry, store = findings(tmp_path, table.format(tmp_path, "other"))
    assert "it is the database of another program" in registry
    assert "it is the database of another program" in store


def test_a_check_of_databases_leaves_no_files_beside_them(tmp_path):
    path = tmp_path / "r.sqlite"
    with closing(SqliteRecords(path)) as records:
        records.load()
        copy = tmp_path / "copy"
        with closing(sqlite3.connect(path)) as used, closing(sqlite3.connect(copy)) as target:
            used.backup(target)
        before = {file.name for file in tmp_path.iterdir()} | {"wrong.toml"}
        assert before > {"copy", "r.sqlite-wal"}
        for file in (copy, path):
            assert findings(tmp_path, f"[node]\nallow-legacy = true\nregistry = '{file}'\n") == []
            assert {file.name for file in tmp_path.iterdir()} == before


def made(folder):
    folder.mkdir()
    return folder
