"""The rows that nodes share are written and read alike, and anything else is refused."""

import math

import orjson
import pytest

from fsm.group.kinds import (
    Holder,
    NameRow,
    NodeRow,
    OwnerRow,
    PathRow,
    RowRefusal,
    RowRefusedError,
    SessionRow,
)
from fsm.group.row_form import read_row, write_row
from fsm.session.node_session_io import KeptSession, PeerForm
from fsm.session.runtime_names import NameKept, Owner
from specs.identity import Identity
from specs.limits.group import GROUP_ADDRESS

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


def refused(key, value):
    with pytest.raises(RowRefusedError) as caught:
        read_row(key, value)
    assert caught.value.key == key
    return caught.value.reason


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
