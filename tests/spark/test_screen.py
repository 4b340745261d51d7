"""What columns say of machines is what the replay of each step says."""

import json
import random
from collections import Counter

import pytest

from fsm.judge.trace_files import local_part
from fsm.judge.trace_line import Claim
from fsm.judge.verdict import judge_folder
from spark.workers.columns import UndecidedError
from spark.workers.screen import screen_machines
from tests.support.trace.trace_files import generated, records, session, whole, write_trace

TRACES = 300


def by_columns(part, **options):
    try:
        return screen_machines([part], **options)
    except UndecidedError:
        return None


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Of each trace, what columns and what the replay say."""
    found = []
    for number, lines in enumerate(generated(TRACES, seed=31)):
        directory = tmp_path_factory.mktemp(f"trace{number}")
        part = local_part(str(write_trace(directory, lines)))
        (exact,) = judge_folder([part]).processes
        found.append((by_columns(part), exact))
    return found


def test_most_traces_are_decided(pairs):
    assert sum(screen is not None for screen, _ in pairs) > TRACES * 0.8


def test_the_same_violations_are_found(pairs):
    broken = Counter()
    for screen, exact in pairs:
        expected = [one for entity in exact.entities for one in entity.violations]
        broken.update(one.claim for one in expected)
        if screen is not None:
            assert [one for entity in screen.entities for one in entity.violations] == expected
    assert set(broken) == set(Claim)


def test_the_same_figures_are_counted(pairs):
    for screen, exact in pairs:
        if screen is not None:
            assert (screen.node, screen.missing) == (exact.node, exact.missing)
            assert screen.used == exact.used
            assert screen.stays == exact.stays
            assert screen.entity_counts == Counter(one.entity.machine for one in exact.entities)


STORY = [json.dumps(one) for one in records(whole(session("open", "closed")))]


@pytest.mark.parametrize(
    "bad",
    ["", "garbage", "[1]", f"{STORY[1]},{STORY[1]}", STORY[1][:-1], "7776665554443332221", "{}"],
)
def test_lines_that_are_no_records_are_left_to_the_reference(tmp_path, bad):
    part = local_part(str(write_trace(tmp_path, [STORY[0], bad, *STORY[1:]])))

    assert by_columns(part) is None


def test_lines_that_run_into_each_other_are_no_records(tmp_path):
    """Together they have as many objects as there are lines."""
    halves = ['{"a":[{}', "{}]}", f"{STORY[1]},7776665554443332221,{STORY[1]}"]
    part = local_part(str(write_trace(tmp_path, [STORY[0], *halves, STORY[-1]])))

    assert by_columns(part) is None


@pytest.mark.parametrize("lost", range(len(STORY) - 1))
def test_a_hole_in_the_numbers_is_left_to_the_reference(tmp_path, lost):
    part = local_part(str(write_trace(tmp_path, [*STORY[:lost], *STORY[lost + 1 :]])))

    assert by_columns(part) is None


def test_figures_do_not_depend_on_where_batches_end(tmp_path):
    dice = random.Random(5)  # noqa: S311 - reproducible, not secret
    lines = max(generated(60, seed=dice.randrange(100)), key=len)
    part = local_part(str(write_trace(tmp_path, lines)))

    assert by_columns(part, size=1) == by_columns(part) is not None
