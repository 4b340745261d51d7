"""The rows that nodes share are written and read alike, and anything else is refused."""

import math

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.group.kinds import (
    Holder,
    NameRow,
    NodeReport,
    NodeRow,
    OwnerRow,
    PathRow,
    RowRefusal,
    RowRefusedError,
    SessionRow,
    is_node_id,
)
from fsm.group.row_form import read_row, write_row
from fsm.session.node_session_io import KeptSession, PeerForm
from fsm.session.runtime_names import NameKept, Owner
from specs.identity import Identity
from specs.limits.engine import ROW_KEY
from specs.limits.group import GROUP_ADDRESS, GROUP_FIGURES, GROUP_ROW_BYTES

R = "hyperty-runtime://a.ex/ra"
LONG = "comm://a.ex/" + "\u00fc/" * GROUP_ADDRESS
OBJECT = "comm://a.ex/1"
HERE = Holder("node-1", 2**63 - 1)
KEPT = KeptSession(R, b"d" * 32, b"p" * 32, is_taken_up=False, key="thumb")
LOGIN = Identity(
    user="user://idp.ex/al",
    issuer="https://idp.ex",
    until=math.inf,
    roles=frozenset({"admin", "x"}),
    login="ab",
)
SESSION = SessionRow(R, HERE, 3, PeerForm.OWN, f"{R}/protostub/1", KEPT, LOGIN)
ROWS = [
    NodeRow(HERE, "http://a:1", is_leaving=True),
    NodeRow(HERE),
    SESSION,
    SessionRow(R, HERE, 1, PeerForm.UPSTREAM, "stub"),
    SessionRow(R, HERE, 1, PeerForm.OWN, "stub", KeptSession(R, b"d" * 32)),
    OwnerRow("hyperty://a.ex/h1", R, "block"),
    OwnerRow("hyperty://a.ex/h1", R, is_bound=True),
    PathRow("comm://a.ex/1/changes", HERE),
    OwnerRow(LONG, R, "block"),
    OwnerRow(OBJECT, R),
    PathRow(LONG, HERE),
    NameRow(NameKept(R, Owner("https://idp.ex", "user://idp.ex/al"))),
    NameRow(NameKept(R, Owner("https://idp.ex", "user://idp.ex/al"), 5.0, is_released=True)),
]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_read_as_it_was_written(row):
    assert read_row(row.key, write_row(row)) == row


@pytest.mark.parametrize("row", ROWS)
def test_a_key_is_short_enough_for_the_engine_however_long_the_address(row):
    assert len(row.key.encode()) <= ROW_KEY


@pytest.mark.parametrize("about", [None, LONG + "x", "short", 5])
def test_the_address_of_a_digest_is_the_one_that_the_value_says(about):
    row = OwnerRow(LONG, R)
    fields = {**orjson.loads(write_row(row)), "about": about}
    assert refused(row.key, orjson.dumps(fields)) is RowRefusal.MALFORMED


def test_the_stated_addresses_of_a_session_are_kept():
    stated = attrs.evolve(LOGIN, addresses=frozenset({"hyperty://b.ex/1", "hyperty://b.ex/2"}))
    row = attrs.evolve(SESSION, identity=stated)
    assert read_row(row.key, write_row(row)).identity == stated
    fields = orjson.loads(write_row(row))
    for odd in ("x", [1], {}):
        identity = {**fields["identity"], "addresses": odd}
        value = orjson.dumps({**fields, "identity": identity})
        assert refused(row.key, value) is RowRefusal.MALFORMED


def test_the_login_of_a_session_is_kept():
    row = read_row(SESSION.key, write_row(SESSION))
    assert (row.identity.login, row.identity.until) == ("ab", math.inf)


def refused(key, value):
    with pytest.raises(RowRefusedError) as caught:
        read_row(key, value)
    assert caught.value.key == key
    return caught.value.reason


def test_kinds_of_others_are_refused_by_name():
    assert refused("record/x", b"{}") is RowRefusal.UNKNOWN_KIND
    assert refused("node", b"{}") is RowRefusal.MALFORMED


def test_a_row_that_is_too_large_is_not_even_read():
    value = orjson.dumps({"boot": 1, "more": "x" * GROUP_ROW_BYTES})
    assert refused("path/r/n", value) is RowRefusal.TOO_LARGE


def broken(row):
    """Every value with one field less, or of another type."""
    fields = orjson.loads(write_row(row))
    for name in fields.keys() - {"offers"}:
        yield {key: value for key, value in fields.items() if key != name}
        yield {**fields, name: {"odd": []}}
    for name in {"kept", "identity"} & {key for key, value in fields.items() if value}:
        for inner in fields[name]:
            yield {**fields, name: {**fields[name], inner: {"odd": []}}}
            yield {**fields, name: {k: v for k, v in fields[name].items() if k != inner}}


@pytest.mark.parametrize("row", [ROWS[0], SESSION, ROWS[5], ROWS[7], *ROWS[9:11], ROWS[-1]])
def test_a_row_with_a_wrong_field_is_refused(row):
    for fields in broken(row):
        assert refused(row.key, orjson.dumps(fields)) is RowRefusal.MALFORMED, fields


@pytest.mark.parametrize("boot", [0, -1, True, 1.5, "1", None])
def test_a_boot_epoch_is_a_number_from_one_on(boot):
    assert refused("path/r/n", orjson.dumps({"boot": boot})) is RowRefusal.MALFORMED


WITHOUT = ["path/r", "path/r/", "path//n", "path/r/a b", "node/a/b", "owner/"]


@pytest.mark.parametrize("key", WITHOUT)
def test_a_key_without_what_it_is_about_is_refused(key):
    refused(key, write_row(ROWS[7]))


@given(st.sampled_from([row.key for row in ROWS]), st.binary(max_size=60))
def test_no_bytes_break_a_reader(key, value):
    refused(key, value)


def test_ids_of_nodes_have_few_signs():
    assert is_node_id("a-B_1.2")
    assert not any(is_node_id(one) for one in ("", "a/b", "a b", "x" * 65, "ä", "a\n"))


REPORT = NodeReport(12.5, {"sessions.open": 3, "refused.route.404": 1, "broken_claims.I-M1": 2})


def test_the_report_of_a_node_is_read_as_it_was_written_and_makes_no_other_row():
    row = NodeRow(HERE, "http://a:1", report=REPORT)
    read = read_row(row.key, write_row(row))
    assert read.report == REPORT
    assert read == NodeRow(HERE, "http://a:1")


@pytest.mark.parametrize(
    "report",
    [
        None,
        7,
        {"up": 1.0},
        {"up": -1.0, "figures": {}},
        {"up": True, "figures": {}},
        {"up": 1.0, "figures": {"<b>": 1}},
        {"up": 1.0, "figures": {"x" * 65: 1}},
        {"up": 1.0, "figures": {"a": -1}},
        {"up": 1.0, "figures": {"a": "1"}},
        {"up": 1.0, "figures": {"a": True}},
        {"up": 1.0, "figures": {f"a{number}": 1 for number in range(GROUP_FIGURES + 1)}},
    ],
)
def test_a_node_whose_report_cannot_be_read_is_a_member_all_the_same(report):
    value = {"boot": HERE.boot, "address": "", "leaving": False, "report": report}
    read = read_row(NodeRow(HERE).key, orjson.dumps(value))
    assert (read, read.report) == (NodeRow(HERE), None)
