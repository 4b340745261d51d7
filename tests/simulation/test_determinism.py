"""The same seed is the same run, to the byte, whatever process it runs in (I-X3)."""

import os
import subprocess
import sys

import pytest

from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.stored import stored_plan_of
from tests.simulation.world.simulator import run

pytestmark = pytest.mark.timeout(240)

SEEDS = 3


@pytest.mark.parametrize(
    ("more", "made"),
    [((), plan_of), (("--groups",), group_plan_of), (("--stored",), stored_plan_of)],
)
def test_two_processes_that_hash_differently_run_a_seed_alike(more, made):
    command = [sys.executable, "-m", "tests.simulation", f"--seeds={SEEDS}", "--digest", *more]
    other_hash = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": other_hash}
    reported = subprocess.run(  # noqa: S603 - ourselves
        command, env=environment, capture_output=True, text=True, check=True
    )
    here = [f"{seed} {run(made(seed)).evidence.digest()}" for seed in range(SEEDS)]

    assert reported.stdout.splitlines() == here


def test_a_seed_runs_alike_twice_in_one_process():
    assert run(plan_of(4)).evidence.digest() == run(plan_of(4)).evidence.digest()


def test_seeds_differ():
    assert run(plan_of(8)).evidence.digest() != run(plan_of(15)).evidence.digest()
