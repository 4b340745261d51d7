"""Strategies for bodies: what a class takes, and JSON that is nearly that."""

import attrs
from hypothesis import strategies as st

from specs.addresses.address import runtime
from specs.schema.field import is_required, shape_at, wire_name
from specs.schema.shape import (
    Address,
    Anything,
    Free,
    Many,
    Maybe,
    Number,
    Part,
    Text,
    Truth,
    Whole,
    Word,
)

ALICE, R = "hyperty://a.example/alice", runtime("a.example", "ra")

ADDRESSES = st.sampled_from([ALICE, R, "runtime://A.example/ra/", "comm://a.ex/o1/changes"])

NO_ADDRESSES = st.sampled_from(
    ["", "x", "/hyperty/user/u", "hyperty://", "a://b//c", "a://b/..", "a://b\n", "\u212a://b/c"]
)

TEXTS = st.sampled_from(["open", "live", "k1", "/hyperty/user/x", f"{ALICE}#7"])

plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 400)
    | st.sampled_from([1.0, 2.5, 1e300, ALICE, "x", ""])
    | NO_ADDRESSES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)


def values_of(holds) -> st.SearchStrategy:
    """Return a strategy for JSON that a shape takes; texts with a pattern not always."""
    return VALUES[type(holds)](holds)


def _numbers(holds) -> st.SearchStrategy:
    return st.floats(holds.least, holds.most) | st.integers(int(holds.least), int(holds.most))


def _lists(holds) -> st.SearchStrategy:
    least, most = holds.size.least, min(holds.size.most, 3)
    return st.lists(values_of(holds.of), min_size=least, max_size=most)


VALUES = {
    Anything: lambda _: plain_json,
    Free: lambda _: st.dictionaries(st.sampled_from("abc"), plain_json, max_size=3),
    Text: lambda holds: st.text(min_size=holds.least, max_size=4) | TEXTS,
    Address: lambda _: ADDRESSES,
    Word: lambda holds: st.sampled_from(holds.words),
    Whole: lambda holds: st.integers(holds.least, min(holds.most, holds.least + 300)),
    Number: _numbers,
    Truth: lambda holds: st.booleans() if holds.only is None else st.just(holds.only),
    Part: lambda holds: json_of(holds.kind),
    Many: _lists,
    Maybe: lambda holds: st.none() | values_of(holds.of),
}


def json_of(kind) -> st.SearchStrategy:
    """Return a strategy for the JSON of bodies of a class; rules between fields are left alone."""
    fields = attrs.fields(kind)
    return st.fixed_dictionaries(
        {wire_name(one): values_of(shape_at(one)) for one in fields if is_required(one)},
        optional={
            wire_name(one): values_of(shape_at(one)) for one in fields if not is_required(one)
        },
    )
