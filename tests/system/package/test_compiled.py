"""The wheel whose busiest modules are compiled: it behaves as the sources do."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from bench.compiled import build

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("compiled"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C"),
]

ROOT = Path(__file__).parents[3]
NEAR = (
    "tests/specs", "tests/fsm/bus", "tests/fsm/limits", "tests/fsm/test_engine.py",
    "tests/transports/test_codec.py", "tests/transports/test_codec_any.py",
    "tests/transports/test_codec_plain.py", "tests/transports/test_json_limits.py",
    "tests/conformance",
)  # fmt: skip
"""Tests of what is compiled."""

PATCHING = (
    "tests/conformance/test_mutants.py",
    "tests/specs/dialects/test_dialect.py::test_a_link_learns_the_same_whether_or_not_it_has_seen_the_like",
    "tests/transports/test_codec_plain.py::test_a_peer_of_upstream_is_read_and_learnt_from_alike",
)
"""Those that change functions of what is compiled, or derive from its classes."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with the modules of a compiled wheel."""
    return build(tmp_path_factory.mktemp("compiled") / "work")


def ended(*command: object, path: str) -> str:
    """Run Python with modules of such folders; return what it wrote."""
    done = subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *map(str, command)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def test_a_compiled_wheel_has_the_sources_too(compiled):
    suffix = EXTENSION_SUFFIXES[0]
    for name in ("transports/codec", "actors/node/bus", "fsm/engine"):
        assert (compiled / f"{name}{suffix}").is_file()
        assert (compiled / f"{name}.py").is_file()


@pytest.mark.parametrize("seed", range(3))
def test_a_node_of_compiled_modules_does_what_one_of_sources_does(compiled, seed):
    """MN-03, MSG-18, N3, I-T10: what is heard, traced, counted and refused."""
    program = Path(__file__).with_name("both_ways.py")
    modules, *seen = ended(program, seed, path=f"{compiled}:{ROOT}").splitlines()
    sources, *expected = ended(program, seed, path=str(ROOT)).splitlines()
    assert modules.count(EXTENSION_SUFFIXES[0]) == sources.count(".py") == 2
    for ours, others in zip(seen, expected, strict=True):
        assert ours == others
    assert len(seen) > 1000


def test_the_tests_of_what_is_compiled_pass(compiled):
    left_out = [f"--deselect={one}" for one in PATCHING]
    said = ended(
        "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-o",
        f"pythonpath={compiled} {ROOT}", *left_out, *NEAR, path=f"{compiled}:{ROOT}",
    )  # fmt: skip
    assert " passed" in said
