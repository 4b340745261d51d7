"""Used tokens are remembered as long as they could be used again, in bounded memory (S4)."""

from hypothesis import given
from hypothesis import strategies as st

from fsm.session.assertion import SpentTokens


def test_a_token_is_used_once():
    spent = SpentTokens()

    assert spent.spend("idp", "1", 100.0, 0.0)
    assert not spent.spend("idp", "1", 100.0, 1.0)


def test_names_are_each_issuers_own():
    spent = SpentTokens()

    assert spent.spend("one", "1", 100.0, 0.0)
    assert spent.spend("other", "1", 100.0, 0.0)


def test_an_expired_token_is_forgotten():
    spent = SpentTokens()
    for name in range(100):
        spent.spend("idp", str(name), 100.0 + name, float(name))

    assert spent.spend("idp", "late", 900.0, 500.0)
    assert len(spent) == 1


def test_a_forgotten_token_stays_used_when_the_clock_is_set_back():
    spent = SpentTokens()
    spent.spend("idp", "1", 100.0, 0.0)
    spent.spend("idp", "2", 4000.0, 3700.0)

    assert not spent.spend("idp", "1", 100.0, 50.0)


def test_beyond_the_limit_the_token_that_expires_first_is_dropped_and_stays_used():
    spent = SpentTokens(room=2)
    for name, end in (("1", 100.0), ("2", 200.0), ("3", 300.0)):
        assert spent.spend("idp", name, end, 0.0)

    assert len(spent) == 2
    assert not spent.spend("idp", "1", 100.0, 0.0)
    assert not spent.spend("idp", "never seen", 99.0, 0.0)
    assert spent.spend("idp", "4", 101.0, 0.0)


uses = st.tuples(st.integers(0, 9), st.integers(1, 100), st.integers(0, 120))


@given(st.lists(uses, max_size=60))
def test_no_token_is_ever_used_twice_for_any_jumps_of_clocks(tries):
    spent, used = SpentTokens(room=4), set()

    for name, end, now in tries:
        if end > now and spent.spend("idp", str((name, end)), float(end), float(now)):
            assert (name, end) not in used
            used.add((name, end))
        assert len(spent) <= 4
