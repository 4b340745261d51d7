"""What is sent to a peer that says how far it has read (CON-06)."""

import pytest

from fsm.session.outbox_budget import CursorError, SendWindow


@pytest.mark.parametrize("after", [0, 1, 4, 99])
def test_a_cursor_before_or_behind_what_is_kept_is_refused(after):
    window = SendWindow()
    window.put([b"1", b"2", b"3"])
    window.acknowledge(2)
    with pytest.raises(CursorError, match=f"after {after}; ask after 2 to 3"):
        window.acknowledge(after)
    assert window.after(2) == [b"3"]
