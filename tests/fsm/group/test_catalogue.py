"""All nodes of a group come to one catalogue, and no file of it goes back."""

import base64

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.group.catalogue import CATALOGUE, CatalogueCore, CataloguePort, CatalogueRow, Why
from fsm.group.kinds import RowRefusal, RowRefusedError
from fsm.group.row_form import read_row, write_row
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.limits import group as limits
from specs.limits.engine import ROW_VALUE
from specs.limits.group import GROUP_CATALOGUE_WRITES, GROUP_FILE_BYTES
from tests.support.link_calls import Calls, Told

STUB = ".well-known/protocolstub/default"


def file(version, who="k", path=STUB, package=None, more=""):
    """A file that a key has signed, as far as anybody here can tell."""
    payload = base64.urlsafe_b64encode(orjson.dumps({"counter": version, "more": more}))
    return CatalogueRow(path, version, f"e30.{payload.decode().rstrip('=')}.{who}", package)


def keys(*names, version=1):
    return CatalogueRow(DOMAIN_KEYS, version, " ".join(names))


def is_signed(_path, text, known):
    return text.rpartition(".")[2] in known.split()


asks = Calls(CataloguePort)


def new_core():
    return Told(CataloguePort, lambda port: CatalogueCore(port, is_signed))


def look(core, *rows):
    return core.set_directory({row.path: row for row in rows})


def core_of(*there, own=()):
    """A member of a group that has looked at its directory."""
    core = new_core()
    for row in there:
        core.set_row(row)
    look(core, *own)
    return core, core.join()


# ---- rows


ROWS = [
    keys("k", version=7),
    file(7),
    file(7, package=b"PK\n\x00\n"),
    file(7, package=b""),
    file(7, path=REVOKED),
    CatalogueRow(STUB, 7, None),
]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_row_is_read_as_it_was_written(row):
    assert read_row(row.key, write_row(row)) == row


def refused(path, value):
    with pytest.raises(RowRefusedError) as caught:
        read_row(CATALOGUE + path, value)
    return caught.value.reason is RowRefusal.MALFORMED


GOOD = {"version": 7, "text": file(7).text}
ODD = [
    [],
    {"version": 7},
    {**GOOD, "version": "7"},
    {**GOOD, "version": True},
    {**GOOD, "version": 8},
    {**GOOD, "version": 0},
    {**GOOD, "text": 1},
    {**GOOD, "text": "no signed text"},
    {**GOOD, "text": "e30.ISNO.k"},
    {**GOOD, "text": "e30.W10.k"},
]


@pytest.mark.parametrize("fields", ODD, ids=range(len(ODD)))
def test_what_is_no_file_is_refused(fields):
    assert refused(STUB, orjson.dumps(fields))


