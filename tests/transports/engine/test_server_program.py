"""The program of a local NATS server."""

import pytest

from transports.engine.server import find_program
from transports.errors import LocalServerError


def test_a_program_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o700)
    monkeypatch.setattr("shutil.which", lambda _, path=None: str(program))
    with pytest.raises(LocalServerError, match=r"does not state its version within 0\.1 s"):
        find_program(patience=0.1)
