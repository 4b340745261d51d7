"""Server-sent events as they come, cut anywhere (CON-06)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.stubs.rest_wire import EventReader
from specs.errors import BadMessageError
from specs.limits.protocol import MAX_FRAME_BYTES

STREAM = (
    b'retry: 100\n\nid: 1\ndata: {"a":1}\n\n: silence\n\nid: 2\ndata: {"b":2}\n\nid: 3\ndata: x'
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_events_are_read_from_any_pieces(cuts):
    reader, events = EventReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        events += reader.take(STREAM[start:end])
    assert events == [b'{"a":1}', b'{"b":2}']
    assert reader.last == 2


def test_an_event_without_an_end_is_not_kept_for_ever():
    reader = EventReader()
    with pytest.raises(BadMessageError):
        reader.take(b"data: " + b"x" * MAX_FRAME_BYTES)


def test_an_event_in_tiny_parts_costs_no_more_than_its_bytes():
    """T19: a hostile server sends byte by byte; with a copy of all at each it took 24 s."""
    reader, begun = EventReader(), time.process_time()
    for _ in range(MAX_FRAME_BYTES // 2 - 6):
        assert reader.take(b"\n:") == []
    assert time.process_time() - begun < 6
    assert reader.take(b"\ndata:z\n\n") == [b"z"]


def test_odd_fields_are_let_be():
    assert EventReader().take(b"event: x\nid: y\n\ndata:z\n\n") == [b"z"]


def test_a_number_of_any_length_is_no_error():
    """T19: the server may be hostile; the digits of a number take long to read, too."""
    reader = EventReader()
    assert reader.take(b"id: 7\nid: " + b"9" * 5000 + b"\ndata: z\n\n") == [b"z"]
    assert reader.last == 7
