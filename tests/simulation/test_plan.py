"""Plans: made up by a seed, written down, read again, made smaller."""

import attrs
import pytest

from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Act, Deed, Plan, Wrong, read_plan, write_plan
from tests.simulation.plans.shrinking import shrunk
from tests.simulation.plans.stored import stored_plan_of
from tests.simulation.plans.windows import window_plan_of
from tests.support.warm import run_warm


@pytest.mark.parametrize("made", [plan_of, group_plan_of, stored_plan_of, window_plan_of])
@pytest.mark.parametrize("seed", range(20))
def test_a_plan_is_the_same_after_it_was_written_and_read(seed, made):
    assert read_plan(write_plan(made(seed))) == made(seed)


def test_a_seed_is_a_plan_and_others_are_others():
    assert plan_of(1) == plan_of(1)
    assert len({plan_of(seed) for seed in range(50)}) == 50


def test_everything_that_can_be_done_or_go_wrong_does_somewhere():
    plans = [plan_of(seed) for seed in range(200)]
    groups = [group_plan_of(seed) for seed in range(200)]
    stored = [stored_plan_of(seed) for seed in range(200)]

    assert {act.deed for plan in plans for act in plan.acts} == set(Deed)
    assert {fault.wrong for plan in (*plans, *groups, *stored) for fault in plan.faults} == set(
        Wrong
    )
    assert all(plan.stored for plan in stored)
    assert {bool(plan.members) for plan in stored} == {False, True}
    assert {len(plan.runtimes) for plan in plans} == {2, 3, 4, 5}
    assert {len(plan.nodes) for plan in plans} == {1, 2, 3}
    assert {plan.nodes for plan in groups} == {("n0a", "n0b", "n0c")}


def asks(plan, deed=Deed.ASK):
    return [act for act in plan.acts if act.deed is deed]


def test_a_plan_shrinks_to_what_makes_it_fail():
    big = next(plan for plan in map(plan_of, range(100)) if asks(plan, Deed.CRASH))

    small = shrunk(big, lambda plan: bool(asks(plan, Deed.CRASH)))

    assert [act.deed for act in small.acts] == [Deed.CRASH]
    assert (small.faults, small.kinds, small.latency) == ((), (), 0.0)
    assert len(small.runtimes) == 2


def test_counts_shrink_as_far_as_they_may():
    plan = Plan(1, (("r0", 0), ("r1", 0)), acts=(Act(0.0, Deed.ASK, "r0", "r1", 20),))

    small = shrunk(plan, lambda one: sum(act.count for act in one.acts) >= 3)

    assert small.acts == (attrs.evolve(plan.acts[0], count=5),)


def test_a_participant_that_the_plan_still_names_is_kept():
    plan = Plan(1, (("r0", 0), ("r1", 0), ("r2", 0)), acts=(Act(0.0, Deed.ASK, "r0", "r1"),))

    small = shrunk(plan, lambda one: bool(one.acts))

    assert small.runtimes == (("r0", 0), ("r1", 0))


def test_shrinking_tries_only_so_often():
    tried = []

    def fails(plan):
        tried.append(plan)
        return False

    shrunk(plan_of(7), fails, tries=5)

    assert len(tried) == 5


def simulated(*arguments):
    return run_warm("-m", "tests.simulation", *arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory; name another file"),
        ("{}", "holds no plan"),
        ("x", "holds no plan"),
    ],
)
def test_a_file_that_holds_no_plan_is_wrong_usage(content, said, tmp_path):
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_text(content)
    done = simulated("--plan", str(file))
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("count", ["--seeds=0", "--seeds=-1", "--jobs=0", "--seeds=x"])
def test_no_run_at_all_is_no_run_that_passed(count):
    done = simulated(count)
    assert done.returncode == 2
    assert "is no number of at least 1" in done.stderr


def test_more_processes_than_runs_are_not_started():
    done = simulated("--seeds=1", "--jobs=3")
    assert (done.returncode, done.stderr.count("1 runs")) == (0, 1)


ENDLESS = """
from itertools import count
from tests.simulation import __main__ as simulation
simulation._WORK = 0.2
simulation.run = lambda plan: sum(0 for _ in count())
simulation.main()
"""


def test_a_run_that_does_not_end_is_given_up_and_its_plan_is_printed():
    done = run_warm("-c", ENDLESS, "--seeds=2", "--first=7")
    assert done.returncode == 1
    assert "seed 7: it did not end in 0.2 s of processor time" in done.stderr
    assert read_plan(done.stdout) == plan_of(7)
