"""Node.js and the npm packages that build and check the browser runtime."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
PATIENCE = 100  # seconds; an installation waits for a registry

needs_node = pytest.mark.skipif(
    not shutil.which("node"), reason="no Node.js; apt-get install nodejs"
)


def npm_run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script of `web/package.json`; skip where its packages cannot be installed."""
    if not shutil.which("npm"):
        pytest.skip("no npm; apt-get install npm")
    _install()
    command = ("npm", "run", "--silent", script)
    return subprocess.run(  # noqa: S603 - ours
        command, cwd=WEB, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def installed(file: str) -> str:
    """Return a file of an npm package; skip where packages cannot be installed."""
    if not shutil.which("npm"):
        pytest.skip("no npm; apt-get install npm")
    _install()
    return (WEB / "node_modules" / file).read_text()


def _install() -> None:
    with (WEB / "package-lock.json").open() as lock:
        # Tests run side by side.
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = WEB / "node_modules" / ".package-lock.json"
        wanted = WEB / "package-lock.json"
        if installed.exists() and installed.stat().st_mtime >= wanted.stat().st_mtime:
            return
        try:
            done = subprocess.run(  # noqa: S603 - ours
                INSTALL, cwd=WEB, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip("npm installs nothing: its registry does not answer")
        if done.returncode:
            pytest.skip(f"npm installs nothing: {done.stderr.strip()[:200]}")
        installed.touch()
