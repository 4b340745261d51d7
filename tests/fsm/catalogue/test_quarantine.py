"""How long which node of another domain is kept out (S14)."""

from fsm.limits.rates import QuarantineCore
from specs.limits.protocol import PEER_OFFENCES, QUARANTINE

NODE, OTHER = "domain://msg-node.b.ex", "domain://msg-node.c.ex"


def offend(core, times, now, node=NODE):
    """Let a node offend so often; say after which of these it is shown out."""
    return [number for number in range(1, times + 1) if core.offended(node, now)]


def test_a_node_that_offends_too_often_is_kept_out_for_a_time_and_then_forgiven():
    core = QuarantineCore()
    assert offend(core, PEER_OFFENCES, 5.0) == [PEER_OFFENCES]
    assert core.holds(NODE, 5.0 + QUARANTINE - 1)
    assert not core.holds(OTHER, 5.0)
    assert not core.holds(NODE, 5.0 + QUARANTINE)
    assert not core.holds(NODE, 5.0)


def test_a_node_that_was_kept_out_is_counted_anew():
    core = QuarantineCore()
    offend(core, PEER_OFFENCES, 0.0)
    assert offend(core, PEER_OFFENCES - 1, 1.0) == []
    assert core.offended(NODE, 1.0)


def test_offences_are_counted_for_as_long_as_a_quarantine_lasts_from_the_first():
    core = QuarantineCore()
    offend(core, 1, 0.0)
    assert offend(core, PEER_OFFENCES - 2, QUARANTINE - 1) == []
    assert not core.offended(NODE, QUARANTINE)
    assert offend(core, PEER_OFFENCES - 1, QUARANTINE) == [PEER_OFFENCES - 1]


def test_each_node_is_counted_for_itself():
    core = QuarantineCore()
    assert offend(core, PEER_OFFENCES - 1, 0.0) == []
    assert offend(core, 1, 0.0, OTHER) == []
    assert core.offended(NODE, 0.0)
