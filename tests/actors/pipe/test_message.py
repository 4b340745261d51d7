"""What goes through a sandbox's pipe: any garbage is read, or a `PipeError`, nothing else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.pipe import plan
from actors.pipe.outlet import FrameParts
from actors.pipe.plan import PipeError, PipeMessage, SandboxPlan, Word, read_message, write_message
from specs.limits.protocol import MAX_FRAME_BYTES


def planned(contents=plan.NODE_STUB, places=(), session=None):
    url, node = "domain://msg-node.a.ex/protostub/b.ex", "domain://msg-node.a.ex"
    return SandboxPlan(url, node, "b.ex", contents, places, session, 7, hops=False)


PLAN = planned()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(frame):
    with suppress(PipeError):
        read_message(frame)


@given(
    st.sampled_from(Word),
    st.integers(0, 2**31),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    st.binary(max_size=200),
)
def test_a_written_message_is_read_unchanged(word, number, text, rest):
    said = PipeMessage(word, number, text, {"a": [1, "x"]}, rest)
    assert read_message(write_message(said)) == said


@pytest.mark.parametrize(
    "line",
    [b"[]", b'{"k":"shout"}', b'{"k":"ping","n":"1"}', b'{"k":"ping","f":[]}', b'{"k":1}', b"{"],
)
def test_a_message_of_an_unknown_kind_is_refused(line):
    with pytest.raises(PipeError):
        read_message(line)


def test_a_line_is_bounded():
    with pytest.raises(PipeError):
        read_message(write_message(PipeMessage(Word.STEP, text="x" * 20_000)))


@pytest.mark.parametrize("size", [0, 1, 100_000, MAX_FRAME_BYTES - 1, MAX_FRAME_BYTES])
def test_a_frame_goes_in_parts_that_fit_and_comes_out_whole(size):
    frame, parts = b"x" * size, FrameParts()
    written = [write_message(one) for one in plan.parts_of(7, frame)]
    assert all(len(one) <= MAX_FRAME_BYTES for one in written)
    *first, last = (parts.add(read_message(one)) for one in written)
    assert set(first) <= {None}
    assert last == frame


def test_a_frame_that_goes_on_for_ever_is_refused():
    parts = FrameParts()
    (part, *_) = plan.parts_of(1, b"x" * MAX_FRAME_BYTES)
    parts.add(part)
    with pytest.raises(PipeError):
        parts.add(part)


@pytest.mark.parametrize(
    "contents",
    [
        plan.NODE_STUB,
        plan.Contents(plan.ContentsKind.PACKAGE, "chat:activate", {"a": [1]}),
        plan.Contents(plan.ContentsKind.PROGRAM, "my.app:Clock", {}),
    ],
)
def test_a_plan_is_read_as_it_was_written_and_shows_no_token(contents):
    wanted = planned(contents, ("ws://h:1/link", "stream://h:2"), "secret")
    assert plan.read_plan(plan.write_plan(wanted)) == wanted
    assert "secret" not in repr(wanted)


@pytest.mark.parametrize(
    "missing", ["url", "runtime", "domain", "contents", "endpoints", "ids", "hops"]
)
def test_half_a_plan_is_refused(missing):
    reported = plan.write_plan(PLAN)
    del reported[missing]
    with pytest.raises(PipeError):
        plan.read_plan(reported)


@pytest.mark.parametrize(
    "wrong",
    [
        {"contents": "node-stub"},
        {"contents": {"is": "wasm"}},
        {"contents": {"is": "package", "entry": "m:a"}},
        {"contents": {"is": "package", "options": {}}},
        {"contents": {"is": "program"}},
        {"endpoints": ["ws://h:1/", 1]},
        {"endpoints": "ws://h:1/"},
    ],
)
def test_a_plan_of_something_else_is_refused(wrong):
    with pytest.raises(PipeError):
        plan.read_plan(plan.write_plan(PLAN) | wrong)


ATOM = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANYTHING = ATOM | st.lists(ATOM, max_size=3) | st.dictionaries(st.just("is"), ATOM, max_size=1)


@given(st.sampled_from(sorted(plan.write_plan(PLAN))), ANYTHING)
def test_any_plan_is_read_or_refused(name, value):
    with suppress(PipeError):
        plan.read_plan(plan.write_plan(PLAN) | {name: value})
