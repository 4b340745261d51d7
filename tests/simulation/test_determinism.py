"""The same seed is the same run, to the byte, whatever process it runs in (I-X3)."""

import os
import subprocess
import sys

import pytest

from tests.simulation.plans.generation import plan_of
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(120)

SEEDS = 3


def digests(hash_seed, *more):
    command = [sys.executable, "-m", "tests.simulation", f"--seeds={SEEDS}", "--digest", *more]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    reported = subprocess.run(  # noqa: S603 - ourselves
        command, env=environment, capture_output=True, text=True, check=False
    )
    return reported.stdout.splitlines()


@pytest.mark.parametrize("more", [(), ("--groups",)])
def test_two_processes_that_hash_differently_run_a_seed_alike(more):
    one, other = digests("1", *more), digests("2", *more)

    assert len(one) == SEEDS
    assert one == other


def test_a_seed_runs_alike_twice_in_one_process():
    assert run(plan_of(4)).evidence.digest() == run(plan_of(4)).evidence.digest()


def test_seeds_differ():
    assert run(plan_of(8)).evidence.digest() != run(plan_of(15)).evidence.digest()