PATHS = ["", "x", ".well-known/protocolstub", ".well-known/protostub/default"]
PATHS += [
    ".well-known/protocolstub/../x",
    ".well-known/odd/x",
    "protocolstub/default",
    REVOKED + "/x",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_file_at_a_place_where_none_can_be_is_refused(path):
    assert refused(path, orjson.dumps(GOOD))


def test_keys_and_revocations_cannot_be_withdrawn():
    for path in (DOMAIN_KEYS, REVOKED):
        assert refused(path, b'{"version": 7, "text": null}')
    assert refused(STUB, b'{"version": 7, "text": null}\nPK')


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(value):
    assert refused(STUB, value)


def test_a_row_that_is_too_large_is_refused():
    value = write_row(file(7, package=b"x"))
    assert refused(STUB, value + b"x" * ROW_VALUE)


# ---- what a directory brings


def test_the_first_node_writes_its_keys_and_then_what_they_have_signed():
    core, effects = core_of(own=(keys("k"), file(5)))
    assert effects == [asks.write(keys("k", version=1))]
    assert core.set_written(CATALOGUE + DOMAIN_KEYS) == [
        asks.serve(keys("k", version=1)),
        asks.write(file(5)),
    ]
    assert not core.is_settled
    assert core.set_written(CATALOGUE + STUB) == [asks.serve(file(5))]
    assert core.is_settled


def test_a_node_with_an_empty_directory_serves_what_is_there():
    core = new_core()
    assert core.set_row(keys("k", version=1)) == [asks.serve(keys("k", version=1))]
    assert core.set_row(file(5)) == [asks.serve(file(5))]
    assert core.join() == []
    assert not core.is_settled
    assert look(core) == []
    assert core.is_settled


THERE = (keys("k", version=1), file(5))


def test_a_newer_version_of_the_directory_counts_also_at_the_start():
    core, effects = core_of(*THERE, own=(keys("k"), file(6)))
    assert effects == [asks.write(file(6))]
    assert core.set_written(CATALOGUE + STUB) == [asks.serve(file(6))]


WHY = {
    Why.OLDER: file(4),
    Why.OTHER: file(5, more="other"),
    Why.UNSIGNED: file(6, "stranger"),
    Why.LARGE: file(6, package=b"x" * GROUP_FILE_BYTES),
    Why.KEYS: keys("k", "other"),
}


@pytest.mark.parametrize("why", WHY)
def test_a_file_of_the_directory_that_does_not_count_is_reported_once(why):
    core, effects = core_of(*THERE, own=(WHY[why],))
    assert effects == [asks.report_unused(WHY[why].path, why)]
    assert core.is_settled
    core.leave()
    done = [core.set_row(THERE[0]), core.set_row(THERE[1]), core.join(), look(core, WHY[why])]
    assert done == [[]] * 4


def test_what_is_there_already_is_not_reported():
    assert core_of(*THERE, own=(keys("k"), file(5)))[1] == []


def test_more_files_than_a_domain_may_have_are_refused(monkeypatch):
    monkeypatch.setattr("fsm.group.catalogue.GROUP_CATALOGUE_FILES", 3)
    others = [file(5, path=STUB + name) for name in ("2", "3")]
    core, effects = core_of(*THERE, own=others)
    assert effects == [asks.write(others[0]), asks.report_unused(others[1].path, Why.FULL)]
    assert look(core, others[0], file(6)) == [asks.write(file(6))]


def gone(number):
    return CatalogueRow(f"{STUB}{number}", 5, None)


def test_files_that_are_withdrawn_do_not_count(monkeypatch):
    monkeypatch.setattr("fsm.group.catalogue.GROUP_CATALOGUE_FILES", 2)
    core, effects = core_of(THERE[0], *map(gone, range(5)), own=(file(5),))
    assert effects == [asks.write(file(5))]
    core.set_written(CATALOGUE + STUB)
    later, again = file(5, path=STUB + "later"), file(6, path=STUB + "0")
    assert look(core, THERE[0], file(5), later) == [asks.report_unused(later.path, Why.FULL)]
    assert look(core, THERE[0]) == [asks.write(CatalogueRow(STUB, 5, None))]
    core.set_written(CATALOGUE + STUB)
    assert look(core, THERE[0], again) == [asks.write(again)]


def test_more_names_than_a_domain_may_use_are_refused_and_not_what_was_withdrawn(monkeypatch):
    monkeypatch.setattr("fsm.group.catalogue.GROUP_CATALOGUE_NAMES", 4)
    core, effects = core_of(*THERE, gone(0), gone(1), own=(file(5, path=STUB + "2"),))
    assert effects == [asks.report_unused(STUB + "2", Why.USED_UP)]
    again = file(6, path=STUB + "0")
    assert look(core, THERE[0], file(5), again) == [asks.write(again)]


def test_more_bytes_than_a_domain_may_have_are_refused(monkeypatch):
    large = file(5, path=STUB + "2", package=b"x" * 1000)
    monkeypatch.setattr("fsm.group.catalogue.GROUP_CATALOGUE_BYTES", 1000 + file(5).size)
    assert limits.GROUP_CATALOGUE_BYTES >= 2 * ROW_VALUE
    assert core_of(*THERE, own=(large,))[1] == [asks.report_unused(large.path, Why.FULL)]


def test_few_files_are_written_at_a_time():
    names = [STUB + str(number) for number in range(GROUP_CATALOGUE_WRITES + 1)]
    core, effects = core_of(keys("k", version=1), own=[file(5, path=one) for one in names])
    assert [one.row.path for one in effects] == names[:-1]
    shown, last = core.set_written(CATALOGUE + names[0])
    assert (shown.row.path, last.row.path) == (names[0], names[-1])


# ---- keys


def test_keys_count_that_are_published_while_a_node_runs():
    core, _ = core_of(*THERE, own=(keys("k"),))
    later = file(6, "next")
    assert look(core, keys("k", "next"), later) == [asks.write(keys("k", "next", version=2))]
    assert core.set_written(CATALOGUE + DOMAIN_KEYS) == [
        asks.serve(keys("k", "next", version=2)),
        asks.write(later),
    ]


def test_by_keys_that_another_node_publishes_more_is_signed():
    later = file(6, "next")
    core, effects = core_of(*THERE, own=(later,))
    assert effects == [asks.report_unused(STUB, Why.UNSIGNED)]
    there = keys("k", "next", version=2)
    assert core.set_row(there) == [asks.serve(there), asks.write(later)]


def test_of_keys_that_two_nodes_write_first_the_others_are_reported():
    core, _ = core_of(own=(keys("mine"), file(5, "mine")))
    theirs = keys("theirs", version=1)
    assert core.set_row(theirs) == [
        asks.serve(theirs),
        asks.report_unused(DOMAIN_KEYS, Why.KEYS),
        asks.report_unused(STUB, Why.UNSIGNED),
    ]


def test_keys_that_are_published_again_count():
    core, effects = core_of(*THERE, own=(keys("k", "other", version=9),))
    assert effects == [asks.report_unused(DOMAIN_KEYS, Why.KEYS)]
    again = keys("k", "other", version=12)
    assert look(core, again) == [asks.write(again)]


def test_keys_have_a_higher_number_than_those_before():
    """Though the clock of the node that publishes them is behind."""
    core, _ = core_of(keys("k", version=20), own=(keys("k", version=9),))
    assert look(core, keys("next", version=12)) == [asks.write(keys("next", version=21))]


# ---- what is withdrawn


def test_a_file_that_goes_from_the_directory_is_withdrawn():
    core, _ = core_of(*THERE, own=(keys("k"), file(5)))
    over = CatalogueRow(STUB, 5, None)
    assert look(core, keys("k")) == [asks.write(over)]
    assert core.set_written(CATALOGUE + STUB) == [asks.serve(over)]
    assert look(core, keys("k"), file(5)) == [asks.report_unused(STUB, Why.WITHDRAWN)]
    assert look(core, keys("k"), file(6)) == [asks.write(file(6))]


def test_a_withdrawal_waits_until_its_node_is_a_member():
    core, _ = core_of(*THERE, own=(keys("k"), file(5)))
    core.leave()
    look(core, keys("k"))
    assert [core.set_row(row) for row in THERE] == [[], []]
    assert core.join() == [asks.write(CatalogueRow(STUB, 5, None))]


def test_a_file_that_another_node_has_withdrawn_does_not_come_back():
    core, _ = core_of(*THERE, own=(keys("k"), file(5)))
    over = CatalogueRow(STUB, 5, None)
    assert core.set_row(over) == [asks.serve(over), asks.report_unused(STUB, Why.WITHDRAWN)]
    assert core_of(THERE[0], over, own=(file(5),))[1] == [asks.report_unused(STUB, Why.WITHDRAWN)]


LIST = file(5, path=REVOKED)
KEPT = {
    "the domain has a newer one": ((THERE[0], file(6)), (keys("k"), file(5)), (keys("k"),)),
    "the directory is away": (THERE, (keys("k"), file(5)), ()),
    "it was never there": (THERE, (keys("k"),), (keys("k"),)),
    "it is the list of revocations": ((THERE[0], LIST), (keys("k"), LIST), (keys("k"),)),
}


@pytest.mark.parametrize("why", KEPT)
def test_a_file_is_not_withdrawn_if(why):
    there, before, now = KEPT[why]
    core, _ = core_of(*there, own=before)
    assert look(core, *now) == []


# ---- what is lost


@pytest.mark.parametrize("there", [None, file(4), CatalogueRow(STUB, 4, None)])
def test_what_the_engine_has_lost_is_written_anew(there):
    core, _ = core_of(*THERE)
    assert (core.set_missing(STUB) if there is None else core.set_row(there)) == [
        asks.write(file(5))
    ]
    core.leave()
    assert core.set_row(THERE[0]) == []
    assert core.join() == [asks.write(file(5))]


def test_what_an_engine_has_not_that_comes_back_is_written_anew():
    core, _ = core_of(*THERE)
    core.leave()
    assert core.set_row(THERE[0]) == []
    assert core.join() == [asks.write(file(5))]


def test_a_withdrawal_that_the_engine_has_lost_is_written_anew():
    over = CatalogueRow(STUB, 5, None)
    core, _ = core_of(THERE[0], over)
    assert core.set_row(file(5)) == [asks.write(over)]


def test_of_two_contents_with_one_counter_the_one_of_the_engine_counts():
    core, _ = core_of(*THERE)
    other = file(5, more="other")
    assert core.set_row(other) == [asks.serve(other)]


# ---- several nodes


class Engine:
    """Rows changed by compare-and-set, and the nodes that are told of them in their time."""

    def __init__(self, directories):
        self.rows, self.revision = {}, {}
        self.cores = [new_core() for _ in directories]
        self.directories = directories
        self.known = [{} for _ in directories]
        self.served = [{} for _ in directories]
        self.writing = [{} for _ in directories]

    def note(self, number, calls):
        for call in calls:
            if call.name == "serve":
                before = self.served[number].get(call.row.path)
                assert before is None or call.row.rank >= before.rank
                self.served[number][call.row.path] = call.row
            elif call.name == "write":
                assert call.row.path not in self.writing[number]
                self.writing[number][call.row.path] = call.row

    def tell(self, number):
        for path, revision in self.revision.items():
            if self.known[number].get(path, 0) != revision:
                self.known[number][path] = revision
                self.writing[number].pop(path, None)
                core, row = self.cores[number], self.rows.get(path)
                self.note(number, core.set_row(row) if row else core.set_missing(path))

    def write(self, number):
        for path, row in list(self.writing[number].items()):
            if self.known[number].get(path, 0) != self.revision.get(path, 0):
                self.tell(number)
            elif self.writing[number].pop(path, None) is not None:
                self.rows[path] = row
                self.revision[path] = self.revision.get(path, 0) + 1
                self.known[number][path] = self.revision[path]
                self.note(number, self.cores[number].set_written(CATALOGUE + path))

    def empty(self, _):
        self.rows.clear()
        for path in self.revision:
            self.revision[path] += 1

    def look(self, number):
        self.note(number, look(self.cores[number], *self.directories[number].values()))

    def publish(self, number):
        directory = self.directories[number]
        before = directory.get(STUB, self.rows.get(STUB))
        self.put(number, file(1 + (before.version if before else 0), more=str(number)))

    def put(self, number, row):
        self.directories[number][row.path] = row

    def rotate(self, number):
        self.put(number, keys("k", f"k{number}"))

    def withdraw(self, number):
        self.directories[number].pop(STUB, None)

    def fence(self, number):
        self.writing[number].clear()
        self.known[number].clear()
        self.note(number, self.cores[number].leave())
        self.tell(number)
        self.note(number, self.cores[number].join())


NAMES = ["tell", "write", "look", "publish", "withdraw", "rotate", "fence", "empty"]
STEPS = st.tuples(st.sampled_from(NAMES), st.integers(0, 2))


@given(st.lists(STEPS, max_size=80))
def test_all_nodes_come_to_one_catalogue_and_no_file_goes_back(steps):
    engine = Engine([{DOMAIN_KEYS: keys("k")}, {DOMAIN_KEYS: keys("k", "j")}, {}])
    for number in range(3):
        engine.note(number, engine.cores[number].join())
    for step, number in steps:
        getattr(engine, step)(number)
    for _ in range(8):
        for number in range(3):
            engine.look(number)
            engine.tell(number)
            engine.write(number)
    assert engine.rows[DOMAIN_KEYS] is not None
    assert [served == engine.rows for served in engine.served] == [True] * 3
    assert all(core.is_settled for core in engine.cores)
    newest = [one[STUB].version for one in engine.directories if STUB in one]
    assert not newest or engine.rows[STUB].version >= max(newest)


def test_a_row_with_another_package_is_another_row():
    assert attrs.evolve(file(5), package=b"x") != file(5)
