"""The state of a node as a whole, from the frames of its dashboard."""

import pytest

from fsm.dashboard.totals import Queue, TotalsReader

FIRST = {
    "at": 100.0, "domain": "a.example", "total": 2, "slow": [],
    "figures": {
        "sessions.open": 2, "links": 2, "received.ours": 10, "received.upstream": 5,
        "dropped.overflow": 1, "dropped.no-target": 3, "violations.session": 9,
    },
}  # fmt: skip
NEXT = {
    "at": 102.0, "total": 1, "slow": [["hyperty-runtime://a.example/ra", "ws 1", 7]],
    "figures": {"received.ours": 30, "dropped.overflow": 5},
}  # fmt: skip


def test_changes_are_added_and_rates_are_means_over_the_frames():
    reader = TotalsReader(2)
    assert set(reader.read(FIRST).per_second.values()) == {0.0}
    totals = reader.read(NEXT)
    assert (totals.domain, totals.runtimes, totals.links) == ("a.example", 1, 2)
    assert totals.total == {"received": 35, "sent": 0, "refused": 0, "dropped": 8}
    assert totals.per_second == {"received": 10.0, "sent": 0.0, "refused": 0.0, "dropped": 2.0}
    assert list(totals.drops.items()) == [("overflow", 5), ("no-target", 3)]
    assert totals.slowest == [Queue("hyperty-runtime://a.example/ra", "ws 1", 7)]
    reader.read({**NEXT, "at": 103.0})
    assert reader.read({**NEXT, "at": 104.0}).per_second["received"] == 0.0


@pytest.mark.parametrize(
    "wrong", [{"figures": []}, {"figures": {"links": "2"}}, {"at": None}, {"slow": [[1, 2]]}]
)
def test_what_is_no_frame_is_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        TotalsReader(2).read({**FIRST, **wrong})


def test_a_frame_without_figures_is_refused():
    with pytest.raises(KeyError):
        TotalsReader(2).read({"at": 1.0})
