"""The README's program runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
_LINES = 15


def program() -> str:
    (text,) = _PROGRAM.findall(README.read_text())
    return text


def test_the_program_prints_what_the_readme_says():
    command = [sys.executable, "-c", program()]
    done = subprocess.run(  # noqa: S603 - the program is ours
        command, cwd=README.parent, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("200 Hello, Alice!\n", "")
    assert "prints `200 Hello, Alice!`" in README.read_text()


def test_the_program_is_short():
    body = [line for line in program().splitlines() if line and "import" not in line]
    assert len(body) <= _LINES
