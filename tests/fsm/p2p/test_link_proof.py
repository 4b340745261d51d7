"""Both ends prove a candidate's secret; an outsider learns nothing (T9..T11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.p2p.proof import (
    DiallerProof,
    Hello,
    LinkKeys,
    ListenerProof,
    Opened,
    Proof,
    ProofError,
    Welcome,
)

SECRET, OTHER = b"s" * 16, b"o" * 16
HERE = "127.0.0.1:1"


def listening(secret=SECRET):
    keys = LinkKeys()
    keys.offer(HERE, secret)
    return keys


def prove(dialler, listener):
    """Let both talk until the link is open."""
    proof = dialler.feed(listener.feed(dialler.hello()))
    assert dialler.feed(listener.feed(proof)) is None


def test_both_ends_agree_on_the_link_and_on_the_next_secret():
    keys = listening()
    dialler, listener = DiallerProof(SECRET, b"d"), ListenerProof(keys, HERE, b"l")
    prove(dialler, listener)
    assert dialler.link == listener.link != ""
    assert keys.to_accept(HERE) == (dialler.following,)


def test_a_used_secret_is_refused():
    keys = listening()
    prove(DiallerProof(SECRET, b"d"), ListenerProof(keys, HERE, b"l"))
    with pytest.raises(ProofError):
        ListenerProof(keys, HERE, b"m").feed(DiallerProof(SECRET, b"e").hello())


def test_the_next_secret_opens_the_next_link():
    keys = listening()
    first = DiallerProof(SECRET, b"d")
    prove(first, ListenerProof(keys, HERE, b"l"))
    prove(DiallerProof(first.following, b"e"), ListenerProof(keys, HERE, b"m"))


def test_of_two_diallers_with_one_secret_the_second_is_refused():
    keys = listening()
    one, two = ListenerProof(keys, HERE, b"1"), ListenerProof(keys, HERE, b"2")
    first, second = DiallerProof(SECRET, b"a"), DiallerProof(SECRET, b"b")
    first_proof = first.feed(one.feed(first.hello()))
    second_proof = second.feed(two.feed(second.hello()))
    assert one.feed(first_proof) == Opened()
    with pytest.raises(ProofError, match="used up"):
        two.feed(second_proof)


@given(tag=st.binary(min_size=32, max_size=32), nonce=st.binary(max_size=20))
def test_a_peer_without_the_secret_is_sent_nothing(tag, nonce):
    with pytest.raises(ProofError):
        ListenerProof(listening(), HERE, b"l").feed(Hello(nonce, tag))


def test_an_unoffered_address_cannot_be_dialled():
    with pytest.raises(ProofError):
        ListenerProof(listening(), "elsewhere", b"l").feed(DiallerProof(SECRET, b"d").hello())


def test_a_listener_without_the_secret_is_found_out():
    dialler = DiallerProof(SECRET, b"d")
    dialler.hello()
    with pytest.raises(ProofError):
        dialler.feed(Welcome(b"l", b"x" * 32))


def test_a_recorded_dialler_cannot_be_replayed_to_a_fresh_listener():
    first = DiallerProof(SECRET, b"d")
    hello = first.hello()
    proof = first.feed(ListenerProof(listening(), HERE, b"l").feed(hello))
    replayed_to = ListenerProof(listening(), HERE, b"m")
    replayed_to.feed(hello)
    with pytest.raises(ProofError):
        replayed_to.feed(proof)


@pytest.mark.parametrize("line", [Opened(), Proof(b"x"), Welcome(b"n", b"p")])
def test_a_listener_hears_the_hello_first(line):
    with pytest.raises(ProofError):
        ListenerProof(listening(), HERE, b"l").feed(line)


@pytest.mark.parametrize("line", [Opened(), Proof(b"x"), Hello(b"n", b"t")])
def test_a_dialler_hears_the_welcome_first(line):
    with pytest.raises(ProofError):
        DiallerProof(SECRET, b"d").feed(line)


def test_a_dialler_that_missed_the_last_line_tries_both_secrets():
    keys = LinkKeys()
    keys.perhaps_used(SECRET, OTHER)
    assert keys.to_dial(b"candidate") == (OTHER, SECRET, b"candidate")
    keys.used(OTHER)
    assert keys.to_dial(b"candidate") == (OTHER,)
