"""All nodes of a group come to one catalogue, and no file of it goes back."""

import base64

import attrs
import orjson
import pytest

from fsm.group.catalogue import CATALOGUE, CatalogueCore, CataloguePort, CatalogueRow, Why
from fsm.group.kinds import RowRefusal, RowRefusedError
from fsm.group.row_form import read_row, write_row
from specs.addresses.address import DOMAIN_KEYS, REVOKED
from specs.limits.group import GROUP_CATALOGUE_BYTES, GROUP_FILE_BYTES
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


# ---- what a directory brings


THERE = (keys("k", version=1), file(5))


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


def test_more_bytes_than_a_domain_may_have_are_refused():
    count, package = GROUP_CATALOGUE_BYTES // GROUP_FILE_BYTES, b"x" * (GROUP_FILE_BYTES - 100)
    full = [file(5, path=f"{STUB}{number}", package=package) for number in range(count)]
    rest = GROUP_CATALOGUE_BYTES - sum(row.size for row in (*THERE, *full))
    fits = file(5, path=STUB + "x", package=b"x" * (rest - file(5).size))
    large = attrs.evolve(fits, package=fits.package + b"x")
    assert core_of(*THERE, *full, own=(fits,))[1] == [asks.write(fits)]
    assert core_of(*THERE, *full, own=(large,))[1] == [asks.report_unused(large.path, Why.FULL)]


# ---- keys


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


# ---- several nodes


def test_a_row_with_another_package_is_another_row():
    assert attrs.evolve(file(5), package=b"x") != file(5)
