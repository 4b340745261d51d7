"""The wheel in an environment of its own, with the packages that it needs and no others."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import attrs
import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
PACKAGES = ("actors", "fsm", "spark", "specs", "transports", "web")
NEEDED = re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE)

ROUND_TRIP = """
import trio
import actors

class Greeter(actors.Hyperty):
    async def on_request(self, message):
        return f"Hello, {message.body['value']}!"

async def main():
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "bob", node=node.url) as bob,
    ):
        greeter = await bob.deploy(Greeter)
        answer = await greeter.request(greeter.url, "Alice")
        print(actors.__file__, answer.code, answer.body["value"])

trio.run(main)
"""


@attrs.frozen
class Installed:
    """An environment with the wheel.

    Attributes:
        wheel: The file that was installed.
        place: Directory of the environment.
        apart: Directory to run programs in, without our sources.
    """

    wheel: Path
    place: Path
    apart: Path

    def run(self, *command: object, rc: int = 0) -> str:
        """Run a program of the environment; return what it wrote."""
        name, *arguments = map(str, command)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environ["PATH"] = str(self.place / "bin")
        ended = subprocess.run(  # noqa: S603 - our own programs
            [self.place / "bin" / name, *arguments],
            cwd=self.apart, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == rc, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    base = tmp_path_factory.mktemp("wheel")
    sources, built, place, apart = (base / name for name in ("src", "built", "env", "apart"))
    apart.mkdir()
    copy_sources(sources)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(  # noqa: S603 - our own sources
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, sources],
        check=True,
    )
    (wheel,) = built.glob("protofly-*.whl")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    site = place / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    link_needed(site)
    subprocess.run(  # noqa: S603 - the wheel that was just built
        [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel], check=True
    )
    return Installed(wheel, place, apart)


def copy_sources(to: Path) -> None:
    """Copy what a wheel is made of: pip would leave its work there."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to / name)


def link_needed(site: Path) -> None:
    """Put into an environment what the package needs, as it is installed here."""
    for name in NEEDED:
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {".."}:
            there = site / top
            if not there.exists() and top != "__pycache__":
                there.symlink_to(Path(str(distribution(name).locate_file(top))))


def metadata_of(wheel: Path):
    with ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith("/METADATA")]
        return HeaderParser().parsestr(packed.read(name).decode())


def test_the_wheel_has_our_packages_and_nothing_else(installed):
    with ZipFile(installed.wheel) as packed:
        tops = {Path(name).parts[0] for name in packed.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_has_what_pages_load_and_not_what_makes_it(installed):
    with ZipFile(installed.wheel) as packed:
        web = {name for name in packed.namelist() if name.startswith("web/")}
    for name in ("protofly.js", "protofly-objects.js", "protofly-links.js", "protofly.d.ts",
                 "src/index.js", "example/index.html",
                 "dashboard/machines/session.svg"):  # fmt: skip
        assert f"web/{name}" in web
    assert [name for name in web if "node_modules" in name or name.endswith("package.json")] == []


def test_its_metadata_says_what_it_is(installed):
    said = metadata_of(installed.wheel)
    assert "Framework :: Trio" in said.get_all("Classifier")
    assert "Typing :: Typed" in said.get_all("Classifier")
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said["Keywords"]


def test_a_program_sends_a_request(installed):
    program = installed.apart / "hello.py"
    program.write_text(ROUND_TRIP)
    said = installed.run("python", program)
    assert "200 Hello, Alice!" in said
    assert str(installed.place) in said, "the wheel was used"


@pytest.mark.parametrize("name", ["protofly", "python -m actors"])
def test_its_commands_run(installed, name):
    command = name.split()
    assert "Hyperty messaging on Trio" in installed.run(*command, "--help")
    assert installed.run(*command, "--version").split()[0] == "protofly"
    assert "p2p_connection" in installed.run("protofly", "fsm", "list")


PAGE = """
import httpcore
import trio
import actors

async def main():
    config = actors.NodeConfig(domain="a.example", http=actors.HttpConfig(listen="127.0.0.1:0"))
    async with actors.open_node(config) as node, httpcore.AsyncConnectionPool() as pool:
        for path in ("/web/dashboard/index.html", "/web/src/theirs.js"):
            print(path, (await pool.request("GET", node.http_url + path)).status)

trio.run(main)
"""


def test_the_dashboard_is_served_and_no_file_of_an_application(installed):
    theirs = installed.apart / "pages" / "web" / "src" / "theirs.js"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("")
    (theirs.parents[1] / "__init__.py").write_text("")
    program = installed.apart / "pages" / "page.py"
    program.write_text(PAGE)
    said = installed.run("python", program)
    assert "/web/dashboard/index.html 200" in said
    assert "/web/src/theirs.js 404" in said


def test_the_command_finds_hyperties_beside_it(installed):
    (installed.apart / "own_bells.py").write_text(
        "import actors\nclass Bell(actors.Hyperty): ...\n"
    )
    (installed.apart / "ring.toml").write_text(
        '[runtime]\ndomain = "a.example"\nname = "ra"\nnode = "ws://127.0.0.1:1/link"\n'
        'hyperty = ["bell=own_bells:Bell"]\n'
    )
    installed.run("protofly", "config", "check", "ring.toml")


def test_what_an_extra_is_needed_for_names_it(installed):
    (installed.apart / "traces").mkdir(exist_ok=True)
    said = installed.run("protofly", "spark", "validate", "traces", rc=1)
    assert "pip install '.[spark]'" in said
    assert len(said.splitlines()) == 1
    said = installed.run("protofly", "fsm", "draw", "p2p_connection", "--format", "svg", rc=1)
    assert "pip install '.[draw]'" in said


def test_a_module_that_hides_one_of_ours_is_named(installed):
    place = installed.apart / "hiding"
    place.mkdir()
    (place / "specs.py").write_text("")
    program = place / "hello.py"
    program.write_text("import actors\nactors.open_node\n")
    said = installed.run("python", program, rc=1)
    assert f"{place / 'specs.py'} hides the package 'specs' of protofly" in said
