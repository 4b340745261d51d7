"""All nodes of a group come to one version of the policies, and none goes back."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.effects import Refused
from fsm.group.policies import BUSY, POLICY_KEY, PoliciesCore, PoliciesPort, PolicyRow
from fsm.group.row_form import read_row, write_row
from fsm.policy.model import Book
from fsm.policy.reading import read_set
from fsm.policy.terms import Algorithm, Result
from specs.limits.group import GROUP_POLICY_BYTES
from specs.limits.node import MAX_POLICY_SETS
from tests.support.link_calls import Calls, Told

asks = Calls(PoliciesPort)


def node(files):
    return Told(PoliciesPort, lambda port: PoliciesCore(files, port))


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
    core = node(book("a"))
    assert core.take_row(None) == []
    assert core.join() == [asks.write(book("a"))]
    assert core.join() == []
    assert not core.is_settled
    assert core.end_write() == [asks.judge(book("a"))]
    assert core.is_settled


def test_a_node_whose_files_say_nothing_writes_nothing():
    assert node(book(version=3)).join() == []
    (wanted,) = node(book(default=Result.DENY)).join()
    assert wanted.book.default is Result.DENY


def test_a_later_node_takes_what_is_there_and_says_that_its_files_differ():
    core = node(book("mine"))
    there = book("theirs", version=4)
    assert core.take_row(PolicyRow(4, there)) == [asks.judge(there), asks.report_difference(4)]
    assert core.join() == []
    assert node(book("theirs")).take_row(PolicyRow(4, there)) == [asks.judge(there)]


def known(*names, version=4):
    core = node(Book())
    core.take_row(PolicyRow(version, book(*names, version=version)))
    core.join()
    return core


def test_a_change_is_judged_by_when_the_engine_has_it():
    core = known("a")
    next_ = book("a", "b", version=5)
    assert core.propose(book("a", "b")) == [asks.write(next_)]
    assert core.propose(book("c")) == [asks.answer(BUSY)]
    assert core.end_write() == [asks.judge(next_), asks.answer(next_)]
    assert core.propose(book("a", "b")) == [asks.answer(next_)]


def test_a_change_that_another_node_was_before_is_refused():
    core = known("a")
    core.propose(book("b"))
    theirs = book("c", version=5)
    refused, judged = core.take_row(PolicyRow(5, theirs))
    assert (refused.outcome.code, judged) == (409, asks.judge(theirs))
    assert core.end_write() == []


def test_a_change_whose_outcome_a_fenced_node_does_not_hear_is_answered():
    core = known("a")
    core.propose(book("b"))
    (refused,) = core.fence()
    assert refused.outcome.code == 503
    assert core.fence() == []


def test_a_version_that_cannot_be_read_denies_everything():
    core = known("a")
    (judged,) = core.take_row(PolicyRow(5, None))
    assert (ids(judged.book), judged.book.default, judged.book.version) == (
        ["unreadable"], Result.DENY, 5,
    )  # fmt: skip
    assert "5" in core.problem
    (wanted,) = core.propose(book("a"))
    assert wanted.book.version == 6
    assert core.end_write() == [asks.judge(wanted.book), asks.answer(wanted.book)]
    assert core.problem is None


@pytest.mark.parametrize("there", [None, PolicyRow(3, book("old", version=3)), PolicyRow(3, None)])
def test_what_the_engine_has_lost_is_written_anew(there):
    core = known("a")
    assert core.take_row(there) == [asks.write(book("a", version=4))]
    assert core.problem is None
    core.fence()
    assert core.take_row(there) == []
    assert core.join() == [asks.write(book("a", version=4))]


@pytest.mark.parametrize("there", [None, PolicyRow(3, book("old", version=3)), PolicyRow(0, None)])
def test_a_change_by_a_node_that_knows_less_than_another_is_not_taken_back_by_that_one(there):
    """POL-05: it was answered as made."""
    other, core = known("a", version=1_000), node(Book())
    core.take_row(there)
    core.join()
    (wanted,) = core.propose(book("b"), at=1_001)
    assert core.end_write()[-1] == asks.answer(wanted.book)
    assert other.take_row(PolicyRow(wanted.book.version, wanted.book)) == [asks.judge(wanted.book)]


def test_versions_are_counted_where_a_clock_goes_back():
    core = known("a", version=1_000)
    (wanted,) = core.propose(book("b"), at=7)
    assert wanted.book.version == 1_001


class Row:
    """One row, changed by compare-and-set, and the nodes that are told of it in their time."""

    def __init__(self, count):
        self.value, self.revision = None, 0
        self.cores = [node(book(f"f{n}") if n else Book()) for n in range(count)]
        self.known = [0] * count
        self.judged = [Book(version=0)] * count
        self.writing = [None] * count
        self.asked = self.answered = 0
        self.old, self.made = None, []

    def perform(self, number, calls):
        for call in calls:
            match call.name:
                case "judge":
                    assert call.book.version >= self.judged[number].version
                    self.judged[number] = call.book
                case "write":
                    assert self.writing[number] is None
                    self.writing[number] = call.book
                case "answer":
                    self.answered += 1
                    if not isinstance(call.outcome, Refused):
                        self.made.append(call.outcome)

    def tell(self, number):
        if self.known[number] != self.revision:
            self.writing[number] = None
            self.known[number] = self.revision
            self.perform(number, self.cores[number].take_row(self.found()))

    def found(self):
        match self.value:
            case None:
                return None
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
        self.perform(number, self.cores[number].end_write())

    def put(self, value):
        self.value, self.revision = value, self.revision + 1

    def propose(self, number, name):
        self.old = self.value
        self.asked += 1
        calls = self.cores[number].propose(book(f"p{name}"), at=100 * name)
        self.perform(number, calls)

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
        self.perform(number, self.cores[number].fence())
        self.tell(number)
        self.perform(number, self.cores[number].join())


STEPS = st.tuples(
    st.sampled_from(["tell", "write", "propose", "fence", "empty", "garbage", "older"]),
    st.integers(0, 2),
)


@given(st.lists(STEPS, max_size=60))
def test_all_nodes_come_to_one_version_and_none_goes_back(steps):
    row = Row(3)
    for number in range(3):
        row.perform(number, row.cores[number].join())
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
