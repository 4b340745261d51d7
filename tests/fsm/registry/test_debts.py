"""What is owed at a back end is tried again, with pauses that grow, and given up in the end."""

from fsm.registry.relay import RetryQueue, StatusWatch


def test_a_delivered_change_leaves_the_retry_queue():
    debts = RetryQueue()
    debts.owe("a", 0.0)
    debts.owe("b", 0.0)
    debts.remove("a")
    debts.remove("never owed")
    assert debts.due(0.0) == ("b",)
    assert not debts.count_failure("a", 0.0)


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
