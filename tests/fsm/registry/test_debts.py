"""What is owed at a back end is tried again, with pauses that grow, and given up in the end."""

from fsm.registry.relay import Reservation, Reservations, RetryQueue, StatusWatch
from specs.limits.node import MAX_RESERVATIONS, RETRY_QUEUE_PAUSE, RETRY_QUEUE_TRIES


def test_pauses_double_up_to_the_longest_and_then_it_is_given_up():
    debts, now, pauses = RetryQueue(), 0.0, []
    debts.owe("a", now)
    while True:
        assert debts.due(now) == ("a",)
        if debts.count_failure("a", now):
            break
        pauses.append(debts.deadline() - now)
        assert debts.due(debts.deadline() - 0.001) == ()
        now = debts.deadline()
    assert pauses[:5] == [5.0, 10.0, 20.0, 40.0, 60.0]
    assert len(pauses) == RETRY_QUEUE_TRIES - 1
    assert max(pauses) == RETRY_QUEUE_PAUSE
    assert len(debts) == 0


def test_a_delivered_change_leaves_the_retry_queue():
    debts = RetryQueue()
    debts.owe("a", 0.0)
    debts.owe("b", 0.0)
    debts.remove("a")
    debts.remove("never owed")
    assert debts.due(0.0) == ("b",)
    assert not debts.count_failure("a", 0.0)


def test_a_session_holds_what_its_clients_reserved_until_it_leaves():
    kept = Reservations()
    for number in range(MAX_RESERVATIONS):
        assert kept.has_room("r1")
        kept.record_grant("r1", f"c{number}", Reservation(f"n{number}", {}, {}))
    kept.record_grant("r2", "c0", Reservation("other", {}, {}))
    assert not kept.has_room("r1")
    assert kept.give_back("r1", "c0") == "n0"
    assert kept.give_back("r1", "c0") is None
    assert kept.remove_session("r1") == tuple(f"n{n}" for n in range(1, MAX_RESERVATIONS))
    assert (len(kept), kept.remove_session("r1")) == (1, ())


def test_only_visible_changes_of_status_are_published():
    watch = StatusWatch(2)
    watch.record_status("a", "live")
    assert not watch.is_change("a", "live")
    assert not watch.is_change("a", "created")
    assert watch.is_change("a", "disconnected")
    watch.record_status("a", "live")
    assert not watch.is_change("a", "disconnected")
    assert watch.is_change("b", "live")
    assert watch.is_change("c", "live")
    assert len(watch) == 2
