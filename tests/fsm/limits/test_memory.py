"""What is looked up again takes no more than it may, in entries and in bytes."""

from fsm.limits.shares import Memory


def test_of_too_many_entries_the_oldest_is_forgotten():
    memory = Memory[str, int](2, 1_000_000)
    for number in range(3):
        assert memory.keep(str(number), number, [str(number)]) == number
    assert memory == {"1": 1, "2": 2}


def test_what_is_larger_than_the_memory_is_not_kept_and_costs_nothing_else_its_place():
    memory = Memory[str, int](100, 1000)
    memory.keep("a", 1, ["a"])
    assert memory.keep("b", 2, ["x" * 1000]) == 2
    assert memory == {"a": 1}


def test_a_memory_that_was_cleared_has_all_its_bytes_again():
    memory = Memory[str, int](100, 2500)
    for _ in range(5):
        memory.keep("a", 1, ["x" * 2000])
        memory.clear()
    memory.keep("b", 2, ["x" * 2000])
    assert memory == {"b": 2}
