"""`python -m tests.compiled [ARGUMENTS OF PYTEST]`: run tests with the modules of a compiled wheel.

The wheel is built, and installed into an environment of its own, which has all other packages from
this one. The tests run in a copy of the checkout, in which the installed packages stand in the
place of the sources: processes that they start use the same modules. `tests.compiled.plugin` checks
that, and leaves out and names what cannot be tested so.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.compiled import ROOT, build_wheel
from tests.compiled.plugin import COMPILED

TESTED = (
    "tests/compiled", "tests/conformance", "tests/fsm", "tests/specs", "tests/transports",
    "tests/actors/kit", "tests/actors/node", "tests/actors/runtime", "tests/simulation",
    "tests/fuzz",
)  # fmt: skip
"""What is compiled is there: decisions, messages, buses, links."""

LOCAL = ("build", "dist", "node_modules", "__pycache__", "*.egg-info", ".*")
"""Names of what a checkout has of its own."""


def install(wheel: Path, place: Path) -> tuple[Path, Path]:
    """Make an environment with a wheel; return its interpreter and its folder of packages."""
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    command = (*pip, "--python", python, "install", "--no-deps", "--no-index", wheel)
    subprocess.run(command, check=True)  # noqa: S603 - the wheel that was just built
    packages = place / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    # A folder that is named here gets no editable installation: its own such files are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python, packages


def copy_checkout(to: Path, packages: Path) -> None:
    """Copy a checkout; links to what is installed stand for the packages that are compiled."""
    installed = {name.partition(".")[0] for name in COMPILED}
    local = shutil.ignore_patterns(*LOCAL)

    def ignored(folder: str, names: list[str]) -> set[str]:
        return local(folder, names) | (installed if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, to, ignore=ignored)
    for name in installed:
        (to / name).symlink_to(packages / name)


def main() -> None:
    given = sys.argv[1:]
    paths = () if any(one.startswith("tests/") for one in given) else TESTED
    chosen = ("-p", "tests.compiled.plugin", "-m", "not (soak or long)", *given, *paths)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        python, packages = install(build_wheel(work / "wheel"), work / "env")
        copy_checkout(work / "checkout", packages)
        done = subprocess.run(  # noqa: S603 - our own tests
            (python, "-m", "pytest", *chosen),
            cwd=work / "checkout",
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            check=False,
        )
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
