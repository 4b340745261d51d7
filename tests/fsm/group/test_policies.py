"""All nodes of a group come to one version of the policies, and none goes back."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.effects import Refused
from fsm.group.policies import (
    BUSY,
    POLICY_KEY,
    Fenced,
    FilesDiffer,
    Judged,
    Known,
    Made,
    Missing,
    PoliciesCore,
    PolicyRow,
    Proposed,
    Written,
    WrittenDown,
)
from fsm.group.row_form import read_row, write_row
from fsm.policy.model import Book
from fsm.policy.reading import read_set
from fsm.policy.terms import Algorithm, Result
from specs.limits.group import GROUP_POLICY_BYTES
from specs.limits.node import MAX_POLICY_SETS


def book(*names, version=1, **more):
    sets = tuple(read_set({"id": name, "policies": []}, f"{name}.toml") for name in names)
    return Book(sets=sets, version=version, **more)


def ids(judged):
    return [one.id for one in judged.sets]


def test_a_row_is_read_as_it_was_written():
    row = PolicyRow(
        7,
        book("a", "b", version=7, combining=Algorithm.FIRST_APPLICABLE, default=Result.DENY),
    )
    read = read_row(POLICY_KEY, write_row(row))
    assert read == row
    assert [(one.source, one.document) for one in read.book.sets] == [
        (one.source, one.document) for one in row.book.sets
    ]


FIELDS = orjson.loads(write_row(PolicyRow(7, book("a", version=7))))
SET = FIELDS["sets"][0]
ODD = [
    {**FIELDS, "combining": "odd"},
    {**FIELDS, "default": "odd"},
    {**FIELDS, "sets": [{**SET, "document": {"id": "a", "odd": 1}}]},
    {**FIELDS, "sets": [{"document": SET["document"]}]},
    {**FIELDS, "sets": [SET, SET]},
    {**FIELDS, "sets": [{**SET, "document": {**SET["document"], "id": f"{n}"}} for n in range(MAX_POLICY_SETS + 1)]},  # noqa: E501
    {"version": 7},
]  # fmt: skip


@pytest.mark.parametrize("fields", ODD)
def test_of_policies_that_cannot_be_read_the_version_is_known(fields):
    assert read_row(POLICY_KEY, orjson.dumps(fields)) == PolicyRow(7, None)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(value):
    assert read_row(POLICY_KEY, value) == PolicyRow(0, None)


def test_a_row_that_is_too_large_is_not_read():
    value = write_row(PolicyRow(7, book("a", version=7)))
    assert read_row(POLICY_KEY, value + b" " * GROUP_POLICY_BYTES) == PolicyRow(0, None)


def test_the_first_node_writes_what_its_files_say():
    core = PoliciesCore(book("a"))
    assert core.feed(Missing()) == []
    assert core.feed(Known()) == [WrittenDown(book("a"))]
    assert core.feed(Known()) == []
    assert not core.is_settled
    assert core.feed(Written()) == [Judged(book("a"))]
    assert core.is_settled


def test_a_node_whose_files_say_nothing_writes_nothing():
    assert PoliciesCore(book(version=3)).feed(Known()) == []
    (wanted,) = PoliciesCore(book(default=Result.DENY)).feed(Known())
    assert wanted.book.default is Result.DENY


def test_a_later_node_takes_what_is_there_and_says_that_its_files_differ():
    core = PoliciesCore(book("mine"))
    there = book("theirs", version=4)
    assert core.feed(PolicyRow(4, there)) == [Judged(there), FilesDiffer(4)]
    assert core.feed(Known()) == []
    assert PoliciesCore(book("theirs")).feed(PolicyRow(4, there)) == [Judged(there)]


def known(*names, version=4):
    core = PoliciesCore(Book())
    core.feed(PolicyRow(version, book(*names, version=version)))
    core.feed(Known())
    return core


def test_a_change_is_judged_by_when_the_engine_has_it():
    core = known("a")
    next_ = book("a", "b", version=5)
    assert core.feed(Proposed(book("a", "b"))) == [WrittenDown(next_)]
    assert core.feed(Proposed(book("c"))) == [BUSY]
    assert core.feed(Written()) == [Judged(next_), Made(next_)]
    assert core.feed(Proposed(book("a", "b"))) == [Made(next_)]


def test_a_change_that_another_node_was_before_is_refused():
    core = known("a")
    core.feed(Proposed(book("b")))
    theirs = book("c", version=5)
    refused, judged = core.feed(PolicyRow(5, theirs))
    assert (refused.code, judged) == (409, Judged(theirs))
    assert core.feed(Written()) == []


def test_a_change_whose_outcome_a_fenced_node_does_not_hear_is_answered():
    core = known("a")
    core.feed(Proposed(book("b")))
    (refused,) = core.feed(Fenced())
    assert refused.code == 503
    assert core.feed(Fenced()) == []


def test_a_version_that_cannot_be_read_denies_everything():
    core = known("a")
    (judged,) = core.feed(PolicyRow(5, None))
    assert (ids(judged.book), judged.book.default, judged.book.version) == (
        ["unreadable"], Result.DENY, 5,
    )  # fmt: skip
    assert "5" in core.problem
    (wanted,) = core.feed(Proposed(book("a")))
    assert wanted.book.version == 6
    assert core.feed(Written()) == [Judged(wanted.book), Made(wanted.book)]
    assert core.problem is None


@pytest.mark.parametrize(
    "there", [Missing(), PolicyRow(3, book("old", version=3)), PolicyRow(3, None)]
)
def test_what_the_engine_has_lost_is_written_anew(there):
    core = known("a")
    assert core.feed(there) == [WrittenDown(book("a", version=4))]
    assert core.problem is None
    core.feed(Fenced())
    assert core.feed(there) == []
    assert core.feed(Known()) == [WrittenDown(book("a", version=4))]


@pytest.mark.parametrize(
    "there", [Missing(), PolicyRow(3, book("old", version=3)), PolicyRow(0, None)]
)
def test_a_change_by_a_node_that_knows_less_than_another_is_not_taken_back_by_that_one(there):
    """POL-05: it was answered as made."""
    other, core = known("a", version=1_000), PoliciesCore(Book())
    core.feed(there)
    core.feed(Known())
    (wanted,) = core.feed(Proposed(book("b"), at=1_001))
    assert core.feed(Written())[-1] == Made(wanted.book)
    assert other.feed(PolicyRow(wanted.book.version, wanted.book)) == [Judged(wanted.book)]


def test_versions_are_counted_where_a_clock_goes_back():
    core = known("a", version=1_000)
    (wanted,) = core.feed(Proposed(book("b"), at=7))
    assert wanted.book.version == 1_001


class Row:
    """One row, changed by compare-and-set, and the nodes that are told of it in their time."""

    def __init__(self, count):
        self.value, self.revision = None, 0
        self.cores = [PoliciesCore(book(f"f{n}") if n else Book()) for n in range(count)]
        self.known = [0] * count
        self.judged = [Book(version=0)] * count
        self.writing = [None] * count
        self.asked = self.answered = 0
        self.old, self.made = None, []

    def feed(self, number, happened):
        for effect in self.cores[number].feed(happened):
            match effect:
                case Judged(taken):
                    assert taken.version >= self.judged[number].version
                    self.judged[number] = taken
                case WrittenDown(wanted):
                    assert self.writing[number] is None
                    self.writing[number] = wanted
                case Made(made):
                    self.made.append(made)
                    self.answered += 1
                case Refused():
                    self.answered += 1
                case FilesDiffer():
                    pass

    def tell(self, number):
        if self.known[number] != self.revision:
            self.writing[number] = None
            self.known[number] = self.revision
            self.feed(number, self.found())

    def found(self):
        match self.value:
            case None:
                return Missing()
            case "garbage":
                return PolicyRow(0, None)
            case there:
                return PolicyRow(there.version, there)

    def write(self, number):
        wanted = self.writing[number]
        if wanted is None:
            return
        if self.known[number] != self.revision:
            self.tell(number)
            return
        self.writing[number] = None
        self.revision += 1
        self.value, self.known[number] = wanted, self.revision
        self.feed(number, Written())

    def put(self, value):
        self.value, self.revision = value, self.revision + 1

    def propose(self, number, name):
        self.old = self.value
        self.asked += 1
        self.feed(number, Proposed(book(f"p{name}"), at=100 * name))

    def do(self, step, number, name):
        match step:
            case "empty":
                self.put(None)
            case "garbage":
                self.put("garbage")
            case "older":
                self.put(self.old)
            case "propose":
                self.propose(number, name)
            case _:
                getattr(self, step)(number)

    def settle(self):
        for _ in range(6):
            for number in range(3):
                self.tell(number)
                self.write(number)

    def fence(self, number):
        self.writing[number], self.known[number] = None, -1
        self.feed(number, Fenced())
        self.tell(number)
        self.feed(number, Known())


STEPS = st.tuples(
    st.sampled_from(["tell", "write", "propose", "fence", "empty", "garbage", "older"]),
    st.integers(0, 2),
)


@given(st.lists(STEPS, max_size=60))
def test_all_nodes_come_to_one_version_and_none_goes_back(steps):
    row = Row(3)
    for number in range(3):
        row.feed(number, Known())
    for name, (step, number) in enumerate(steps):
        row.do(step, number, name)
    row.settle()
    if row.value == "garbage":
        row.propose(0, len(steps))
        row.settle()
    assert row.value is not None
    for last in sorted(row.made, key=lambda one: one.version)[-1:]:
        assert ids(row.value) == ids(last)
    assert {one.version for one in row.judged} == {row.value.version}
    assert all(ids(one) == ids(row.value) for one in row.judged)
    assert row.asked == row.answered
