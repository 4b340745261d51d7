"""A node of compiled modules does what one of their sources does."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from bench.compiled import PACKAGES, ROOT
from tests.compiled.plugin import COMPILED

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("both_ways.py")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The sources of the wheel, without what was compiled."""
    place = tmp_path_factory.mktemp("sources")
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / package, place / package, ignore=ignored)
    return place


def said(*path: Path, seed: int) -> list[str]:
    """Run the program with modules of such folders; return the lines it wrote."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, PROGRAM, str(seed)],
        env=os.environ | {"PYTHONPATH": ":".join(map(str, path))},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_heard_traced_counted_and_refused_is_the_same(sources, seed):
    """MN-03, MSG-18, N3, I-T10."""
    modules, *ours = said(ROOT, seed=seed)
    plain, *others = said(sources, ROOT, seed=seed)
    assert modules.count(EXTENSION_SUFFIXES[0]) == plain.count(".py") == 2
    assert len(ours) > 1000
    assert ours == others


def test_compiled_modules_need_nothing_of_their_compiler():
    """An installation does not have it."""
    program = f"import sys, {', '.join(COMPILED)}; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert tops & {"mypy", "mypyc", "mypy_extensions", "librt"} == set()
