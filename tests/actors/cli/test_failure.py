"""The advice that a person gets with an error fits its cause."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.cli.failure import explain
from actors.cli.group import ExitCode
from actors.node.errors import RegistryFileError, StateFileError


def full_database():
    """Return the error of SQLite on a full disk."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE one (text)")
        database.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as caught:
            database.execute("INSERT INTO one VALUES (zeroblob(100000))")
    return caught.value


@pytest.mark.parametrize("kind", [RegistryFileError, StateFileError])
@pytest.mark.parametrize("cause", [full_database(), OSError(errno.ENOSPC, "no space")], ids=repr)
def test_a_full_disk_needs_space_and_no_other_file(kind, cause):
    error = kind(Path("r.sqlite"), str(cause))
    error.__cause__ = cause
    explained = explain(error)
    assert str(explained).endswith("; free space on its disk")
    assert explained.code == ExitCode.CONFIGURATION


def test_another_error_of_a_file_needs_another_file():
    error = RegistryFileError(Path("r.sqlite"), "it is the database of another program")
    error.__cause__ = sqlite3.DatabaseError("it is the database of another program")
    assert str(explain(error)).endswith("; name another with --registry")
