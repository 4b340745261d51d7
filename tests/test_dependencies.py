"""What `make` installs is locked with hashes, and fits what the project says it needs."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("build", "dev", "docs", "run")
OWN = PROJECT["project"]["name"]


def entries(name):
    """Return the requirements of a lock, each with what follows it."""
    text = (FOLDER / f"{name}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return [(Requirement(line.partition(" --hash")[0]), line) for line in lines]


def locked(name):
    """Return the versions of a lock for this interpreter, by name."""
    here = [one for one, _ in entries(name) if one.marker is None or one.marker.evaluate()]
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in here}


def wanted(texts):
    """Return requirements, those of the project's own extras included."""
    extras = PROJECT["project"]["optional-dependencies"]
    for one in map(Requirement, texts):
        if one.name == OWN:
            yield from wanted(line for extra in one.extras for line in extras[extra])
        elif one.marker is None or one.marker.evaluate():
            yield one


def unmet(texts, name):
    versions = locked(name)
    return [
        str(one)
        for one in wanted(texts)
        if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))
    ]


@pytest.mark.parametrize("name", LOCKS)
def test_each_entry_has_a_version_and_a_hash_and_no_place(name):
    for one, line in entries(name):
        assert re.fullmatch(r"==\S+", str(one.specifier)), line[:80]
        assert "--hash=sha256:" in line, line[:80]
    text = (FOLDER / f"{name}.txt").read_text()
    assert re.search(r"://|--(extra-)?index|--find-links", text) is None


@pytest.mark.parametrize("name", ["dev", "run"])
def test_an_entry_has_the_extras_that_others_ask_for(name):
    """Otherwise pip takes it as not pinned, as soon as there is a newer version."""
    extras = {canonicalize_name(one.name): one.extras for one, _ in entries(name)}
    asked = {
        (one, str(other))
        for one in extras
        for other in map(Requirement, needed_by(one))
        if other.extras and (other.marker is None or other.marker.evaluate({"extra": ""}))
        if not other.extras <= extras.get(canonicalize_name(other.name), other.extras)
    }
    assert asked == set()


def needed_by(name):
    try:
        return requires(name) or ()
    except PackageNotFoundError:  # it is not for this platform
        return ()


def test_the_locks_fit_what_the_project_needs():
    project = PROJECT["project"]
    extra = project["optional-dependencies"]["dev"]
    assert unmet([*project["dependencies"], *extra], "dev") == [], "run `make lock`"
    assert unmet(project["dependencies"], "run") == [], "run `make lock`"
    assert unmet(PROJECT["build-system"]["requires"], "build") == [], "run `make lock`"
    assert locked("run").items() <= locked("dev").items()
    site = (FOLDER / "docs.in").read_text().splitlines()
    assert unmet([line for line in site if line[0] != "#"], "docs") == [], "run `make lock`"


def test_each_locked_distribution_has_its_licence_listed():
    lines = (FOLDER / "licences.txt").read_text().splitlines()[1:]
    listed = dict(line.partition(" | ")[0].split() for line in lines)
    assert listed == locked("docs") | locked("dev"), "run `make lock`"
