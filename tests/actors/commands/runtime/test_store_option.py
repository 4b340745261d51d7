"""`python -m actors runtime --store FILE`: by option, environment or file; errors."""

import contextlib
import os
import sqlite3

import pytest

from actors.cli.group import ExitCode
from actors.runtime.store.file import ObjectFile
from fsm.sync.stored import SessionKept
from tests.support.command import serving, typed

NODE = ("node", "--domain", "a.example", "--allow-legacy")
ECHO = "echo=actors.hyperties:Echo"
NOWHERE = "ws://127.0.0.1:1/link"


def runtime(node, *more):
    return ("runtime", "--domain", "a.example", "--name", "ra", "--node", node, *more)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE mine (x)", "the database of another program"),
        ("PRAGMA user_version = 99", "written by a newer version of the runtime"),
    ],
)
def test_a_file_that_is_none_is_reported_in_one_sentence(sql, why, tmp_path):
    path = tmp_path / "s.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as there:
        there.execute(sql)
    ended = typed(*runtime(NOWHERE, "--store", str(path)))
    assert ended.status == ExitCode.CONFIGURATION
    [said] = ended.err
    assert why in said
    assert "--store" in said


def test_a_file_that_another_process_has_is_reported(tmp_path):
    """A second runtime of the same name, with the same store."""
    path = tmp_path / "s.sqlite"
    with contextlib.closing(ObjectFile(path)) as file:
        file.load()
        ended = typed(*runtime(NOWHERE, "--store", str(path)))
    assert ended.status == ExitCode.CONFIGURATION
    assert "another runtime has it open" in ended.err[0]


@pytest.mark.parametrize("by", ["option", "environment", "file"])
async def test_the_store_is_named_like_every_option(by, tmp_path):
    path, config = tmp_path / "s.sqlite", tmp_path / "protofly.toml"
    config.write_text(f'[runtime]\nstore = "{path}"\n')
    more = {"option": ("--store", str(path)), "file": ("--config", str(config))}.get(by, ())
    env = {**os.environ, "PROTOFLY_RUNTIME_STORE": str(path)} if by == "environment" else None
    async with serving(*NODE) as node:
        command = (*runtime(node.url, "--hyperty", ECHO, "--p2p", "none"), *more)
        async with serving(*command, **({} if env is None else {"env": env})):
            pass
    with contextlib.closing(ObjectFile(path)) as file:
        assert file.load().rows(SessionKept)
