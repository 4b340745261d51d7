"""The installed command has those of `fsm` and `spark`, and names what hides a package of ours."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - words of this test
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_command_draws_a_machine_as_the_program_of_machines_does() -> None:
    words = ("draw", "p2p_connection")
    shown = run("-m", "actors", "fsm", *words)
    assert shown.returncode == 0
    assert shown.stdout == run("-m", "fsm", *words).stdout != ""


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("fsm", "draw", "no_machine"), 2, "no_machine"),
        (("spark", "validate", "/no/trace"), 3, "/no/trace"),
        (("fsm", "drew"), 2, "drew"),
    ],
)
def test_a_wrong_word_ends_as_it_does_there(words: tuple[str, ...], code: int, says: str) -> None:
    ended = run("-m", "actors", *words)
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["specs.py", "transports/__init__.py", "fsm/__init__.py"])
def test_a_file_that_hides_a_package_is_named(tmp_path: Path, name: str) -> None:
    hiding = tmp_path / name
    hiding.parent.mkdir(exist_ok=True)
    hiding.touch()
    ended = run("-c", "import actors", cwd=tmp_path)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {hiding}")
    assert "rename" in last


def test_a_folder_that_hides_nothing_is_no_error(tmp_path: Path) -> None:
    # Without an __init__.py it is no package: the installed one is found first.
    (tmp_path / "transports").mkdir()
    assert run("-c", "import actors; actors.Kind", cwd=tmp_path).returncode == 0
