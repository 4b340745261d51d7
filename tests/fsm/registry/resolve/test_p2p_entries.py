"""The registry's entries for links: what each goes through (REG-04, I-P6, I-P7, I-P20)."""

from tests.support.runtime.registry_core import PQ, S1, linked


def live():
    return linked()


def test_a_link_is_no_route_while_it_is_negotiated_anew():
    """RES-11: the node carries everything meanwhile, and the link again when it is back."""
    registry = linked()
    assert registry.route() == PQ
    for value, route in (("disconnected", S1), ("in-progress", S1), ("live", PQ)):
        registry.status(PQ, value)
        assert registry.route() == route
