"""What is sent to a peer that says how far it has read (CON-06)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.session.outbox_budget import CursorError, SendWindow


def test_a_sent_message_is_kept_until_it_is_acknowledged():
    window = SendWindow()
    window.put([b"1", b"2", b"3"])
    assert window.after(0) == window.after(0) == [b"1", b"2", b"3"]
    assert window.after(2) == [b"3"]
    window.acknowledge(2)
    assert (window.acknowledged, window.last, len(window)) == (2, 3, 1)
    assert window.after(0) == window.after(2) == [b"3"]


@pytest.mark.parametrize("after", [0, 1, 4, 99])
def test_a_cursor_before_or_behind_what_is_kept_is_refused(after):
    window = SendWindow()
    window.put([b"1", b"2", b"3"])
    window.acknowledge(2)
    with pytest.raises(CursorError, match=f"after {after}; ask after 2 to 3"):
        window.acknowledge(after)
    assert window.after(2) == [b"3"]


def test_a_removed_message_has_no_number():
    window = SendWindow()
    window.put([b"answer", b"1"])
    assert window.take() == b"answer"
    assert (window.last, window.after(0)) == (1, [b"1"])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_a_reader_whose_answers_are_cut_reads_everything_once_and_in_order(history):
    """Each round some are sent, and the reader gets as many of those it asks for as come."""
    window, sent, read = SendWindow(), 0, []
    for more, come in history:
        window.put([b"%d" % number for number in range(sent, sent + more)])
        sent += more
        window.acknowledge(len(read))
        read += window.after(len(read))[:come]
    window.acknowledge(len(read))
    read += window.after(len(read))
    assert read == [b"%d" % number for number in range(sent)]
